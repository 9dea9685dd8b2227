//! Tests of built programs: a program that runs beside a test and is heard, and waits for conditions.
//!
//! Rooms, from the top; each uses only those after it: `running`.

mod running;

pub use running::Running;

use std::time::{Duration, Instant};

/// Longest wait for a condition or a line: longer than the collector waits for the rest of a batch, and than it asks
/// senders to stay away.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Waits until `condition` holds.
///
/// # Panics
/// When it does not hold within [`PATIENCE`]; with `what` was waited for.
#[track_caller]
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for_some(what, || condition().then_some(()));
}

/// Waits until `found` returns something, and returns that.
///
/// # Panics
/// When it returns nothing within [`PATIENCE`]; with `what` was waited for.
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
