//! The server: its listeners, and the messages sent to them.

use super::listener::Listener;
use super::socket::Socket;
use crate::ticker::{set_timer, timer};
use gleaner_schemas::live::{
    ALIVE_EVERY_MS, Hello, ListenerRefusal, Message, Owner, SILENT_AFTER_MS, Sample, SignOfLife,
    VERSION,
};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::TimerfdClockId;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Maximum number of listeners; further ones are refused. A host has a handful of daemons.
const MOST_LISTENERS: usize = 16;

/// Time between two signs of life.
const ALIVE_EVERY: Duration = Duration::from_millis(ALIVE_EVERY_MS.unsigned_abs());

/// Sends messages to listeners; without a socket it does nothing.
#[derive(Debug, Default)]
pub(crate) struct Server {
    open: Option<OpenSocket>,
    sample: Option<Sample>,
    owner: Option<Owner>,
}

#[derive(Debug)]
struct OpenSocket {
    socket: Socket,
    listeners: Vec<Listener>,
    /// Timer that fires each second while somebody listens.
    alive: OwnedFd,
    is_timed: bool,
    sample_interval_ms: i64,
    /// True while connections are accepted. It becomes false when the system has no descriptor left, until
    /// the next sample: otherwise poll would report the waiting connection without end.
    accepts: bool,
}

impl Server {
    /// Listens at `path`.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn open(path: &Path, sample_interval_ms: i64) -> io::Result<Self> {
        let open = OpenSocket {
            socket: Socket::open(path)?,
            listeners: Vec::new(),
            alive: timer(TimerfdClockId::Boottime, Duration::ZERO)?,
            is_timed: false,
            sample_interval_ms,
            accepts: true,
        };
        Ok(Self {
            open: Some(open),
            ..Self::default()
        })
    }

    /// Sets the sample interval announced to later listeners.
    pub(crate) fn set_sample_interval(&mut self, sample_interval_ms: i64) {
        if let Some(open) = &mut self.open {
            open.sample_interval_ms = sample_interval_ms;
        }
    }

    /// Descriptors to poll; call [`Self::serve`] when any of them is ready.
    pub(crate) fn wait_on(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        let Some(open) = &self.open else {
            return Vec::new();
        };
        let mut sources = vec![(open.alive.as_fd(), PollFlags::IN)];
        if open.accepts {
            sources.push((open.socket.as_fd(), PollFlags::IN));
        }
        sources.extend(open.listeners.iter().map(Listener::wait_on));
        sources
    }

    /// Accepts new listeners, drops those that hung up, continues sending to slow ones, and sends a sign of
    /// life when one is due and the agent is alive.
    pub(crate) fn serve(&mut self, now_ms: i64, is_alive: bool) {
        let Some(open) = &mut self.open else {
            return;
        };
        open.listeners.retain_mut(|l| l.listens() && l.flush());
        if rustix::io::read(&open.alive, &mut [0u8; 8]).is_ok() && is_alive {
            open.send_to_listeners(&Message::Alive(SignOfLife { time_ms: now_ms }));
        }
        loop {
            match open.socket.accept() {
                Ok(Some(connection)) => {
                    let welcome = welcome(open, now_ms, self.sample.as_ref(), self.owner.as_ref());
                    open.welcome(Listener::new(connection), &welcome);
                }
                Ok(None) => break,
                Err(_) => {
                    open.accepts = false;
                    break;
                }
            }
        }
        open.update_timer();
    }

    /// Sends a sample to all listeners.
    pub(crate) fn publish_sample(&mut self, sample: Sample) {
        if let Some(open) = &mut self.open {
            open.accepts = true;
            if !open.listeners.is_empty() {
                open.send_to_listeners(&Message::Sample(Box::new(sample.clone())));
            }
            self.sample = Some(sample);
        }
    }

    /// Sends the owner's state to all listeners.
    pub(crate) fn publish_owner(&mut self, owner: Owner) {
        if let Some(open) = &mut self.open {
            if !open.listeners.is_empty() {
                open.send_to_listeners(&Message::Owner(owner.clone()));
            }
            self.owner = Some(owner);
        }
    }
}

impl OpenSocket {
    fn send_to_listeners(&mut self, message: &Message) {
        let line = line(message);
        self.listeners.retain_mut(|listener| listener.send(&line));
        self.update_timer();
    }

    fn welcome(&mut self, mut listener: Listener, welcome: &[u8]) {
        if self.listeners.len() >= MOST_LISTENERS {
            let reason = format!("{MOST_LISTENERS} listen already");
            let _ = listener.send(&line(&Message::Refused(ListenerRefusal { reason })));
        } else if listener.send(welcome) {
            self.listeners.push(listener);
        }
    }

    /// Runs the timer only while there are listeners.
    fn update_timer(&mut self) {
        let is_heard = !self.listeners.is_empty();
        if is_heard != self.is_timed {
            let every = if is_heard {
                ALIVE_EVERY
            } else {
                Duration::ZERO
            };
            self.is_timed = set_timer(&self.alive, every).is_ok() && is_heard;
        }
    }
}

/// First messages to a new listener.
fn welcome(
    open: &OpenSocket,
    now_ms: i64,
    sample: Option<&Sample>,
    owner: Option<&Owner>,
) -> Vec<u8> {
    let hello = Message::Hello(Hello {
        version: VERSION,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        time_ms: now_ms,
        sample_interval_ms: open.sample_interval_ms,
        alive_every_ms: ALIVE_EVERY_MS,
        silent_after_ms: SILENT_AFTER_MS,
    });
    let sample = sample.map(|sample| Message::Sample(Box::new(sample.clone())));
    let owner = owner.map(|owner| Message::Owner(owner.clone()));
    let messages = [Some(hello), sample, owner];
    messages.iter().flatten().flat_map(line).collect()
}

fn line(message: &Message) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default(); // plain structs always serialise
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::net::UnixStream;

    fn server() -> (tempfile::TempDir, std::path::PathBuf, Server) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        let server = Server::open(&path, 1000).unwrap();
        (dir, path, server)
    }

    fn heard(reader: &mut impl BufRead) -> Message {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_newcomer_hears_the_hello_the_last_sample_and_the_owners_state() {
        let (_dir, path, mut server) = server();
        for time_ms in [1, 2] {
            server.publish_sample(Sample {
                time_ms,
                ..Sample::default()
            });
        }
        server.publish_owner(Owner {
            time_ms: 3,
            ..Owner::default()
        });
        let mut reader = BufReader::new(UnixStream::connect(&path).unwrap());
        server.serve(9, true);
        assert!(
            matches!(heard(&mut reader), Message::Hello(hello) if hello.time_ms == 9 && hello.version == 1)
        );
        assert!(matches!(heard(&mut reader), Message::Sample(sample) if sample.time_ms == 2));
        assert!(matches!(heard(&mut reader), Message::Owner(owner) if owner.time_ms == 3));
        server.publish_owner(Owner {
            time_ms: 4,
            ..Owner::default()
        });
        assert!(matches!(heard(&mut reader), Message::Owner(owner) if owner.time_ms == 4));
    }

    #[test]
    fn sixteen_listen_and_no_timer_runs_for_nobody() {
        let (_dir, path, mut server) = server();
        let timed = |server: &Server| server.open.as_ref().unwrap().is_timed;
        assert!(!timed(&server));
        let connect = || UnixStream::connect(&path).unwrap();
        let mut connected: Vec<_> = (0..10).map(|_| connect()).collect();
        server.serve(1, true); // accept before the backlog is full
        connected.extend((10..MOST_LISTENERS).map(|_| connect()));
        server.serve(1, true);
        assert!(timed(&server));
        let mut too_many = String::new();
        let mut refused = connect();
        server.serve(1, true);
        refused.read_to_string(&mut too_many).unwrap();
        assert!(
            too_many.contains("\"refused\"") && too_many.ends_with('\n'),
            "{too_many}"
        );

        let mut last = BufReader::new(connected.pop().unwrap());
        connected.clear();
        server.serve(2, true);
        assert_eq!(server.open.as_ref().unwrap().listeners.len(), 1);
        assert!(matches!(heard(&mut last), Message::Hello(_)) && timed(&server));
        drop(last);
        server.serve(3, true);
        assert!(!timed(&server));
    }

    #[test]
    fn a_listener_that_takes_nothing_is_dropped_and_the_others_hear_all() {
        let (_dir, path, mut server) = server();
        let _stuck = UnixStream::connect(&path).unwrap();
        let mut reader = BufReader::new(UnixStream::connect(&path).unwrap());
        server.serve(0, true);
        assert!(matches!(heard(&mut reader), Message::Hello(_)));
        let mut sent = 0;
        while server.open.as_ref().unwrap().listeners.len() == 2 {
            sent += 1;
            server.publish_sample(Sample {
                time_ms: sent,
                ..Sample::default()
            });
            assert!(
                matches!(heard(&mut reader), Message::Sample(sample) if sample.time_ms == sent)
            );
            assert!(sent < 10_000, "what waits has no bound");
        }
        server.publish_owner(Owner {
            time_ms: 5,
            ..Owner::default()
        });
        assert!(matches!(heard(&mut reader), Message::Owner(_)));
    }
}
