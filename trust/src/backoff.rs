//! Waits between failing attempts: each longer than the one before, and partly random. Clients that lost a
//! server at the same time therefore do not return at the same time.

use crate::random;
use std::time::Duration;

/// Waits after consecutive failures: a random time up to a limit that doubles with each failure.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures_count: u32,
}

impl Backoff {
    /// Starts without failures. After the first failure, a wait is at most `first`. The limit doubles with
    /// each further failure, up to `longest`.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures_count: 0,
        }
    }

    /// Forgets all failures. Call this after a success.
    pub const fn reset(&mut self) {
        self.failures_count = 0;
    }

    /// Returns the wait after another failure. If the server requested a wait (`asked`), the result is that
    /// wait plus a random part of it. So the server can lengthen the wait, but not shorten it.
    #[must_use]
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        self.next_by(asked, random::share())
    }

    fn next_by(&mut self, asked: Option<Duration>, share: f64) -> Duration {
        let doubled = 1u32.checked_shl(self.failures_count).unwrap_or(u32::MAX);
        let most = self.first.saturating_mul(doubled).min(self.longest);
        self.failures_count = self.failures_count.saturating_add(1);
        let asked = asked.unwrap_or_default();
        let spread = asked.saturating_add(asked.min(most).mul_f64(share));
        spread.max(most.mul_f64(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(300);

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        let longest: Vec<u64> = (0..11)
            .map(|_| backoff.next_by(None, 1.0).as_secs())
            .collect();
        assert_eq!(longest, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.next_by(None, 0.5).as_secs(), 150);
        assert_eq!(backoff.next_by(None, 0.0), Duration::ZERO);
        backoff.failures_count = u32::MAX;
        assert_eq!(backoff.next_by(None, 1.0), LONGEST);
        backoff.reset();
        assert_eq!(backoff.next_by(None, 1.0), FIRST);
        let waits: std::collections::BTreeSet<_> = (0..20)
            .map(|_| Backoff::new(FIRST, LONGEST).next(None))
            .collect();
        assert!(waits.len() > 10, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= FIRST));
    }

    #[test]
    fn a_wait_that_the_server_asks_for_is_the_least() {
        let ask = |seconds, share| {
            let asked = Some(Duration::from_secs(seconds));
            Backoff::new(FIRST, LONGEST)
                .next_by(asked, share)
                .as_millis()
        };
        assert_eq!(ask(30, 0.0), 30_000);
        assert_eq!(ask(30, 0.5), 30_500);
        assert_eq!(ask(0, 1.0), 1_000);
        let most = Backoff::new(FIRST, LONGEST).next_by(Some(Duration::MAX), 1.0);
        assert_eq!(most, Duration::MAX);
    }
}
