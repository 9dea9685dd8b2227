//! Transmission, from the server's side: requests in, answers out, in order, for one connection.
//!
//! As many requests as have come are taken by one read, and as many answers as they have go out by one write, so that a
//! client with many under way costs few calls. Nothing is allocated for a request. A client that does not take its answers is
//! not read from either: its own socket holds it back, and no lock is held meanwhile.

use super::export::Contents;
use super::load::Load;
use super::wire::{Command, Fault, MOST_BYTES, Request, SimpleReply, flag};
use crate::store::PAGE_BYTES;
use std::io::{self, Read, Write};
use std::time::Instant;

/// Room for what has come and was not looked at, and for what is to go. A request and its bytes that fit are handed on whole.
pub(super) const ROOM_BYTES: usize = 256 << 10;
/// A longer write is taken as it comes, so much at a time.
const PART_BYTES: usize = 32 << 10;
/// Answers that have grown to that go out before more requests are looked at, so that the client has something to do meanwhile.
const WORTH_SENDING_BYTES: usize = 64 << 10;

/// Why a connection ended that the client did not end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransmissionError {
    /// It broke.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// What came was no request.
    #[error("the client sent something that is no request")]
    Foreign,
    /// More than was ever agreed on.
    #[error("the client wants to write {0} bytes at once, more than {MOST_BYTES}")]
    TooLarge(u32),
    /// An answer that had begun cannot be ended.
    #[error("{0}, in the middle of an answer")]
    Interrupted(Fault),
}

/// Serves requests until the client ends.
///
/// # Errors
/// [`TransmissionError`]: the connection is to be closed.
pub(super) fn transmit<C: Read + Write, X: Contents>(
    channel: C,
    contents: &X,
    load: &Load,
) -> Result<(), TransmissionError> {
    let mut connection = Connection {
        inward: Inward {
            channel,
            bytes: vec![0; ROOM_BYTES],
            from: 0,
            until: 0,
        },
        outward: Outward {
            bytes: vec![0; ROOM_BYTES],
            until: 0,
        },
        contents,
        answered: 0,
        began: Instant::now(),
        load,
    };
    while let Some(header) = connection.next_header()? {
        let request = Request::decode(&header).ok_or(TransmissionError::Foreign)?;
        if request.command == Command::Disconnect {
            break;
        }
        connection.serve(&request)?;
    }
    connection.send()?;
    Ok(())
}

struct Connection<'a, C, X> {
    inward: Inward<C>,
    outward: Outward,
    contents: &'a X,
    /// Requests whose answers have not gone out.
    answered: u64,
    /// When the first of them had come.
    began: Instant,
    load: &'a Load,
}

/// What has come.
struct Inward<C> {
    channel: C,
    bytes: Vec<u8>,
    from: usize,
    until: usize,
}

/// What is to go.
struct Outward {
    bytes: Vec<u8>,
    until: usize,
}

impl Outward {
    fn room(&self) -> usize {
        self.bytes.len() - self.until
    }

    /// What does not fit is left out: see [`Connection::make_room`].
    fn push(&mut self, reply: SimpleReply) {
        if let Some(room) = self.bytes[self.until..].first_chunk_mut() {
            *room = reply.encode();
            self.until += SimpleReply::BYTES;
        }
    }
}

impl<C: Read> Inward<C> {
    fn has(&self) -> usize {
        self.until - self.from
    }

    /// Waits for more; `false` at the end of the connection.
    fn more(&mut self, wanted: usize) -> io::Result<bool> {
        if self.from == self.until {
            (self.from, self.until) = (0, 0);
        } else if self.from + wanted > self.bytes.len() {
            self.bytes.copy_within(self.from..self.until, 0);
            (self.from, self.until) = (0, self.until - self.from);
        }
        loop {
            match self.channel.read(&mut self.bytes[self.until..]) {
                Ok(count) => {
                    self.until += count;
                    return Ok(count > 0);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl<C: Read + Write, X: Contents> Connection<'_, C, X> {
    /// The next request; `None` where the client has gone between two of them.
    fn next_header(&mut self) -> Result<Option<[u8; Request::BYTES]>, TransmissionError> {
        while self.inward.has() < Request::BYTES {
            // Nothing is known that is still to be done: what was answered goes out.
            self.send()?;
            if !self.inward.more(Request::BYTES)? {
                return match self.inward.has() {
                    0 => Ok(None),
                    _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                };
            }
            self.began = Instant::now();
        }
        let mut header = [0; Request::BYTES];
        header.copy_from_slice(&self.inward.bytes[self.inward.from..][..Request::BYTES]);
        self.inward.from += Request::BYTES;
        Ok(Some(header))
    }

    fn serve(&mut self, request: &Request) -> Result<(), TransmissionError> {
        let bytes = u64::from(request.bytes);
        let done = match request.command {
            Command::Read => return self.read(request),
            Command::Write => self.write(request)?,
            Command::Flush if request.bytes == 0 && request.offset == 0 => {
                known(request, 0).and_then(|()| self.contents.flush())
            }
            Command::Trim => known(request, 0)
                .and_then(|()| self.within(request, Fault::Invalid))
                .and_then(|()| self.contents.discard(request.offset, bytes)),
            Command::WriteZeroes => known(request, flag::NO_HOLE | flag::FAST_ZERO)
                .and_then(|()| self.within(request, Fault::NoSpace))
                .and_then(|()| self.contents.discard(request.offset, bytes)),
            // All of it is in memory.
            Command::Cache => known(request, 0).and_then(|()| self.within(request, Fault::Invalid)),
            Command::Flush | Command::Disconnect | Command::Unknown(_) => Err(Fault::Invalid),
        };
        let done = done.and_then(|()| match request.flags & flag::FUA {
            0 => Ok(()),
            _ => self.contents.flush(),
        });
        self.answer(request, done.err().map_or(0, Fault::number))
    }

    fn within(&self, request: &Request, beyond: Fault) -> Result<(), Fault> {
        let end = request.offset.checked_add(u64::from(request.bytes));
        match end {
            Some(end) if end <= self.contents.bytes() => Ok(()),
            _ => Err(beyond),
        }
    }

    fn read(&mut self, request: &Request) -> Result<(), TransmissionError> {
        let wrong = match request.bytes {
            ..=MOST_BYTES => known(request, 0).and(self.within(request, Fault::Invalid)),
            _ => Err(Fault::TooLarge),
        };
        if let Err(fault) = wrong {
            return self.answer(request, fault.number());
        }
        let (mut offset, mut left) = (request.offset, request.bytes as usize);
        self.make_room(SimpleReply::BYTES + left)?;
        let begin = self.outward.until;
        self.outward.push(SimpleReply {
            error: 0,
            cookie: request.cookie,
        });
        let mut is_whole = true;
        loop {
            let part = left.min(self.outward.room());
            let at = self.outward.until;
            if let Err(fault) = self
                .contents
                .read(offset, &mut self.outward.bytes[at..at + part])
            {
                if !is_whole {
                    return Err(TransmissionError::Interrupted(fault));
                }
                self.outward.until = begin;
                return self.answer(request, fault.number());
            }
            self.outward.until += part;
            (offset, left) = (offset + part as u64, left - part);
            if left == 0 {
                break;
            }
            // Larger than there is room for: it has begun to go out, and there is no way back.
            is_whole = false;
            self.flush_out()?;
        }
        self.answered += 1;
        self.send_if_much()
    }

    /// The bytes that follow are taken whatever becomes of them.
    fn write(&mut self, request: &Request) -> Result<Result<(), Fault>, TransmissionError> {
        if request.bytes > MOST_BYTES {
            return Err(TransmissionError::TooLarge(request.bytes));
        }
        let mut done = known(request, 0).and_then(|()| self.within(request, Fault::NoSpace));
        let (mut offset, mut left) = (request.offset, request.bytes as usize);
        while left > 0 {
            // Whole pages, since half a page costs as much as one; and not much more, so that the rest comes meanwhile.
            let part = left.min(PART_BYTES - (offset % PAGE_BYTES) as usize);
            while self.inward.has() < part {
                self.send()?;
                if !self.inward.more(part)? {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
            }
            let from = self.inward.from;
            if done.is_ok() {
                done = self
                    .contents
                    .write(offset, &self.inward.bytes[from..from + part]);
            }
            self.inward.from += part;
            (offset, left) = (offset + part as u64, left - part);
        }
        Ok(done)
    }

    fn answer(&mut self, request: &Request, error: u32) -> Result<(), TransmissionError> {
        self.make_room(SimpleReply::BYTES)?;
        self.outward.push(SimpleReply {
            error,
            cookie: request.cookie,
        });
        self.answered += 1;
        if error != 0 {
            self.load.failed();
        }
        self.send_if_much()
    }

    /// For an answer of so many bytes, or as much of it as there ever is room for.
    fn make_room(&mut self, bytes: usize) -> Result<(), TransmissionError> {
        if bytes > self.outward.room() {
            self.flush_out()?;
        }
        Ok(())
    }

    fn send_if_much(&mut self) -> Result<(), TransmissionError> {
        if self.outward.until >= WORTH_SENDING_BYTES {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), TransmissionError> {
        if self.outward.until == 0 {
            return Ok(());
        }
        self.flush_out()?;
        self.load
            .answered(std::mem::take(&mut self.answered), self.began.elapsed());
        Ok(())
    }

    fn flush_out(&mut self) -> Result<(), TransmissionError> {
        self.inward
            .channel
            .write_all(&self.outward.bytes[..self.outward.until])?;
        self.inward.channel.flush()?;
        self.outward.until = 0;
        Ok(())
    }
}

/// Flags that were not offered are an error, so that nobody believes what was not done. `FUA` may stand everywhere.
fn known(request: &Request, flags: u16) -> Result<(), Fault> {
    if request.flags & !(flags | flag::FUA) != 0 {
        return Err(Fault::Invalid);
    }
    Ok(())
}
