//! Buffers of a non-blocking connection: received bytes that are not handled yet, and bytes to send.

use std::io::{self, Read, Write};

/// Size of the buffer for received bytes, which may be many messages.
const ROOM: usize = 256 << 10;

/// A non-blocking stream with its buffers. No call here blocks.
pub(super) struct BufferedStream<S> {
    stream: S,
    inward: Vec<u8>,
    from: usize,
    until: usize,
    outward: Vec<u8>,
    sent: usize,
}

impl<S: Read + Write> BufferedStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            inward: vec![0; ROOM],
            from: 0,
            until: 0,
            outward: Vec::with_capacity(ROOM),
            sent: 0,
        }
    }

    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    pub(super) fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Reads from the connection. Returns false if there was no input, or no room for it.
    ///
    /// # Errors
    /// The end of the connection counts as an error.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        self.inward.copy_within(self.from..self.until, 0);
        (self.from, self.until) = (0, self.until - self.from);
        if !self.has_room() {
            return Ok(false);
        }
        loop {
            match self.stream.read(&mut self.inward[self.until..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.until += count;
                    return Ok(true);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Returns true if there is room for further received bytes.
    pub(super) fn has_room(&self) -> bool {
        self.until - self.from < self.inward.len()
    }

    /// Received bytes that were not taken.
    pub(super) fn received(&self) -> &[u8] {
        &self.inward[self.from..self.until]
    }

    /// Takes `count` bytes; `None` if fewer were received.
    pub(super) fn take(&mut self, count: usize) -> Option<&mut [u8]> {
        let taken = self.inward[self.from..self.until].get_mut(..count)?;
        self.from += count;
        Some(taken)
    }

    /// Adds bytes to be sent.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.outward.extend(bytes);
    }

    /// Number of bytes still to be sent.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.outward.len() - self.sent
    }

    /// Sends as much as the socket accepts; returns true if unsent bytes remain.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        while self.sent < self.outward.len() {
            match self.stream.write(&self.outward[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.outward.clear();
        self.sent = 0;
        Ok(false)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_are_taken_as_they_came_and_sent_as_far_as_they_are_taken() {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ours = BufferedStream::new(ours);
        assert!(!ours.receive().unwrap());
        theirs.write_all(b"abcd").unwrap();
        assert!(ours.receive().unwrap());
        assert_eq!(ours.take(3).unwrap(), b"abc");
        assert_eq!(ours.take(2), None);
        theirs.write_all(b"e").unwrap();
        assert!(ours.receive().unwrap());
        assert_eq!(ours.received(), b"de");

        // More than the socket accepts at once, so that unsent bytes remain.
        let sent = vec![7; 8 << 20];
        ours.push(&sent);
        assert!(ours.send().unwrap() && ours.unsent_bytes() > 0);
        let reader = std::thread::spawn(move || {
            let mut found = Vec::new();
            theirs.read_to_end(&mut found).unwrap();
            found
        });
        while ours.send().unwrap() {
            std::thread::yield_now();
        }
        assert_eq!(ours.unsent_bytes(), 0);
        drop(ours);
        assert!(reader.join().unwrap() == sent);
    }

    #[test]
    fn no_more_is_taken_in_than_there_is_room_for() {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ours = BufferedStream::new(ours);
        while ours.has_room() {
            let _ = theirs.write(&[1; 4096]); // the socket may be full
            ours.receive().unwrap();
        }
        assert!(!ours.receive().unwrap());
        assert_eq!(ours.received().len(), ROOM);
        ours.take(1).unwrap();
        assert!(ours.has_room());
        drop(theirs);
        while ours.receive().is_ok() {
            let all = ours.received().len();
            ours.take(all).unwrap();
        }
    }
}
