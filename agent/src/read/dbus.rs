//! A D-Bus client for a few calls to one service, one after the other, over a local socket (D-Bus
//! specification 0.43). It is small and has no threads, since a library would add to the sampler's memory.
//! Every wait has a timeout: a bus that hangs must not delay a sample.

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Timeout of all answers, from the connection's beginning or [`Bus::restart_timeout`].
const PATIENCE: Duration = Duration::from_millis(500);

/// Maximum size of an answer; answers to the calls made here are smaller.
const MOST_BYTES: usize = 1 << 20;

/// A connection to a bus, for calls to one service.
pub struct Bus {
    stream: Patient,
    service: &'static str,
    serial: u32,
}

impl Bus {
    /// Connects to the bus at `socket`, as the user that the process runs as.
    ///
    /// # Errors
    /// The socket's error; `TimedOut` or `WouldBlock` if the bus does not answer; `PermissionDenied` if it rejects this
    /// user.
    pub fn connect(socket: &Path, service: &'static str) -> io::Result<Self> {
        // If the bus hangs, its queue of connections fills up: do not wait for a place in the queue.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&fd, &SocketAddrUnix::new(socket)?)?;
        let stream = UnixStream::from(fd);
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut stream = Patient {
            stream,
            until: Instant::now() + PATIENCE,
        };
        let user = rustix::process::geteuid().as_raw().to_string();
        let user = gleaner_trust::hex::encode(user.as_bytes());
        stream
            .stream
            .write_all(format!("\0AUTH EXTERNAL {user}\r\n").as_bytes())?;
        if !line(&mut stream)?.starts_with(b"OK ") {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.stream.write_all(b"BEGIN\r\n")?;
        let mut bus = Self {
            stream,
            service: "org.freedesktop.DBus",
            serial: 0,
        };
        bus.call(
            "/org/freedesktop/DBus",
            "org.freedesktop.DBus",
            "Hello",
            &[],
        )?;
        bus.service = service;
        Ok(bus)
    }

    /// Restarts the timeout, on a connection that is kept for long.
    pub fn restart_timeout(&mut self) {
        self.stream.until = Instant::now() + PATIENCE;
    }

    /// Calls a method whose arguments are strings; returns the body of the answer.
    ///
    /// # Errors
    /// `NotFound` if the answer is an error, `InvalidData` if it is no D-Bus message, or the socket's error.
    pub fn call(
        &mut self,
        path: &str,
        interface: &str,
        member: &str,
        arguments: &[&str],
    ) -> io::Result<Vec<u8>> {
        self.serial += 1;
        let fields = [
            (1, "o", path),
            (2, "s", interface),
            (3, "s", member),
            (6, "s", self.service),
        ];
        let message = method_call(self.serial, &fields, arguments);
        self.stream.stream.write_all(&message)?;
        loop {
            let (kind, body) = self.receive()?;
            match kind {
                METHOD_RETURN => return Ok(body),
                ERROR => return Err(io::ErrorKind::NotFound.into()),
                _ => {} // a signal
            }
        }
    }

    fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head)?;
        let word = |at: usize| {
            u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize
        };
        let (body_bytes, fields_bytes) = (word(4), word(12).next_multiple_of(8));
        let is_sane = head[0] == b'l' && body_bytes.max(fields_bytes) <= MOST_BYTES;
        if !is_sane {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut rest = vec![0; fields_bytes + body_bytes];
        self.stream.read_exact(&mut rest)?;
        Ok((head[1], rest.split_off(fields_bytes)))
    }
}

/// A socket whose reads end at a given moment.
struct Patient {
    stream: UnixStream,
    until: Instant,
}

impl Read for Patient {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;

/// Reads one line of the handshake.
fn line(stream: &mut Patient) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") && line.len() < 256 {
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    Ok(line)
}

fn method_call(serial: u32, fields: &[(u8, &str, &str)], arguments: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    for argument in arguments {
        put_text(&mut body, argument);
    }
    let mut message = vec![b'l', METHOD_CALL, 0, 1];
    message.extend((body.len() as u32).to_le_bytes());
    message.extend(serial.to_le_bytes());
    let mut header = Vec::new(); // the header begins at byte 16, so this buffer is aligned like the message
    for &(code, kind, value) in fields {
        align(&mut header, 8);
        header.push(code);
        put_signature(&mut header, kind);
        put_text(&mut header, value);
    }
    if !arguments.is_empty() {
        align(&mut header, 8);
        header.push(8);
        put_signature(&mut header, "g");
        put_signature(&mut header, &"s".repeat(arguments.len()));
    }
    message.extend((header.len() as u32).to_le_bytes());
    message.extend(header);
    align(&mut message, 8);
    message.extend(body);
    message
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    align(bytes, 4);
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

fn put_signature(bytes: &mut Vec<u8>, signature: &str) {
    bytes.push(signature.len() as u8);
    bytes.extend(signature.as_bytes());
    bytes.push(0);
}

/// Reads values from a body; `None` if the body ends early.
pub struct Values<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Values<'a> {
    /// Makes a reader at the beginning of `body`.
    #[must_use]
    pub const fn new(body: &'a [u8]) -> Self {
        Self { body, at: 0 }
    }

    /// Returns true once all values are read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.at >= self.body.len()
    }

    /// Skips to the next offset that is a multiple of `to`.
    pub const fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.body.get(self.at..)?.get(..length)?;
        self.at += length;
        Some(taken)
    }

    /// Reads a 32-bit unsigned integer or a boolean (type `u` or `b`).
    pub fn word(&mut self) -> Option<u32> {
        self.align(4);
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Reads a 64-bit unsigned integer (type `t`).
    pub fn long(&mut self) -> Option<u64> {
        self.align(8);
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Reads a string or an object path (type `s` or `o`).
    pub fn text(&mut self) -> Option<&'a str> {
        let length = self.word()? as usize;
        let text = std::str::from_utf8(self.take(length)?).ok()?;
        self.take(1)?;
        Some(text)
    }

    /// Reads the type of a variant, which must be `wanted`; the value follows.
    pub fn variant(&mut self, wanted: &str) -> Option<()> {
        let length = usize::from(*self.take(1)?.first()?);
        let signature = self.take(length)?;
        self.take(1)?;
        (signature == wanted.as_bytes()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_panics(body in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut values = Values::new(&body);
            let _ = (values.variant("s"), values.text(), values.long(), values.word());
        }

        #[test]
        fn texts_are_read_back(texts in proptest::collection::vec(".{0,9}", 0..5)) {
            let mut body = Vec::new();
            for text in &texts {
                put_text(&mut body, text);
            }
            let mut values = Values::new(&body);
            for text in &texts {
                prop_assert_eq!(values.text(), Some(text.as_str()));
            }
            prop_assert!(values.is_empty());
        }
    }
}
