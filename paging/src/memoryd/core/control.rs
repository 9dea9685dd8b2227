//! The owner's socket. Every local user may connect; the kernel identifies the user of each connection
//! (SO_PEERCRED).

mod peer;

pub(super) use peer::Peer;

use gleaner_schemas::lending::{OwnerCommand, OwnerReply};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Maximum number of clients. A further client replaces the one that was silent longest.
const MOST_CLIENTS: usize = 32;
/// Maximum length of a line; commands are short.
const LONGEST_LINE: usize = 4096;
/// Maximum number of commands per read. A client that sends more without waiting for answers is disconnected.
const MOST_COMMANDS: usize = 8;
/// Maximum number of unsent bytes. A client that leaves more unread is disconnected.
const MOST_WAITING: usize = 4 << 20;

/// A command, with the user who sent it.
#[derive(Debug)]
pub(super) struct ReceivedCommand {
    pub(super) connection: u64,
    pub(super) peer: Peer,
    /// Parsed command, or the parser's error.
    pub(super) command: Result<OwnerCommand, String>,
}

/// The socket and its connections.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
    /// Lock of the socket, held until the process ends in any way.
    _lock: OwnedFd,
    group: u32,
    clients: BTreeMap<u64, Client>,
    next: u64,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    peer: Peer,
    line: Vec<u8>,
    waiting: Vec<u8>,
    /// Number of the client's last read or arrival, in the order of all clients' reads and arrivals.
    heard: u64,
}

impl Control {
    /// Listens at `path`. A socket file left by a daemon that has died is replaced.
    ///
    /// # Errors
    /// The system's error; `AddrInUse` if another daemon listens.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(folder)?;
        }
        let lock = lock(path)?;
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => return Err(io::Error::new(ErrorKind::AlreadyExists, "it is no socket")),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        // Every user of the machine may have memory given back; other commands check the user's permissions.
        fs::set_permissions(path, Permissions::from_mode(0o666))?;
        Ok(Self {
            group: fs::metadata(path)?.gid(),
            listener,
            path: path.to_owned(),
            _lock: lock,
            clients: BTreeMap::new(),
            next: 0,
        })
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Returns the connections to wait for; the last value is true if output waits to be sent.
    pub(super) fn streams(&self) -> impl Iterator<Item = (u64, &UnixStream, bool)> {
        let stream = |(id, client): (&u64, _)| {
            let client: &Client = client;
            (*id, &client.stream, !client.waiting.is_empty())
        };
        // The borrow checker needs the closure's whole type.
        self.clients
            .iter()
            .map(move |(id, client)| stream((id, client)))
    }

    /// Group whose members may use every command.
    pub(super) fn group(&self) -> u32 {
        self.group
    }

    /// Accepts waiting clients.
    pub(super) fn accept(&mut self) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                // No client is waiting; or no descriptor is left, and a later call accepts the clients.
                Err(_) => return,
            };
            let Ok(peer) = Peer::of(&stream) else {
                continue;
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.clients.len() >= MOST_CLIENTS {
                let oldest = self.clients.iter().min_by_key(|(_, client)| client.heard);
                if let Some(oldest) = oldest.map(|(id, _)| *id) {
                    self.clients.remove(&oldest);
                }
            }
            self.next += 1;
            let client = Client {
                stream,
                peer,
                line: Vec::new(),
                waiting: Vec::new(),
                heard: self.next,
            };
            self.clients.insert(self.next, client);
        }
    }

    /// Reads commands of a client; drops a client that hung up or never ends its line.
    pub(super) fn read_commands(&mut self, connection: u64) -> Vec<ReceivedCommand> {
        let mut asked = Vec::new();
        let Some(client) = self.clients.get_mut(&connection) else {
            return asked;
        };
        let mut buffer = [0; LONGEST_LINE];
        let is_over = match client.stream.read(&mut buffer) {
            Ok(0) => true,
            Ok(read) => {
                self.next += 1;
                client.heard = self.next;
                client.line.extend_from_slice(&buffer[..read]);
                while let Some(end) = client.line.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = client.line.drain(..=end).collect();
                    asked.push(ReceivedCommand {
                        connection,
                        peer: client.peer.clone(),
                        command: serde_json::from_slice(&line).map_err(|e| e.to_string()),
                    });
                }
                client.line.len() > LONGEST_LINE || asked.len() > MOST_COMMANDS
            }
            Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        if is_over {
            self.clients.remove(&connection);
            asked.truncate(MOST_COMMANDS);
        }
        asked
    }

    /// Sends a reply to a client, as far as its socket accepts it.
    pub(super) fn reply(&mut self, connection: u64, reply: &OwnerReply) {
        let Some(client) = self.clients.get_mut(&connection) else {
            return; // the client has gone
        };
        let Ok(mut line) = serde_json::to_vec(reply) else {
            return; // never happens: plain data can be written as JSON
        };
        line.push(b'\n');
        client.waiting.extend(line);
        self.flush(connection);
    }

    /// Sends waiting bytes, as far as the socket accepts them.
    pub(super) fn flush(&mut self, connection: u64) {
        let Some(client) = self.clients.get_mut(&connection) else {
            return;
        };
        while !client.waiting.is_empty() {
            match client.stream.write(&client.waiting) {
                Ok(written) => {
                    client.waiting.drain(..written);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if client.waiting.len() > MOST_WAITING {
                        break;
                    }
                    return;
                }
                Err(_) => break,
            }
        }
        if !client.waiting.is_empty() {
            self.clients.remove(&connection);
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // a leftover file is replaced by the next daemon
    }
}

fn lock(path: &Path) -> io::Result<OwnedFd> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-lock");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, Path::new(&beside), flags, Mode::RUSR | Mode::WUSR)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "another gleaner-memoryd listens there",
        )),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    fn control() -> (tempfile::TempDir, PathBuf, Control) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gleaner/memoryd.sock");
        let control = Control::open(&path).unwrap();
        (folder, path, control)
    }

    #[test]
    fn everybody_may_come_and_one_daemon_listens() {
        let (_folder, path, mut control) = control();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o666);
        assert_eq!(
            Control::open(&path).unwrap_err().kind(),
            ErrorKind::AddrInUse
        );
        let mut client = UnixStream::connect(&path).unwrap();
        control.accept();
        let (id, ..) = control.streams().next().unwrap();
        client
            .write_all(
                b"{\"command\":\"pause\",\"duration_ms\":5}\n{\"command\":\"dance\"}\n{\"comm",
            )
            .unwrap();
        let asked = control.read_commands(id);
        assert_eq!(
            asked[0].command,
            Ok(OwnerCommand::Pause {
                duration_ms: Some(5)
            })
        );
        assert_eq!(asked[0].peer.uid, rustix::process::getuid().as_raw());
        assert!(asked[1].command.as_ref().unwrap_err().contains("dance"));
        client.write_all(b"and\":\"status\"}\n").unwrap();
        assert_eq!(
            control.read_commands(id)[0].command,
            Ok(OwnerCommand::Status)
        );
        control.reply(id, &OwnerReply::Log { reclaims: vec![] });
        let mut line = String::new();
        BufReader::new(&client).read_line(&mut line).unwrap();
        assert_eq!(line, "{\"reply\":\"log\",\"reclaims\":[]}\n");
        drop(client);
        control.read_commands(id);
        assert_eq!(control.streams().count(), 0);
        drop(control);
        assert!(!path.exists());
    }

    #[test]
    fn a_flood_of_commands_costs_its_sender_the_connection() {
        let (_folder, path, mut control) = control();
        let mut client = UnixStream::connect(&path).unwrap();
        control.accept();
        let flood = b"{\"command\":\"cap\",\"bytes\":1}\n".repeat(100);
        client.write_all(&flood).unwrap();
        assert_eq!(control.read_commands(1).len(), MOST_COMMANDS);
        assert_eq!(control.streams().count(), 0);
    }

    #[test]
    fn who_never_ends_a_line_is_dropped_and_the_crowd_is_bounded() {
        let (_folder, path, mut control) = control();
        let mut endless = UnixStream::connect(&path).unwrap();
        control.accept();
        for _ in 0..2 {
            endless.write_all(&[b'x'; LONGEST_LINE]).unwrap();
            control.read_commands(1);
        }
        assert_eq!(control.streams().count(), 0);
        let crowd: Vec<_> = (0..MOST_CLIENTS + 5)
            .map(|_| {
                let client = UnixStream::connect(&path).unwrap();
                control.accept();
                client
            })
            .collect();
        assert_eq!(control.streams().count(), MOST_CLIENTS);
        // The newest client was not replaced: its command is received.
        (&crowd[MOST_CLIENTS + 4])
            .write_all(b"{\"command\":\"status\"}\n")
            .unwrap();
        let (last, ..) = control.streams().last().unwrap();
        assert_eq!(control.read_commands(last).len(), 1);
    }
}
