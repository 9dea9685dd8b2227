//! One connection to a memory server, from its first request on: nothing here waits.

use crate::device::frames::{PAGE, PageBytes};
use crate::nbd::client::Wire;
use crate::nbd::wire::{Command, Fault, Request, SimpleReply};
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Room for answers that came together.
const ROOM: usize = 256 << 10;
/// In a cookie: an answer without an error is followed by a page.
const READS: u64 = 1 << 63;

/// Requests out, answers in.
pub(super) struct Connection {
    wire: Wire,
    outward: Vec<u8>,
    sent: usize,
    inward: Vec<u8>,
    from: usize,
    until: usize,
}

/// What came.
pub(super) enum Reply<'a> {
    Read(u64, &'a mut [u8; PAGE]),
    Wrote(u64),
    Failed(u64, Fault),
}

impl Connection {
    pub(super) fn new(wire: Wire) -> io::Result<Self> {
        wire.set_nonblocking()?;
        // Closed, it is over at once: pages that were not sent must not come to the server when it has other ones there.
        set_socket_linger(&wire, Some(Duration::ZERO))?;
        Ok(Self {
            wire,
            outward: Vec::with_capacity(ROOM),
            sent: 0,
            inward: vec![0; ROOM],
            from: 0,
            until: 0,
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
        self.outward.extend(request.encode());
    }

    pub(super) fn read(&mut self, op: u64, slot: u32) {
        self.push(Command::Read, op, slot);
    }

    pub(super) fn write(&mut self, op: u64, slot: u32, bytes: &PageBytes) {
        self.push(Command::Write, op, slot);
        self.outward.extend(bytes.0);
    }

    /// Sends as much as is taken; whether something is left.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        while self.sent < self.outward.len() {
            match self.wire.write(&self.outward[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.outward.clear();
        self.sent = 0;
        while self.wire.wants_write() {
            match self.wire.flush() {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(()) => {}
            }
        }
        Ok(false)
    }

    /// Takes in what has come; `false` when there was nothing.
    ///
    /// # Errors
    /// The end of the connection is one.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        self.inward.copy_within(self.from..self.until, 0);
        (self.from, self.until) = (0, self.until - self.from);
        loop {
            match self.wire.read(&mut self.inward[self.until..]) {
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

    /// The next answer that came whole.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: nothing after it can be understood.
    pub(super) fn next_reply(&mut self) -> io::Result<Option<Reply<'_>>> {
        let came = &mut self.inward[self.from..self.until];
        let Some((head, rest)) = came.split_first_chunk_mut::<{ SimpleReply::BYTES }>() else {
            return Ok(None);
        };
        let reply = SimpleReply::decode(head).ok_or(io::ErrorKind::InvalidData)?;
        let op = reply.cookie & !READS;
        if reply.error != 0 {
            self.from += SimpleReply::BYTES;
            return Ok(Some(Reply::Failed(op, Fault::from_number(reply.error))));
        }
        if reply.cookie & READS == 0 {
            self.from += SimpleReply::BYTES;
            return Ok(Some(Reply::Wrote(op)));
        }
        let Some(bytes) = rest.first_chunk_mut::<PAGE>() else {
            return Ok(None);
        };
        self.from += SimpleReply::BYTES + PAGE;
        Ok(Some(Reply::Read(op, bytes)))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}
