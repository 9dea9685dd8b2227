//! Dodo's refraction period: who was refused, or lost a node, does not ask again for a while, since it would be refused again.

use std::time::{Duration, Instant};

/// Whether memory may be asked for.
#[derive(Debug)]
pub(crate) struct Refraction {
    period: Duration,
    until: Option<Instant>,
}

impl Refraction {
    pub(crate) const fn new(period: Duration) -> Self {
        Self {
            period,
            until: None,
        }
    }

    /// Something failed.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.until = now.checked_add(self.period);
    }

    /// How long not yet; `None`: at once.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_followed_by_one_whole_period_and_a_second_one_by_another() {
        let mut refraction = Refraction::new(Duration::from_secs(60));
        let now = Instant::now();
        let after = |s| now + Duration::from_secs(s);
        assert_eq!(refraction.left(now), None);
        refraction.begin(now);
        assert_eq!(refraction.left(after(1)), Some(Duration::from_secs(59)));
        assert_eq!(refraction.left(after(60)), None);
        refraction.begin(after(30));
        assert_eq!(refraction.left(after(60)), Some(Duration::from_secs(30)));
        assert_eq!(refraction.left(after(90)), None);
    }
}
