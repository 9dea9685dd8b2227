//! Requests and replies on one connection. Several requests are in progress at one time; all must finish
//! before the call returns.
//!
//! A caller blocks here, and its bytes are transferred without a copy. The clerk's loop
//! (`gleaner_paging::device::run`), in contrast, never blocks, and passes single pages through one buffer. Both share
//! only the messages of the protocol (`nbd::wire`).

use gleaner_paging::nbd::wire::{Command, Fault, Request, SimpleReply};
use std::io::{self, Read, Write};
use std::time::Instant;

/// Size limit of one request. It is so small that a server can answer the first request while further ones
/// arrive.
const REQUEST_BYTES: usize = 128 << 10;
/// Maximum number of requests in progress.
const WINDOW: usize = 16;

/// Size limit of one trim request, a whole number of pages.
const MOST_TRIMMED_BYTES: u64 = 1 << 31;

/// Reason why a server cannot be used any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeFailure {
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    #[error("the server: {0}")]
    Fault(#[from] Fault),
    #[error("no answer of a server's")]
    Foreign,
    #[error("other bytes than were stored")]
    Lying,
    #[error("the lease is over")]
    Over,
    #[error("failed before")]
    Before,
}

/// Reads from the server's memory into `into`.
pub(crate) fn read(
    wire: &mut (impl Read + Write),
    offset: u64,
    into: &mut [u8],
    until: Instant,
) -> Result<(), NodeFailure> {
    let (count, all) = (into.len().div_ceil(REQUEST_BYTES), into.len());
    let mut window = Window::new(count);
    let mut requests = Vec::with_capacity(WINDOW * Request::BYTES);
    while window.answered < count {
        requests.clear();
        while let Some(n) = window.next() {
            let (from, to) = bounds(n, all);
            requests.extend(request(Command::Read, n, offset + from as u64, to - from));
        }
        send(wire, &requests, until)?;
        let n = window.reply(wire, until)?;
        let (from, to) = bounds(n, all);
        fill(wire, &mut into[from..to], until)?;
    }
    Ok(())
}

/// Writes `bytes` to the server's memory.
pub(crate) fn write(
    wire: &mut (impl Read + Write),
    offset: u64,
    bytes: &[u8],
    until: Instant,
) -> Result<(), NodeFailure> {
    let count = bytes.len().div_ceil(REQUEST_BYTES);
    let mut window = Window::new(count);
    let mut message = Vec::with_capacity(Request::BYTES + bytes.len().min(REQUEST_BYTES));
    while window.answered < count {
        while let Some(n) = window.next() {
            let (from, to) = bounds(n, bytes.len());
            message.clear();
            message.extend(request(Command::Write, n, offset + from as u64, to - from));
            message.extend(&bytes[from..to]);
            send(wire, &message, until)?;
        }
        window.reply(wire, until)?;
    }
    Ok(())
}

/// Tells the server that these bytes can be returned to its host's owner. Bytes beyond the limit of one
/// request are not trimmed.
pub(crate) fn trim(
    wire: &mut (impl Read + Write),
    offset: u64,
    bytes: u64,
    until: Instant,
) -> Result<(), NodeFailure> {
    let bytes = bytes.min(MOST_TRIMMED_BYTES) as usize;
    let mut window = Window::new(1);
    while let Some(n) = window.next() {
        send(wire, &request(Command::Trim, n, offset, bytes), until)?;
    }
    window.reply(wire, until).map(|_| ())
}

fn bounds(n: usize, all: usize) -> (usize, usize) {
    let from = n * REQUEST_BYTES;
    (from, (from + REQUEST_BYTES).min(all))
}

fn request(command: Command, n: usize, offset: u64, bytes: usize) -> [u8; Request::BYTES] {
    let request = Request {
        flags: 0,
        command,
        cookie: n as u64,
        offset,
        bytes: bytes as u32, // within the limits that `bounds` and `trim` check
    };
    request.encode()
}

/// Requests in progress, at most [`WINDOW`]. Replies arrive in any order, each exactly once.
struct Window {
    sent: usize,
    answered: usize,
    is_open: Vec<bool>,
}

impl Window {
    fn new(count: usize) -> Self {
        Self {
            sent: 0,
            answered: 0,
            is_open: vec![true; count],
        }
    }

    /// Returns the index of the next request, if one may be sent now.
    fn next(&mut self) -> Option<usize> {
        let n = self.sent;
        let is_due = n < self.is_open.len() && n - self.answered < WINDOW;
        self.sent += usize::from(is_due);
        is_due.then_some(n)
    }

    fn reply(&mut self, wire: &mut impl Read, until: Instant) -> Result<usize, NodeFailure> {
        let mut bytes = [0; SimpleReply::BYTES];
        fill(wire, &mut bytes, until)?;
        let reply = SimpleReply::decode(&bytes).ok_or(NodeFailure::Foreign)?;
        let n = usize::try_from(reply.cookie).map_err(|_| NodeFailure::Foreign)?;
        let open = self.is_open[..self.sent]
            .get_mut(n)
            .ok_or(NodeFailure::Foreign)?;
        if !std::mem::take(open) {
            return Err(NodeFailure::Foreign);
        }
        if reply.error != 0 {
            return Err(Fault::from_number(reply.error).into());
        }
        self.answered += 1;
        Ok(n)
    }
}

fn in_time(until: Instant) -> io::Result<()> {
    if Instant::now() < until {
        return Ok(());
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn fill(wire: &mut impl Read, mut into: &mut [u8], until: Instant) -> io::Result<()> {
    while !into.is_empty() {
        in_time(until)?;
        match wire.read(into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => into = &mut into[count..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn send(wire: &mut impl Write, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        in_time(until)?;
        match wire.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    wire.flush()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Duration;

    const COUNT: usize = 3;

    /// Sends three read requests to a server that answers with `replies`: pairs of cookie and error.
    fn read_from(replies: &'static [(u64, u32)]) -> (Result<(), NodeFailure>, Vec<u8>) {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let server = thread::spawn(move || {
            let mut asked = [0; Request::BYTES];
            for n in 0..COUNT {
                theirs.read_exact(&mut asked).unwrap();
                let request = Request::decode(&asked).unwrap();
                assert_eq!(request.offset, 4096 + (n * REQUEST_BYTES) as u64);
            }
            for &(cookie, error) in replies {
                let head = SimpleReply { error, cookie }.encode();
                let body = vec![cookie as u8; REQUEST_BYTES];
                let is_sent = theirs
                    .write_all(&head)
                    .and_then(|()| theirs.write_all(&body));
                let _ = is_sent; // the client may have closed the connection
            }
        });
        let mut found = vec![9; COUNT * REQUEST_BYTES];
        let until = Instant::now() + Duration::from_secs(60);
        let result = read(&mut ours, 4096, &mut found, until);
        drop(ours);
        server.join().unwrap();
        (result, found)
    }

    #[test]
    fn replies_come_in_any_order_and_each_once() {
        let (result, found) = read_from(&[(2, 0), (0, 0), (1, 0)]);
        result.unwrap();
        for (n, part) in found.chunks(REQUEST_BYTES).enumerate() {
            assert!(part.iter().all(|&b| b as usize == n));
        }
        for replies in [&[(1, 0), (1, 0)][..], &[(3, 0)], &[(u64::MAX, 0)]] {
            let replies: &'static [(u64, u32)] = replies.to_vec().leak();
            assert!(matches!(read_from(replies).0, Err(NodeFailure::Foreign)));
        }
        let (over, _) = read_from(&[(0, 108)]);
        assert!(matches!(over, Err(NodeFailure::Fault(Fault::Shutdown))));
        let (gone, _) = read_from(&[(0, 0)]);
        assert!(matches!(gone, Err(NodeFailure::Io(_))));
    }
}
