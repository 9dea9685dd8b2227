//! Both sides of the protocol as functions of arbitrary bytes, for the fuzzer and for replaying its
//! findings.

use super::channel::{Channel, PlainStream};
use super::client::{Wire, introduce};
use super::negotiate::{Outcome, negotiate};
use super::transmit::transmit;
use super::{Door, Leases, Load};
use crate::store::{Options, Store};
use gleaner_daemon::shares::Shares;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const LEASE_BYTES: u64 = 2 << 20;
/// Timeout that is long enough for any busy machine. The stranger's end is closed, so that nothing ever waits
/// that long.
const PATIENCE: Duration = Duration::from_secs(600);
/// Maximum number of bytes to send: they fit into a socket's buffer without a reader. More bytes would only
/// be slow, as each read request in them may be answered with 2 MiB.
const MOST_BYTES: usize = 8 << 10;

/// Returns a socket on which a stranger has sent `bytes` and closed its half. The thread reads all answers.
fn stranger(bytes: &[u8]) -> io::Result<(UnixStream, JoinHandle<()>)> {
    let (mut theirs, ours) = UnixStream::pair()?;
    theirs.write_all(&bytes[..bytes.len().min(MOST_BYTES)])?;
    theirs.shutdown(Shutdown::Write)?;
    let taking = thread::spawn(move || {
        let mut scrap = vec![0; 64 << 10];
        while theirs.read(&mut scrap).is_ok_and(|count| count > 0) {}
    });
    Ok((ours, taking))
}

/// Serves one client that sends `bytes`, from the greeting on.
///
/// # Errors
/// Reason why the connection ended.
pub fn server(bytes: &[u8]) -> io::Result<()> {
    let options = Options {
        wants_huge: false,
        wants_locked: false,
    };
    let store = Store::new(LEASE_BYTES, 7, options).map_err(io::Error::other)?;
    store.open("a", "client", LEASE_BYTES);
    let leases = Leases {
        store: Arc::new(store),
        default: Some(("a".to_owned(), 7)),
        shares: Arc::new(Shares::whole(4)),
    };
    let (ours, taking) = stranger(bytes)?;
    let channel = Channel::Plain(PlainStream::Unix(ours));
    let ended = match negotiate(channel, &leases, &Door::Open, PATIENCE) {
        Ok(Outcome::Transmit(channel, contents)) => {
            transmit(channel, &contents, &Load::default()).map_err(io::Error::other)
        }
        Ok(Outcome::Ended) => Ok(()),
        Err(e) => Err(io::Error::other(e)),
    };
    let _ = taking.join(); // the thread only reads
    ended
}

/// Connects to a server that sends `bytes`, and reads its answers with `take`.
///
/// # Errors
/// Reason why the connection ended.
pub fn client<T>(bytes: &[u8], take: impl FnOnce(Wire) -> io::Result<T>) -> io::Result<T> {
    let (ours, taking) = stranger(bytes)?;
    let wire = Wire::plain(PlainStream::Unix(ours));
    let taken = match introduce(wire, "a@7", None, PATIENCE) {
        Ok((wire, _)) => take(wire),
        Err(e) => Err(io::Error::other(e)),
    };
    let _ = taking.join(); // the thread only reads
    taken
}
