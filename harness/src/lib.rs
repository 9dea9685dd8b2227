//! Helpers for tests of built programs: programs that run beside a test, a failing network, and waits for
//! conditions.
//!
//! Rooms, from the top; each uses only those after it: `address`, `disk`,
//! `memory_server`, `mutate`, `proc`, `programs`, `relay`, `running`, `random`.

mod address;
mod disk;
mod memory_server;
mod mutate;
mod proc;
mod programs;
mod random;
mod relay;
mod running;

pub use address::unused_address;
pub use disk::fill;
pub use memory_server::MemoryServer;
pub use mutate::mutations;
pub use proc::{bytes_at, peak_bytes, resident_bytes};
pub use programs::{program, succeed};
pub use random::{Random, number};
pub use relay::{Relay, Target};
pub use running::Running;

use std::time::{Duration, Instant, SystemTime};

/// Timeout of waits for a condition or for a line of output. It is longer than the collector waits for the
/// rest of a batch, and longer than the delay for which the collector sends senders away.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Waits until `condition` holds.
///
/// # Panics
/// If `condition` does not hold within [`PATIENCE`]; the message contains `what`.
#[track_caller]
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for_some(what, || condition().then_some(()));
}

/// Waits until `found` returns a value, and returns the value.
///
/// # Panics
/// If `found` returns no value within [`PATIENCE`]; the message contains `what`.
#[track_caller]
#[allow(clippy::panic)]
pub fn wait_for_some<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        if begin.elapsed() > PATIENCE {
            panic!("waited {} s for {what}", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Current time, in ms since 1970-01-01 UTC.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.as_millis() as i64
}
