//! The connection to the server, and the kernel's requests that wait for the server's answers.

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use gleaner_paging::nbd::client::Wire;
use gleaner_paging::nbd::wire::{Command, Fault, Request, SimpleReply};
use slab::Slab;
use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that are received at once: the answers to several reads of a page.
const BUFFER_BYTES: usize = 256 << 10;

/// A request of the kernel.
pub(super) enum KernelRequest {
    /// The server's answer has this number of bytes.
    Read(ReplyData, u32),
    /// This number of bytes is written.
    Write(ReplyWrite, u32),
    /// A flush, or zeroes.
    Other(ReplyEmpty),
}

impl KernelRequest {
    fn fail(self, errno: Errno) {
        match self {
            Self::Read(reply, _) => reply.error(errno),
            Self::Write(reply, _) => reply.error(errno),
            Self::Other(reply) => reply.error(errno),
        }
    }
}

/// A connection that the kernel's requests share.
pub(super) struct Connection {
    sender: Mutex<UnixStream>,
    waiting: Mutex<Waiting>,
}

/// Requests that were sent, by their cookies.
struct Waiting {
    requests: Slab<KernelRequest>,
    /// The server has ended, or is no NBD server.
    is_lost: bool,
}

impl Connection {
    /// The connection and its receiving end, of a server that has been negotiated with.
    pub(super) fn new(wire: &Wire) -> io::Result<(Self, UnixStream)> {
        let socket = || wire.as_fd().try_clone_to_owned().map(UnixStream::from);
        let connection = Self {
            sender: Mutex::new(socket()?),
            waiting: Mutex::new(Waiting {
                requests: Slab::with_capacity(256),
                is_lost: false,
            }),
        };
        Ok((connection, socket()?))
    }

    /// Sends a request; `data` are the bytes to write. The kernel gets the answer later.
    pub(super) fn send(&self, mut request: Request, data: &[u8], kernel: KernelRequest) {
        let mut waiting = locked(&self.waiting);
        if waiting.is_lost {
            drop(waiting);
            return kernel.fail(Errno::EIO);
        }
        request.cookie = waiting.requests.insert(kernel) as u64;
        drop(waiting);
        let sent = send_all(&mut locked(&self.sender), &request.encode(), data);
        if sent.is_err() {
            self.lose();
        }
    }

    /// Receives answers until the connection ends. Then all requests fail.
    pub(super) fn receive(&self, answers: UnixStream) {
        // The kernel learns of the loss by the errors of its requests.
        let _ = self.receive_all(answers);
        self.lose();
    }

    fn receive_all(&self, answers: UnixStream) -> io::Result<()> {
        let mut answers = BufReader::with_capacity(BUFFER_BYTES, answers);
        let mut data = Vec::new();
        loop {
            let mut head = [0; SimpleReply::BYTES];
            answers.read_exact(&mut head)?;
            let answer = SimpleReply::decode(&head).ok_or(io::ErrorKind::InvalidData)?;
            let request = usize::try_from(answer.cookie).ok();
            let request = request.and_then(|key| locked(&self.waiting).requests.try_remove(key));
            match request.ok_or(io::ErrorKind::InvalidData)? {
                request if answer.error != 0 => {
                    // The kernel ignores an answer with a number that it does not know, and would wait for another.
                    let fault = Fault::from_number(answer.error);
                    request.fail(Errno::from_i32(fault.number().cast_signed()));
                }
                KernelRequest::Read(reply, bytes) => {
                    if let Some(received) = buffered(&mut answers, bytes as usize)? {
                        reply.data(received);
                        answers.consume(bytes as usize);
                        continue;
                    }
                    data.resize(bytes as usize, 0);
                    if let Err(error) = answers.read_exact(&mut data) {
                        reply.error(Errno::EIO);
                        return Err(error);
                    }
                    reply.data(&data);
                }
                KernelRequest::Write(reply, bytes) => reply.written(bytes),
                KernelRequest::Other(reply) => reply.ok(),
            }
        }
    }

    /// Fails all requests, now and later.
    fn lose(&self) {
        let mut waiting = locked(&self.waiting);
        waiting.is_lost = true;
        let lost: Vec<KernelRequest> = waiting.requests.drain().collect();
        drop(waiting);
        for request in lost {
            request.fail(Errno::EIO);
        }
    }

    /// Tells the server that no more requests come.
    pub(super) fn disconnect(&self) {
        let request = Request {
            flags: 0,
            command: Command::Disconnect,
            cookie: 0,
            offset: 0,
            bytes: 0,
        };
        let _ = locked(&self.sender).write_all(&request.encode()); // the server may have ended
    }
}

/// Bytes in the buffer, if all of them have been received.
fn buffered(answers: &mut BufReader<UnixStream>, bytes: usize) -> io::Result<Option<&[u8]>> {
    if answers.buffer().is_empty() && bytes <= BUFFER_BYTES {
        answers.fill_buf()?;
    }
    Ok(answers.buffer().get(..bytes))
}

fn send_all(socket: &mut UnixStream, head: &[u8], data: &[u8]) -> io::Result<()> {
    let mut parts = [IoSlice::new(head), IoSlice::new(data)];
    let mut parts = &mut parts[..];
    while parts.iter().any(|part| !part.is_empty()) {
        match socket.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut parts, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
