//! The configured time between samples, which may change when the agent is restarted.

/// Configured intervals, each with the time from which it holds.
#[derive(Debug, Default)]
pub struct Intervals {
    /// Pairs ordered by time: ms since 1970-01-01 UTC, interval in ms. Empty if no interval was recorded.
    configured: Vec<(i64, i64)>,
    typical_ms: Option<i64>,
}

impl Intervals {
    /// Takes the intervals in the host's rows about itself, as pairs: ms since 1970-01-01 UTC, interval in
    /// ms. If no row has an interval, the median step between the samples at `time_ms` is used.
    #[must_use]
    pub fn new(described: impl IntoIterator<Item = (i64, Option<i64>)>, time_ms: &[i64]) -> Self {
        let described = described.into_iter();
        let stated = described.filter_map(|(from_ms, interval_ms)| Some((from_ms, interval_ms?)));
        let mut configured: Vec<_> = stated.filter(|(_, interval_ms)| *interval_ms > 0).collect();
        configured.sort_unstable();
        let mut steps: Vec<i64> = time_ms
            .windows(2)
            .map(|w| w[1].saturating_sub(w[0]))
            .filter(|step| *step > 0)
            .collect();
        steps.sort_unstable();
        Self {
            configured,
            typical_ms: steps.get(steps.len() / 2).copied(),
        }
    }

    /// Interval in force at `time_ms`, in ms: the last one configured before that time, otherwise the first
    /// one, otherwise the median step.
    #[must_use]
    pub fn at(&self, time_ms: i64) -> i64 {
        let later = self
            .configured
            .partition_point(|(from, _)| *from <= time_ms);
        self.configured
            .get(later.saturating_sub(1))
            .map(|(_, interval_ms)| *interval_ms)
            .or(self.typical_ms)
            .unwrap_or(i64::MAX)
    }

    /// Last interval in force, in ms; `None` if no interval is known.
    #[must_use]
    pub fn last(&self) -> Option<i64> {
        self.configured
            .last()
            .map(|(_, interval_ms)| *interval_ms)
            .or(self.typical_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_in_force_then_the_first_then_the_median() {
        let described = [(100, Some(90)), (500, Some(1)), (300, Some(0)), (400, None)];
        let two = Intervals::new(described, &[]);
        assert_eq!([50, 100, 499, 500].map(|t| two.at(t)), [90, 90, 90, 1]);
        assert_eq!(two.last(), Some(1));
        let none = Intervals::new([], &[0, 10, 20, 30, 500, 400]);
        assert_eq!((none.at(0), none.last()), (10, Some(10)));
        assert_eq!(Intervals::new([(5, None)], &[7]).last(), None);
    }
}
