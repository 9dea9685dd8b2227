//! A connection to a memory server after its handshake. No call here blocks.

use super::buffered::BufferedStream;
use crate::device::frames::{PAGE, PageBytes};
use crate::nbd::client::Wire;
use crate::nbd::wire::{Command, Fault, Request, SimpleReply};
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Bit that is set in the cookies of reads: a successful answer to a read is followed by a page.
const READS: u64 = 1 << 63;

/// The connection: requests out, answers in.
pub(super) struct Connection {
    stream: BufferedStream<Wire>,
}

/// A reply of the server.
pub(super) enum Reply<'a> {
    Read(u64, &'a mut [u8; PAGE]),
    Wrote(u64),
    Failed(u64, Fault),
}

impl Connection {
    pub(super) fn new(wire: Wire) -> io::Result<Self> {
        wire.set_nonblocking()?;
        // When the connection is closed, unsent bytes must be dropped: late pages must not reach the server
        // after newer ones.
        set_socket_linger(&wire, Some(Duration::ZERO))?;
        Ok(Self {
            stream: BufferedStream::new(wire),
        })
    }

    fn push(&mut self, command: Command, op: u64, slot: u32) {
        let request = Request {
            flags: 0,
            command,
            cookie: if command == Command::Read {
                op | READS
            } else {
                op
            },
            offset: u64::from(slot) * PAGE as u64,
            bytes: PAGE as u32,
        };
        self.stream.push(&request.encode());
    }

    pub(super) fn read(&mut self, op: u64, slot: u32) {
        self.push(Command::Read, op, slot);
    }

    pub(super) fn write(&mut self, op: u64, slot: u32, bytes: &PageBytes) {
        self.push(Command::Write, op, slot);
        self.stream.push(&bytes.0);
    }

    /// Sends as much as the socket accepts; returns true if unsent bytes remain.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        if self.stream.send()? {
            return Ok(true);
        }
        let wire = self.stream.stream_mut();
        while wire.wants_write() {
            match wire.flush() {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(()) => {}
            }
        }
        Ok(false)
    }

    /// Reads from the connection. Returns false if there was no input.
    ///
    /// # Errors
    /// The end of the connection counts as an error.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        self.stream.receive()
    }

    /// Returns the next complete answer.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: the bytes are no answer, so the beginning of the next answer is
    /// unknown, too.
    pub(super) fn next_reply(&mut self) -> io::Result<Option<Reply<'_>>> {
        let Some(head) = self.stream.received().first_chunk() else {
            return Ok(None);
        };
        let reply = SimpleReply::decode(head).ok_or(io::ErrorKind::InvalidData)?;
        let op = reply.cookie & !READS;
        let has_page = reply.error == 0 && reply.cookie & READS != 0;
        let page_bytes = if has_page { PAGE } else { 0 };
        let Some(taken) = self.stream.take(SimpleReply::BYTES + page_bytes) else {
            return Ok(None);
        };
        Ok(Some(match taken.last_chunk_mut() {
            _ if reply.error != 0 => Reply::Failed(op, Fault::from_number(reply.error)),
            Some(page) if has_page => Reply::Read(op, page),
            _ => Reply::Wrote(op),
        }))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.stream().as_fd()
    }
}
