//! How long to wait after a failure: longer each time, and by chance, so that many hosts that failed
//! together do not come back together.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// What a collector may ask for at most.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);

/// Exponential, with full jitter.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures_count: u32,
}

impl Backoff {
    /// After another failure: a share of 1 s, 2 s, 4 s … 5 min. Where the collector asked for more, what it
    /// asked for (an hour at most) and a share of the same again.
    pub(crate) fn next(&mut self, asked: Option<Duration>, share: f64) -> Duration {
        let doubled = 1u32.checked_shl(self.failures_count).unwrap_or(u32::MAX);
        let most = FIRST.saturating_mul(doubled).min(LONGEST);
        self.failures_count = self.failures_count.saturating_add(1);
        match asked.map(|asked| asked.min(LONGEST_ASKED)) {
            Some(asked) => asked + asked.min(most).mul_f64(share),
            None => most.mul_f64(share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes_and_are_spread() {
        let mut backoff = Backoff::default();
        let longest: Vec<u64> = (0..11).map(|_| backoff.next(None, 1.0).as_secs()).collect();
        assert_eq!(longest, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.next(None, 0.5).as_secs(), 150);
        assert_eq!(backoff.next(None, 0.0), Duration::ZERO);
        backoff.failures_count = u32::MAX;
        assert_eq!(backoff.next(None, 1.0), LONGEST);
    }

    #[test]
    fn what_the_collector_asks_for_is_waited_at_least_and_an_hour_at_most() {
        let ask = |seconds, share| {
            let asked = Some(Duration::from_secs(seconds));
            Backoff::default().next(asked, share).as_millis()
        };
        assert_eq!(ask(30, 0.0), 30_000);
        assert_eq!(ask(30, 0.5), 30_500);
        assert_eq!(ask(0, 1.0), 0);
        assert_eq!(ask(u64::MAX, 0.0), 3_600_000);
    }
}
