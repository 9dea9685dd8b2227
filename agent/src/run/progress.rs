//! Progress of the sampling loop, for the thread that sends signs of life on the loop's behalf.

use crate::clock::monotonic_us;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Maximum time of one turn of the loop: a sample may wait for a CPU or a slow disk. A loop that takes
/// longer counts as hung, and no sign of life is sent until its next turn.
const LONGEST_TURN: Duration = Duration::from_secs(30);

/// Deadline of the sampling loop's next turn, set by the loop itself.
#[derive(Debug)]
pub(super) struct Progress {
    deadline_us: AtomicI64,
}

impl Progress {
    /// Progress of a loop that begins to work now.
    pub(super) fn new() -> Self {
        let progress = Self {
            deadline_us: AtomicI64::new(0),
        };
        progress.works();
        progress
    }

    /// Notes that the loop works from now on.
    pub(super) fn works(&self) {
        self.waits(Duration::ZERO);
    }

    /// Notes that the loop waits from now on, for at most `at_most`.
    pub(super) fn waits(&self, at_most: Duration) {
        let allowed = at_most.saturating_add(LONGEST_TURN).as_micros();
        let allowed_us = i64::try_from(allowed).unwrap_or(i64::MAX);
        let deadline_us = monotonic_us().saturating_add(allowed_us);
        self.deadline_us.store(deadline_us, Ordering::Relaxed);
    }

    /// Returns true if the loop is not late.
    pub(super) fn turns(&self) -> bool {
        monotonic_us() <= self.deadline_us.load(Ordering::Relaxed)
    }

    /// Progress of a loop that has always been late.
    #[cfg(test)]
    pub(super) const fn hung() -> Self {
        Self {
            deadline_us: AtomicI64::new(i64::MIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_late_after_its_wait_and_its_longest_turn() {
        let progress = Progress::new();
        assert!(progress.turns());
        let deadline_us = || progress.deadline_us.load(Ordering::Relaxed);
        let working_us = deadline_us();
        progress.waits(Duration::from_secs(90));
        assert!(deadline_us() >= working_us + 90_000_000);
        progress.waits(Duration::MAX);
        assert_eq!(deadline_us(), i64::MAX);
        let hung = Progress::hung();
        assert!(!hung.turns());
        hung.works();
        assert!(hung.turns());
    }
}
