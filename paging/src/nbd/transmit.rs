//! The server's side of transmission for one connection: requests in, answers out, in order.
//!
//! One read takes all requests that have arrived, and one write sends all their answers. So a client with
//! many requests in progress costs few system calls. No memory is allocated for a request. If a client does
//! not read its answers, the server reads none of its further requests, and holds no lock while it waits.

use super::channel::Stream;
use super::export::Contents;
use super::load::Load;
use super::wire::{Command, Fault, MOST_BYTES, Request, SimpleReply, flag};
use crate::store::PAGE_BYTES;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use std::io::{self, IoSlice, Read};
use std::time::Instant;

/// Size of the buffers for received bytes and for bytes to send. A request whose data fit into the buffer is
/// handled as a whole.
pub(super) const ROOM_BYTES: usize = 256 << 10;
/// Size of the parts in which longer writes are handled.
const PART_BYTES: usize = 32 << 10;
/// Minimum size of collected answers that are sent before further requests are handled, so that the client
/// can continue in the meantime.
const WORTH_SENDING_BYTES: usize = 64 << 10;
/// Minimum number of bytes that are sent directly from the pages: copying so many would cost more than a
/// system call.
const WORTH_SHOWING_BYTES: usize = 64 << 10;

/// Reason why a connection ended other than by the client's request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransmissionError {
    /// The connection broke.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// The bytes are no request.
    #[error("the client sent something that is no request")]
    Foreign,
    /// A write is longer than the client and server agreed.
    #[error("the client wants to write {0} bytes in one request, more than {MOST_BYTES}")]
    TooLarge(u32),
    /// Reading failed in the middle of an answer that was already begun.
    #[error("{0}, in the middle of an answer")]
    Interrupted(Fault),
}

/// Serves requests until the client disconnects.
///
/// # Errors
/// [`TransmissionError`]; the caller closes the connection.
pub(super) fn transmit<C: Stream, X: Contents>(
    channel: C,
    contents: &X,
    load: &Load,
) -> Result<(), TransmissionError> {
    let mut connection = Connection {
        inward: InputBuffer {
            channel,
            bytes: vec![0; ROOM_BYTES],
            from: 0,
            until: 0,
        },
        outward: OutputBuffer {
            bytes: vec![0; ROOM_BYTES],
            until: 0,
        },
        contents,
        is_filling: false,
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
    inward: InputBuffer<C>,
    outward: OutputBuffer,
    contents: &'a X,
    /// True while pages of a write are received directly into memory.
    is_filling: bool,
    /// Number of requests whose answers are unsent.
    answered: u64,
    /// Arrival of the first request whose answer is unsent.
    began: Instant,
    load: &'a Load,
}

/// Received bytes that are not handled yet.
struct InputBuffer<C> {
    channel: C,
    bytes: Vec<u8>,
    from: usize,
    until: usize,
}

/// Bytes to send.
struct OutputBuffer {
    bytes: Vec<u8>,
    until: usize,
}

impl OutputBuffer {
    fn room(&self) -> usize {
        self.bytes.len() - self.until
    }

    /// Appends a reply; the caller has made room with [`Connection::make_room`], else the reply is dropped.
    fn push(&mut self, reply: SimpleReply) {
        if let Some(room) = self.bytes[self.until..].first_chunk_mut() {
            *room = reply.encode();
            self.until += SimpleReply::BYTES;
        }
    }

    /// Removes `count` sent bytes from the beginning.
    fn sent(&mut self, count: usize) {
        self.bytes.copy_within(count..self.until, 0);
        self.until -= count;
    }

    /// Appends bytes; the caller has checked that there is room.
    fn append(&mut self, bytes: &[u8]) {
        self.bytes[self.until..][..bytes.len()].copy_from_slice(bytes);
        self.until += bytes.len();
    }
}

impl<C: Read> InputBuffer<C> {
    fn has(&self) -> usize {
        self.until - self.from
    }

    /// Reads further bytes, at most `most`; returns false at the end of the connection.
    fn more(&mut self, wanted: usize, most: usize) -> io::Result<bool> {
        if self.from == self.until {
            (self.from, self.until) = (0, 0);
        } else if self.from + wanted > self.bytes.len() {
            self.bytes.copy_within(self.from..self.until, 0);
            (self.from, self.until) = (0, self.until - self.from);
        }
        let end = self.bytes.len().min(self.until.saturating_add(most));
        loop {
            match self.channel.read(&mut self.bytes[self.until..end]) {
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

impl<C: Stream, X: Contents> Connection<'_, C, X> {
    /// Returns the next request; `None` if the client has disconnected between requests.
    fn next_header(&mut self) -> Result<Option<[u8; Request::BYTES]>, TransmissionError> {
        // This holds only for the next header; later headers are read together with all bytes that have
        // arrived.
        let follows_filling = std::mem::take(&mut self.is_filling);
        while self.inward.has() < Request::BYTES {
            // All received requests are handled: send the answers before waiting for more.
            self.send()?;
            let most = match follows_filling {
                // The bytes after the header go directly into memory, not through this buffer.
                true => Request::BYTES - self.inward.has(),
                false => ROOM_BYTES,
            };
            if !self.inward.more(Request::BYTES, most)? {
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
        let (offset, bytes) = (request.offset, u64::from(request.bytes));
        let sound = request.check(self.contents.bytes());
        let done = match request.command {
            Command::Read => return self.read(request, sound),
            Command::Write => self.write(request, sound)?,
            Command::Flush => sound.and_then(|()| self.contents.flush()),
            Command::Trim | Command::WriteZeroes => {
                sound.and_then(|()| self.contents.discard(offset, bytes))
            }
            // The whole lease is in memory: caching is already done.
            Command::Cache => sound,
            Command::Disconnect | Command::Unknown(_) => Err(Fault::Invalid),
        };
        let done = done.and_then(|()| match request.flags & flag::FUA {
            0 => Ok(()),
            _ => self.contents.flush(),
        });
        self.answer(request, done.err().map_or(0, Fault::number))
    }

    fn read(
        &mut self,
        request: &Request,
        sound: Result<(), Fault>,
    ) -> Result<(), TransmissionError> {
        if let Err(fault) = sound {
            return self.answer(request, fault.number());
        }
        let (mut offset, mut left) = (request.offset, request.bytes as usize);
        self.make_room(SimpleReply::BYTES + left)?;
        let begin = self.outward.until;
        self.outward.push(SimpleReply {
            error: 0,
            cookie: request.cookie,
        });
        if (WORTH_SHOWING_BYTES..=self.outward.room()).contains(&left) {
            match self.send_direct(offset, left)? {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(fault) => {
                    self.outward.until = begin;
                    return self.answer(request, fault.number());
                }
            }
        }
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
            // The answer is larger than the buffer. Once its beginning is sent, an error can no longer be
            // reported.
            is_whole = false;
            self.flush_out()?;
        }
        self.answered += 1;
        self.send_if_full()
    }

    /// Sends the buffer, and then pages directly from memory, as far as the socket accepts them immediately.
    /// The remainder is copied. So the pages' lock is never held while waiting for a client.
    fn send_direct(
        &mut self,
        offset: u64,
        bytes: usize,
    ) -> Result<Result<bool, Fault>, TransmissionError> {
        let Some(socket) = self.inward.channel.socket() else {
            return Ok(Ok(false));
        };
        let outward = &mut self.outward;
        let mut sent = Ok(());
        let mut send = |pages: &[u8]| {
            let both = [&outward.bytes[..outward.until], pages].map(IoSlice::new);
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let count = match sendmsg(socket, &both, &mut SendAncillaryBuffer::default(), flags) {
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(e) => return sent = Err(e),
                Ok(count) => count,
            };
            let of_pages = count.saturating_sub(outward.until);
            outward.sent(count.min(outward.until));
            outward.append(&pages[of_pages..]);
        };
        let is_shown = self.contents.show(offset, bytes as u64, &mut send);
        sent.map_err(io::Error::from)?;
        if is_shown == Ok(true) {
            self.answered += 1;
            self.send()?;
        }
        Ok(is_shown)
    }

    /// Handles a write. The bytes of the write are read even if it fails.
    fn write(
        &mut self,
        request: &Request,
        mut done: Result<(), Fault>,
    ) -> Result<Result<(), Fault>, TransmissionError> {
        if request.bytes > MOST_BYTES {
            return Err(TransmissionError::TooLarge(request.bytes));
        }
        // A refused request may have any offset; nothing of it is stored.
        let first = if done.is_ok() { request.offset } else { 0 };
        let (mut offset, mut left) = (first, request.bytes as usize);
        self.is_filling = left >= WORTH_SHOWING_BYTES
            && done.is_ok()
            && self.inward.channel.unix_socket().is_some();
        while left > 0 {
            if self.is_filling && self.inward.has() == 0 && left >= PAGE_BYTES as usize {
                let (count, received) = self.receive_direct(offset, left)?;
                (offset, left) = (offset + count as u64, left - count);
                done = received;
                self.is_filling = done.is_ok();
                if count > 0 {
                    continue;
                }
            }
            // Each part ends with a page, since half a page costs as much as a whole one. Parts are small, so
            // that further bytes arrive while one is handled.
            let of_page = (offset % PAGE_BYTES) as usize;
            let part = left.min(match self.is_filling {
                true => PAGE_BYTES as usize - of_page,
                false => PART_BYTES - of_page,
            });
            while self.inward.has() < part {
                self.send()?;
                let most = match self.is_filling {
                    true => part - self.inward.has(),
                    false => ROOM_BYTES,
                };
                if !self.inward.more(part, most)? {
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

    /// Receives pages directly into memory, as far as they have arrived, so that the pages' lock is never
    /// held while waiting for a client. Returns the number of bytes. Bytes of an incomplete page stay in the
    /// buffer.
    fn receive_direct(
        &mut self,
        offset: u64,
        bytes: usize,
    ) -> Result<(usize, Result<(), Fault>), TransmissionError> {
        let Some(socket) = self.inward.channel.unix_socket() else {
            return Ok((0, Ok(())));
        };
        let room = &mut self.inward.bytes;
        let (mut whole, mut rest, mut received) = (0, 0, Ok(()));
        let mut receive = |pages: &mut [u8]| {
            let count = match recv(socket, &mut *pages, RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(e) => {
                    received = Err(e);
                    0
                }
                Ok((count, _)) => count,
            };
            rest = count % PAGE_BYTES as usize;
            whole = count - rest;
            room[..rest].copy_from_slice(&pages[whole..count]);
            count
        };
        let filled = self.contents.fill(offset, bytes as u64, &mut receive);
        received.map_err(io::Error::from)?;
        (self.inward.from, self.inward.until) = (0, rest);
        Ok((whole, filled))
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
        self.send_if_full()
    }

    /// Makes room for `bytes`, or as much as the buffer can ever have.
    fn make_room(&mut self, bytes: usize) -> Result<(), TransmissionError> {
        if bytes > self.outward.room() {
            self.flush_out()?;
        }
        Ok(())
    }

    fn send_if_full(&mut self) -> Result<(), TransmissionError> {
        if self.outward.until >= WORTH_SENDING_BYTES {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), TransmissionError> {
        if self.outward.until > 0 {
            self.flush_out()?;
        }
        if self.answered == 0 {
            return Ok(());
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Caller, Exports, Leases};
    use super::*;
    use crate::store::{Options, Store};
    use gleaner_daemon::shares::Shares;
    use std::cell::Cell;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    /// Stream that counts its reads.
    struct ReadCounter<'a>(UnixStream, &'a Cell<u32>);

    impl io::Read for ReadCounter<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1.set(self.1.get() + 1);
            self.0.read(into)
        }
    }

    impl io::Write for ReadCounter<'_> {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            self.0.write(from)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Stream for ReadCounter<'_> {
        fn socket(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
        }

        fn unix_socket(&self) -> Option<BorrowedFd<'_>> {
            self.socket()
        }
    }

    #[test]
    fn requests_after_a_long_write_are_taken_together() {
        let store = Arc::new(Store::new(2 << 20, 1, Options::default()).unwrap());
        store.open("a", "client", 2 << 20);
        let leases = Leases {
            store,
            default: Some(("a".to_owned(), 1)),
            shares: Arc::new(Shares::whole(1)),
        };
        let contents = leases.open("", &Caller::Local).unwrap();
        let request = |command, bytes| Request {
            flags: 0,
            command,
            cookie: 1,
            offset: 0,
            bytes,
        };
        let mut sent = request(Command::Write, 1 << 20).encode().to_vec();
        sent.resize(sent.len() + (1 << 20), 7);
        for _ in 0..500 {
            sent.extend(request(Command::Cache, 4096).encode());
        }
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (reads, mut answers) = (Cell::new(0), Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                io::Write::write_all(&mut &ours, &sent).unwrap();
                ours.shutdown(std::net::Shutdown::Write).unwrap();
                (&ours).read_to_end(&mut answers).unwrap();
            });
            transmit(ReadCounter(theirs, &reads), &contents, &Load::default()).unwrap();
        });
        assert!(reads.get() < 400, "{}", reads.get());
        assert_eq!(answers.len(), 501 * SimpleReply::BYTES);
    }
}
