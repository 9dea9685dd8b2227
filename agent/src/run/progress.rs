//! Progress of the sampling loop, for the thread that gives signs of life in its place.

use crate::clock::monotonic_us;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Longest turn of the loop: a sample may wait for a CPU or a slow disk. A loop that is later than this
/// counts as hung, and no sign of life is sent until it turns again.
const LONGEST_TURN: Duration = Duration::from_secs(30);

/// Time by which the sampling loop is due to turn again, set by the loop itself.
#[derive(Debug)]
pub(super) struct Progress {
    deadline_us: AtomicI64,
}

impl Progress {
    /// A loop that begins to work now.
    pub(super) fn new() -> Self {
        let progress = Self {
            deadline_us: AtomicI64::new(0),
        };
        progress.works();
        progress
    }

    /// The loop works from now on.
    pub(super) fn works(&self) {
        self.waits(Duration::ZERO);
    }

    /// The loop waits from now on, for `at_most` so long.
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

    /// A loop that has been late for ever.
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
