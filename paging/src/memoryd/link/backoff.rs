//! How long to wait after a failure: longer each time, and by chance, so that many hosts that lost their recruiter
//! together do not come back together.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Exponential; half of each wait is by chance.
#[derive(Debug)]
pub(super) struct Backoff {
    failures_count: u32,
    longest: Duration,
}

impl Backoff {
    /// Never longer than the time between two announcements: a recruiter that was restarted knows every host within one.
    pub(super) fn new(announce_every: Duration) -> Self {
        Self {
            failures_count: 0,
            longest: announce_every.min(LONGEST),
        }
    }

    /// After another failure: a half to the whole of 0.1 s, 0.2 s, 0.4 s … 10 s.
    pub(super) fn next(&mut self) -> Duration {
        let doubled = 1u32.checked_shl(self.failures_count).unwrap_or(u32::MAX);
        let most = FIRST.saturating_mul(doubled).min(self.longest);
        self.failures_count = self.failures_count.saturating_add(1);
        most.mul_f64(0.5 + random_share() / 2.0)
    }
}

/// From 0 up to 1; in the middle where there is no chance to be had.
fn random_share() -> f64 {
    gleaner_trust::random::bytes::<4>().map_or(0.5, |bytes| {
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_ten_seconds_and_are_spread() {
        let mut backoff = Backoff::new(Duration::from_secs(60));
        for most_ms in [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000] {
            let wait_ms = backoff.next().as_millis();
            assert!(
                (most_ms / 2..=most_ms).contains(&wait_ms),
                "{wait_ms} of {most_ms}"
            );
        }
        backoff.failures_count = u32::MAX;
        assert!(backoff.next() >= LONGEST / 2);
        let mut often = Backoff::new(Duration::from_millis(300));
        assert!((0..9).all(|_| often.next() <= Duration::from_millis(300)));
        let waits: std::collections::BTreeSet<_> =
            (0..20).map(|_| Backoff::new(LONGEST).next()).collect();
        assert!(waits.len() > 10, "{waits:?}");
    }
}
