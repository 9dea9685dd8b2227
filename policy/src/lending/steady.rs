//! Steady quota: it falls immediately, and rises only to the smallest figure of the last `rise_after_ms`.

use std::collections::VecDeque;

/// Maximum number of stored figures. More would require as many strict rises within the period.
const MOST: usize = 256;

/// Minimum figure of the last `rise_after_ms`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SteadyMinimum {
    /// Strictly increasing figures: a figure that is not below a later one can never be the minimum again.
    held: VecDeque<DatedFigure>,
}

/// A figure, and the time until which it was the newest; `i64::MAX` if it still is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct DatedFigure {
    bytes: u64,
    until_ms: i64,
}

impl SteadyMinimum {
    /// Forgets all figures: the next one counts immediately.
    pub(super) fn reset(&mut self) {
        self.held.clear();
    }

    /// Records the bytes available from `now_ms` on.
    pub(super) fn push(&mut self, bytes: u64, now_ms: i64, rise_after_ms: i64) {
        if let Some(newest) = self.held.back_mut() {
            newest.until_ms = now_ms;
        }
        while self.held.back().is_some_and(|held| held.bytes >= bytes) {
            self.held.pop_back();
        }
        self.held.push_back(DatedFigure {
            bytes,
            until_ms: i64::MAX,
        });
        let begin_ms = now_ms.saturating_sub(rise_after_ms);
        while self.held.front().is_some_and(|h| h.until_ms <= begin_ms) {
            self.held.pop_front();
        }
        if self.held.len() > MOST
            && let Some(second) = self.held.remove(1)
            && let Some(first) = self.held.front_mut()
        {
            first.until_ms = second.until_ms; // the smaller figure holds somewhat longer
        }
    }

    /// Time at which the quota next rises without a new figure; `None`: it does not.
    pub(super) fn rises_ms(&self, now_ms: i64, rise_after_ms: i64) -> Option<i64> {
        let begin_ms = now_ms.saturating_sub(rise_after_ms);
        let least = self.held.iter().find(|held| held.until_ms > begin_ms)?;
        let rises_ms = least.until_ms.checked_add(rise_after_ms)?;
        (least.until_ms != i64::MAX).then_some(rises_ms)
    }

    /// Bytes that may be lent at `now_ms`.
    pub(super) fn bytes(&self, now_ms: i64, rise_after_ms: i64) -> u64 {
        let begin_ms = now_ms.saturating_sub(rise_after_ms);
        let least = self.held.iter().find(|held| held.until_ms > begin_ms);
        least.map_or(0, |held| held.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn falls_at_once_and_rises_late() {
        let mut steady = SteadyMinimum::default();
        let mut at = |now_ms, bytes| {
            steady.push(bytes, now_ms, 100);
            steady.bytes(now_ms, 100)
        };
        // The first figure counts immediately. A lower figure counts until 100 ms after its end.
        assert_eq!(at(0, 8), 8);
        assert_eq!(at(10, 3), 3);
        assert_eq!(at(20, 9), 3);
        assert_eq!(at(50, 7), 3);
        assert_eq!(at(119, 9), 3);
        assert_eq!(at(120, 9), 7);
        assert_eq!(at(218, 9), 7);
        assert_eq!(at(219, 9), 9);
        assert_eq!(at(220, 2), 2);
        // Later, without a new figure, the result stays the same.
        assert_eq!(steady.bytes(10_000, 100), 2);
        assert_eq!(steady.rises_ms(10_000, 100), None);
        steady.reset();
        assert_eq!(steady.bytes(10_000, 100), 0);
    }

    #[test]
    fn what_is_kept_is_bounded_and_errs_downwards() {
        let mut steady = SteadyMinimum::default();
        for i in 0..2000 {
            steady.push(i, i as i64, 10_000);
            assert!(steady.held.len() <= MOST);
            assert_eq!(steady.bytes(i as i64, 10_000), 0);
        }
    }

    proptest! {
        /// Compares with the definition: the minimum of all figures that were the newest at any time of the
        /// window.
        #[test]
        fn the_least_of_the_window(
            steps in prop::collection::vec((0..40i64, 0..10u64), 1..40),
            later in 0..200i64,
        ) {
            let (mut steady, mut now_ms) = (SteadyMinimum::default(), 0);
            let mut all: Vec<(i64, u64)> = Vec::new();
            for (gap_ms, bytes) in steps {
                now_ms += gap_ms;
                steady.push(bytes, now_ms, 100);
                all.push((now_ms, bytes));
            }
            let slow = |now_ms: i64| {
                let until = |i: usize| all.get(i + 1).map_or(i64::MAX, |next| next.0);
                let in_window = (0..all.len()).filter(|&i| until(i) > now_ms - 100);
                // A figure replaced within the same millisecond was never in force.
                in_window.filter(|&i| until(i) > all[i].0).map(|i| all[i].1).min()
            };
            for now_ms in [now_ms, now_ms + later] {
                prop_assert!(Some(steady.bytes(now_ms, 100)) <= slow(now_ms));
                // The figure changes exactly at the stated time.
                let least = steady.bytes(now_ms, 100);
                match steady.rises_ms(now_ms, 100) {
                    Some(rises_ms) => {
                        prop_assert!(rises_ms > now_ms);
                        prop_assert_eq!(steady.bytes(rises_ms - 1, 100), least);
                        prop_assert!(steady.bytes(rises_ms, 100) > least);
                    }
                    None => prop_assert_eq!(steady.bytes(now_ms + 1000, 100), least),
                }
            }
            // Equal, unless a figure was replaced within its millisecond, which `steady` counts.
            if all.windows(2).all(|pair| pair[0].0 < pair[1].0) {
                prop_assert_eq!(Some(steady.bytes(now_ms + later, 100)), slow(now_ms + later));
            }
        }
    }
}
