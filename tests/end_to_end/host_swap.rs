//! Swap, which belongs to the whole machine: one test at a time has it.

use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits until no other test of this program has swap.
pub(crate) fn host_swap() -> MutexGuard<'static, ()> {
    // A failed test has cleaned up, so a poisoned lock can be used.
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}
