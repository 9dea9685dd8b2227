//! The file of the socket. It belongs to one agent; only a dead agent's file may be replaced.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::fs::{fchmod, flock, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{accept_with, bind, listen, socket_with};
use std::fs::{DirBuilder, Permissions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode of the socket: owner and group may connect; a folder with the set-group-ID bit chooses the group.
const SOCKET_MODE: u32 = 0o660;

/// Mode of the socket's folder: everybody may reach the socket, whose own mode decides who connects.
const FOLDER_MODE: u32 = 0o755;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// A listening socket; dropping it removes its file.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    path: PathBuf,
    _lock: OwnedFd,
}

impl Socket {
    /// Listens at `path`. The process holds a lock beside the socket until it ends, however it ends. So an
    /// agent that gets the lock may remove an existing socket: the agent that made it is dead.
    ///
    /// # Errors
    /// The error of the system; `AddrInUse` if another agent listens.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        if let Some(folder) = path.parent() {
            let mut folders = DirBuilder::new();
            folders.recursive(true).mode(FOLDER_MODE).create(folder)?;
        }
        let lock = lock(&crate::state_files::beside(path, "-lock"))?;
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
            Ok(_) => return Err(Error::new(ErrorKind::AlreadyExists, "it is no socket")),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The socket's file gets this mode, less the umask, when it is created: at no moment may more people
        // connect.
        fchmod(&fd, Mode::from_raw_mode(SOCKET_MODE))?;
        bind(&fd, &SocketAddrUnix::new(path)?)?;
        let socket = Self {
            fd,
            path: path.to_owned(),
            _lock: lock,
        };
        std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
        listen(&socket.fd, BACKLOG)?;
        Ok(socket)
    }

    /// Accepts the next connection; `None` if none waits.
    pub(super) fn accept(&self) -> Result<Option<OwnedFd>, Errno> {
        loop {
            match accept_with(&self.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(connection) => return Ok(Some(connection)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path); // a leftover file is replaced by the next agent
    }
}

fn lock(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::RUSR | Mode::WUSR)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(Error::new(
            ErrorKind::AddrInUse,
            "another gleaner-agent listens there",
        )),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn for_owner_and_group_and_gone_with_its_agent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gleaner/agent.sock");
        let socket = Socket::open(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&path), 0o660);
        assert_eq!(mode(path.parent().unwrap()), 0o755);
        assert!(socket.accept().unwrap().is_none());
        let _client = UnixStream::connect(&path).unwrap();
        assert!(socket.accept().unwrap().is_some());
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_dead_agents_file_is_replaced_a_live_ones_and_a_strangers_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        drop(UnixListener::bind(&path).unwrap()); // the file stays
        let live = Socket::open(&path).unwrap();
        let error = Socket::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        UnixStream::connect(&path).unwrap();
        drop(live);
        std::fs::write(&path, "a stranger's").unwrap();
        let error = Socket::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"a stranger's");
    }
}
