//! The lowest of the figures of the last 24 hours, in steps of ten minutes.

use crate::forecast::LOW_WATER_S;
use std::collections::VecDeque;

const BUCKET_MS: i64 = 600_000;
const MOST: usize = (LOW_WATER_S * 1000 / BUCKET_MS) as usize + 1;

/// The lowest figure of every ten minutes, as far back as forecasts need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LowWater {
    /// Number of each ten-minute interval, counted from the clock's zero, and the lowest figure in it.
    buckets: VecDeque<(i64, u64)>,
}

impl LowWater {
    /// Adds a figure.
    pub fn push(&mut self, bytes: u64, now_ms: i64) {
        let bucket = now_ms.div_euclid(BUCKET_MS);
        match self.buckets.back_mut() {
            Some((last, least)) if *last >= bucket => *least = (*least).min(bytes),
            _ => self.buckets.push_back((bucket, bytes)),
        }
        let gone = |(number, _): &(i64, u64)| *number <= bucket.saturating_sub(MOST as i64);
        while self.buckets.front().is_some_and(gone) {
            self.buckets.pop_front();
        }
    }

    /// The lowest figure of the last 24 hours (and up to ten minutes more); `None` without figures.
    #[must_use]
    pub fn bytes(&self, now_ms: i64) -> Option<u64> {
        let first = now_ms.div_euclid(BUCKET_MS).saturating_sub(MOST as i64);
        let seen = self.buckets.iter().filter(|(number, _)| *number > first);
        seen.map(|(_, bytes)| *bytes).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn the_lowest_of_a_day() {
        let mut low = LowWater::default();
        assert_eq!(low.bytes(0), None);
        low.push(5, 0);
        low.push(9, HOUR);
        low.push(3, HOUR + 1);
        low.push(7, HOUR + 2);
        assert_eq!(low.bytes(2 * HOUR), Some(3));
        low.push(8, 24 * HOUR);
        assert_eq!(low.bytes(24 * HOUR), Some(3));
        assert_eq!(low.bytes(25 * HOUR), Some(3));
        assert_eq!(low.bytes(25 * HOUR + BUCKET_MS), Some(8));
        assert_eq!(low.bytes(50 * HOUR), None);
        for minute in 0..10_000 {
            low.push(1, 50 * HOUR + minute * 60_000);
            assert!(low.buckets.len() <= MOST);
        }
    }
}
