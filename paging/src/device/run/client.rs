//! A client of the device: the kernel, qemu, or any program connected to its socket. No call here blocks.

use super::buffered::BufferedStream;
use crate::device::engine::{Answer, Device};
use crate::device::frames::PAGE;
use crate::nbd::wire::{Command, MOST_BYTES, Request, SimpleReply, flag};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Limit of bytes in answers that are unsent or being assembled. Above it, no further request of this client
/// is read.
const MOST_UNTAKEN: usize = 4 << 20;

/// A client's connection: requests in, answers out.
pub(super) struct Client {
    number: u64,
    stream: BufferedStream<UnixStream>,
    /// Bytes of answers that are being assembled.
    awaited_bytes: usize,
    /// Request that is partly handled.
    current: Option<CommandProgress>,
    has_ended: bool,
}

/// Progress of a write or discard, which is handled page by page.
struct CommandProgress {
    job: usize,
    command: Command,
    is_durable: bool,
    /// True for a faulty request: its bytes are read and dropped.
    is_void: bool,
    offset: u64,
    left: u64,
}

impl Client {
    pub(super) fn new(number: u64, stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            number,
            stream: BufferedStream::new(stream),
            awaited_bytes: 0,
            current: None,
            has_ended: false,
        })
    }

    /// Reads from the connection. Returns false if there was no input, or no room for it.
    ///
    /// # Errors
    /// The end of the connection counts as an error.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        self.stream.receive()
    }

    /// Returns true if there is room for more input.
    pub(super) fn wants_more(&self) -> bool {
        self.stream.has_room() && !self.has_ended
    }

    /// Returns true if the client has ended and everything was answered.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended && self.stream.unsent_bytes() == 0
    }

    pub(super) fn answer(&mut self, answer: &Answer) {
        self.awaited_bytes -= answer.room_bytes;
        self.stream.push(&answer.bytes);
    }

    /// Returns true if the client must read answers before its next request is handled.
    fn is_full(&self) -> bool {
        self.stream.unsent_bytes() + self.awaited_bytes > MOST_UNTAKEN
    }

    /// Sends as much as the socket accepts; returns true if unsent bytes remain.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        self.stream.send()
    }

    /// Passes received requests to the device, as far as the device has room.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: the bytes are no request.
    pub(super) fn serve(&mut self, device: &mut Device) -> io::Result<()> {
        while !self.has_ended {
            if self.current.is_some() && !self.continue_operation(device) {
                return Ok(());
            }
            if !device.takes_requests() || self.is_full() {
                return Ok(());
            }
            let Some(header) = self.stream.received().first_chunk::<{ Request::BYTES }>() else {
                return Ok(());
            };
            let request = Request::decode(header).ok_or(io::ErrorKind::InvalidData)?;
            if request.command == Command::Write && request.bytes > MOST_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.stream.take(Request::BYTES);
            self.begin(request, device);
        }
        Ok(())
    }

    fn begin(&mut self, request: Request, device: &mut Device) {
        if request.command == Command::Disconnect {
            self.has_ended = true; // a disconnect gets no answer
            return;
        }
        let wrong = request.check(u64::from(device.pages()) * PAGE as u64).err();
        let is_read = request.command == Command::Read && wrong.is_none();
        let read_bytes = if is_read { request.bytes as usize } else { 0 };
        let job = device.begin(self.number, request.cookie, read_bytes);
        self.awaited_bytes += SimpleReply::BYTES + read_bytes;
        if let Some(fault) = wrong {
            device.fail(job, fault);
        }
        let is_durable = request.flags & flag::FUA != 0;
        let is_void = wrong.is_some();
        match request.command {
            Command::Read if is_read => {
                for (page, from, len, at) in parts(request.offset, u64::from(request.bytes)) {
                    device.read(job, page, from, len, at);
                }
                device.end(job);
            }
            // A write's bytes follow even if the request is faulty.
            Command::Write | Command::Trim | Command::WriteZeroes
                if request.command == Command::Write || !is_void =>
            {
                self.current = Some(CommandProgress {
                    job,
                    command: request.command,
                    is_durable,
                    is_void,
                    // A faulty request may have any offset, and nothing of it is stored.
                    offset: if is_void { 0 } else { request.offset },
                    left: u64::from(request.bytes),
                });
            }
            Command::Flush if !is_void => {
                device.flush(job);
                device.end(job);
            }
            _ => device.end(job),
        }
    }

    /// Continues a write or discard; returns true when it is done.
    fn continue_operation(&mut self, device: &mut Device) -> bool {
        let Some(current) = &mut self.current else {
            return true;
        };
        while current.left > 0 {
            let from = (current.offset % PAGE as u64) as usize;
            let len = current.left.min((PAGE - from) as u64) as usize;
            let page = (current.offset / PAGE as u64) as u32;
            let has_room = current.is_void || device.room() > 0;
            if !has_room {
                return false;
            }
            if current.command == Command::Write {
                let Some(bytes) = self.stream.received().get(..len) else {
                    return false;
                };
                if !current.is_void {
                    device.write(current.job, page, from, bytes, current.is_durable);
                }
                self.stream.take(len);
            } else if len == PAGE {
                device.zero(page);
            } else if current.command == Command::WriteZeroes {
                device.write(current.job, page, from, &[0; PAGE][..len], false);
            }
            current.offset += len as u64;
            current.left -= len as u64;
        }
        if current.is_durable && current.command != Command::Write && !current.is_void {
            device.flush(current.job);
        }
        device.end(current.job);
        self.current = None;
        true
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.stream().as_fd()
    }
}

/// Splits a range by pages. The values are, for each page: its number, offset and length within the page, and
/// offset within the range.
fn parts(offset: u64, bytes: u64) -> impl Iterator<Item = (u32, usize, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let now = offset + at;
        let from = (now % PAGE as u64) as usize;
        let len = (bytes - at).min((PAGE - from) as u64) as usize;
        let part = ((now / PAGE as u64) as u32, from, len, at as usize);
        at += len as u64;
        (len > 0).then_some(part)
    })
}
