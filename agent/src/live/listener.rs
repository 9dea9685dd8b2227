//! A listener's connection. Unread messages are queued here, up to a limit.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// Maximum number of bytes queued here, besides those in the kernel's buffer. A listener that leaves more
/// bytes unread is disconnected.
pub(super) const MOST_WAITING_BYTES: usize = 64 << 10;

/// Connection of a listener. Its methods return false once the connection has ended.
#[derive(Debug)]
pub(super) struct Listener {
    fd: OwnedFd,
    waiting: Vec<u8>,
}

impl Listener {
    pub(super) const fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            waiting: Vec::new(),
        }
    }

    /// Events to poll for: the listener hangs up (which poll always reports) and, while the queue is not
    /// empty, becomes writable. Its input is never read.
    pub(super) fn wait_on(&self) -> (BorrowedFd<'_>, PollFlags) {
        let more = if self.waiting.is_empty() {
            PollFlags::empty()
        } else {
            PollFlags::OUT
        };
        (self.fd.as_fd(), more)
    }

    /// Sends a line, or queues it.
    #[must_use]
    pub(super) fn send(&mut self, line: &[u8]) -> bool {
        self.waiting.extend_from_slice(line);
        self.flush() && self.waiting.len() <= MOST_WAITING_BYTES
    }

    /// Sends queued bytes, as far as the socket accepts them.
    #[must_use]
    pub(super) fn flush(&mut self) -> bool {
        let mut sent = 0;
        let open = loop {
            if sent == self.waiting.len() {
                break true;
            }
            match send(&self.fd, &self.waiting[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break true,
                Err(_) => break false,
            }
        };
        self.waiting.drain(..sent);
        open
    }

    /// Returns false once the listener has hung up.
    #[must_use]
    pub(super) fn listens(&self) -> bool {
        let mut state = [PollFd::new(&self.fd, PollFlags::empty())];
        let _ = poll(&mut state, Some(&Timespec::default())); // on an interruption the next call decides
        state[0].revents().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn pair() -> (Listener, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Listener::new(ours.into()), theirs)
    }

    #[test]
    fn a_slow_reader_gets_all_in_order_or_is_over() {
        let (mut listener, mut reader) = pair();
        let line = [7; 1000];
        let mut sent = 0;
        while listener.wait_on().1.is_empty() {
            assert!(listener.send(&line));
            sent += line.len();
        }
        assert!(listener.flush() && !listener.waiting.is_empty());
        let mut received = vec![0; sent - listener.waiting.len()];
        reader.read_exact(&mut received).unwrap();
        assert!(listener.flush() && listener.waiting.is_empty());
        while listener.send(&line) {}
        assert!(listener.waiting.len() > MOST_WAITING_BYTES);
        assert!(listener.waiting.len() <= MOST_WAITING_BYTES + line.len());
    }

    #[test]
    fn who_hangs_up_is_over_and_who_speaks_is_not_heard() {
        let (mut listener, mut reader) = pair();
        reader.write_all(b"hello?").unwrap();
        reader.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(listener.listens());
        drop(reader);
        assert!(!listener.listens());
        assert!(!listener.send(b"line"));
    }
}
