//! Availability periods as in the paper: as long as they were seen. If missing samples or unknown idleness
//! cut the start or end of a period, the seen part counts.

use crate::availability::periods::window::Window;
use crate::statistics::bootstrap::Resamples;
use gleaner_schemas::findings::AvailabilityPeriods;
use serde::{Deserialize, Serialize};

/// The length of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SeenLength {
    ms: i64,
    is_cut: bool,
}

/// Periods of one region size on one or several hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeenPeriods {
    /// Lengths of the periods that are not shorter than the minimum.
    lengths: Vec<SeenLength>,
    /// Sum and number of the lengths, by host.
    by_host: Vec<(i64, i64)>,
    /// Time in which the region was available, short periods included.
    available_ms: i64,
    /// Time that samples cover.
    covered_ms: i64,
}

impl SeenPeriods {
    /// Periods of a region of `region_bytes` in one host's windows; `covered_ms` is all time that the
    /// host's samples cover.
    pub(crate) fn of(
        time_ms: &[i64],
        available_bytes: &[i64],
        windows: &[Window],
        region_bytes: i64,
        minimum_ms: f64,
        covered_ms: i64,
    ) -> Self {
        let mut found = Self {
            covered_ms,
            ..Self::default()
        };
        for window in windows {
            for period in window.periods(time_ms, available_bytes, region_bytes) {
                let length = SeenLength {
                    ms: period.length_ms(),
                    is_cut: !period.start_seen || period.end.is_none(),
                };
                found.available_ms = found.available_ms.saturating_add(length.ms);
                if period.is_kept(minimum_ms) {
                    found.lengths.push(length);
                }
            }
        }
        let sum_ms = found.lengths.iter().map(|l| l.ms).sum();
        found.by_host = vec![(sum_ms, found.lengths.len() as i64)];
        found
    }

    /// Pools the periods of other hosts.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.lengths.extend_from_slice(&other.lengths);
        self.by_host.extend_from_slice(&other.by_host);
        self.available_ms = self.available_ms.saturating_add(other.available_ms);
        self.covered_ms = self.covered_ms.saturating_add(other.covered_ms);
    }

    /// Number of pooled hosts.
    pub(crate) fn hosts_count(&self) -> usize {
        self.by_host.len()
    }

    /// Writes the observed periods.
    pub(crate) fn write(&self, resamples: &Resamples, to: &mut AvailabilityPeriods) {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        let n = lengths.len();
        let seconds = |ms: f64| ms / 1000.0;
        let at = |i: usize| lengths.get(i).map(|l| l.ms as f64);
        let middle = at(n.saturating_sub(1) / 2).zip(at(n / 2));
        let total_ms: f64 = lengths.iter().map(|l| l.ms as f64).sum();
        let hosts = self
            .by_host
            .iter()
            .map(|&(sum_ms, n)| (sum_ms as f64, n as f64));
        let interval = resamples.ratio_interval(&hosts.collect::<Vec<_>>());
        to.periods_count = n as i64;
        to.censored_count = lengths.iter().filter(|l| l.is_cut).count() as i64;
        to.mean_s = (n > 0).then(|| seconds(total_ms / n as f64));
        to.mean_low_s = interval.map(|i| seconds(i.low));
        to.mean_high_s = interval.map(|i| seconds(i.high));
        to.median_s = middle.map(|(a, b)| seconds((a + b) / 2.0));
        // Quantiles are values of nearest rank, as in all measures.
        let rank = |share: f64| ((share * n as f64).ceil() as usize).max(1) - 1;
        to.p5_s = at(rank(0.05)).map(seconds);
        to.p95_s = at(rank(0.95)).map(seconds);
        to.longest_s = lengths.last().map(|l| seconds(l.ms as f64));
        to.available_time_share = (self.covered_ms > 0)
            .then(|| (self.available_ms as f64 / self.covered_ms as f64).min(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_hosts::derived::IdlePeriod;
    use gleaner_schemas::findings::EndCause;
    use proptest::prelude::*;
    use std::ops::Range;

    fn all(time_ms: &[i64], segments: &[Range<usize>]) -> Vec<Window> {
        segments
            .iter()
            .filter_map(|s| Window::of_run(time_ms, s))
            .collect()
    }

    fn finding(periods: &SeenPeriods) -> AvailabilityPeriods {
        let mut finding = AvailabilityPeriods::default();
        periods.write(&Resamples::draw(periods.hosts_count(), 100), &mut finding);
        finding
    }

    fn lengths(periods: &SeenPeriods) -> Vec<(i64, bool)> {
        periods.lengths.iter().map(|l| (l.ms, l.is_cut)).collect()
    }

    #[test]
    fn scope_all_worked_by_hand() {
        // time      0    90   180   270   360   450 | gap | 1000  1090
        // available 5     5     3     5     3     4            4     4
        let time = [0, 90, 180, 270, 360, 450, 1000, 1090];
        let available = [5, 5, 3, 5, 3, 4, 4, 4];
        let windows = all(&time, &[0..6, 6..8]);
        let of = |bytes, minimum| SeenPeriods::of(&time, &available, &windows, bytes, minimum, 540);
        // 5 bytes: 0-180 from the trace's start (cut); one sample at 270 counts as 90.
        assert_eq!(lengths(&of(5, 0.0)), [(180, true), (90, false)]);
        assert_eq!(lengths(&of(5, 91.0)), [(180, true)]);
        // 4 bytes: also 1000-1090, cut at both ends; the single sample before the gap has no length.
        assert_eq!(lengths(&of(4, 0.0)), [(180, true), (90, false), (90, true)]);
        // 3 bytes: memory is never below 3.
        assert_eq!(lengths(&of(3, 0.0)), [(450, true), (90, true)]);
        assert_eq!(lengths(&of(6, 0.0)), []);

        let finding = finding(&of(4, 0.0));
        assert_eq!((finding.periods_count, finding.censored_count), (3, 2));
        assert_eq!(finding.mean_s, Some(0.12));
        assert_eq!(finding.median_s, Some(0.09));
        assert_eq!((finding.p5_s, finding.p95_s), (Some(0.09), Some(0.18)));
        assert_eq!(finding.longest_s, Some(0.18));
        assert_eq!(finding.available_time_share, Some(360.0 / 540.0));
    }

    #[test]
    fn scope_idle_worked_by_hand() {
        // Idle from 100 to 400 (the owner returns), samples at 100, 200, 300.
        let time = [0, 100, 200, 300, 410];
        let idle = IdlePeriod {
            samples: 1..4,
            from_ms: 100,
            to_ms: 400,
            is_start_censored: false,
            end: Some(EndCause::Owner),
        };
        let windows = [Window::of_idle(&idle)];
        let of = |available: [i64; 5]| {
            lengths(&SeenPeriods::of(&time, &available, &windows, 5, 0.0, 410))
        };
        // Ends with the owner's return, not with the trace: nothing is cut.
        assert_eq!(of([9, 9, 9, 9, 9]), [(300, false)]);
        // Memory falls before the owner returns.
        assert_eq!(of([9, 9, 0, 9, 9]), [(100, false), (100, false)]);
        assert_eq!(of([9, 0, 0, 0, 9]), []);
    }

    #[test]
    fn nothing_seen_is_absent_not_zero() {
        let none = finding(&SeenPeriods::of(&[], &[], &[], 1, 0.0, 0));
        assert_eq!(none, AvailabilityPeriods::default());
    }

    #[test]
    fn hosts_that_differ_leave_the_mean_in_doubt() {
        // One host has one period of 100, another has three of 20.
        let time = [0, 100, 200, 220, 240, 260, 280, 300];
        let of = |available: [i64; 8]| {
            let windows = all(&time, &[0..8]);
            SeenPeriods::of(&time, &available, &windows, 5, 0.0, 300)
        };
        let mut both = of([0, 5, 0, 0, 0, 0, 0, 0]);
        assert_eq!(finding(&both).mean_low_s, None);
        both.merge(&of([0, 0, 5, 0, 5, 0, 5, 0]));
        let found = finding(&both);
        assert_eq!(found.mean_s, Some(0.04));
        assert_eq!(
            (found.mean_low_s, found.mean_high_s),
            (Some(0.02), Some(0.1))
        );
    }

    /// The definition without shortcuts: `from..to` is a period if all of its samples have enough memory and
    /// neither neighbour in the run has.
    fn slowly(time: &[i64], available: &[i64], run: &Range<usize>, bytes: i64) -> Vec<(i64, bool)> {
        let mut found = Vec::new();
        for from in run.clone() {
            for to in from + 1..=run.end {
                let full = (from..to).all(|i| available[i] >= bytes);
                let starts = from == run.start || available[from - 1] < bytes;
                let ends = to == run.end || available[to] < bytes;
                if full && starts && ends {
                    let end = if to == run.end {
                        time[to - 1]
                    } else {
                        time[to]
                    };
                    let length = end - time[from];
                    if length > 0 {
                        found.push((length, from == run.start || to == run.end));
                    }
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn equal_the_slow_version(
            steps in prop::collection::vec((1..100i64, 0..4i64), 0..40),
            cut in 0..40usize,
            bytes in 0..5i64,
        ) {
            let time: Vec<i64> = steps.iter().scan(0, |t, s| { *t += s.0; Some(*t) }).collect();
            let available: Vec<i64> = steps.iter().map(|s| s.1).collect();
            let cut = cut.min(time.len());
            let runs = [0..cut, cut..time.len()];
            let found = SeenPeriods::of(&time, &available, &all(&time, &runs), bytes, 0.0, 1);
            let expected: Vec<_> = runs
                .iter()
                .flat_map(|run| slowly(&time, &available, run, bytes))
                .collect();
            prop_assert_eq!(lengths(&found), expected);
        }

        /// A larger region is never available for longer, and pooled hosts count as their sum.
        #[test]
        fn larger_regions_last_no_longer(
            available in prop::collection::vec(0..10i64, 1..40), bytes in 0..10i64
        ) {
            let time: Vec<i64> = (0..available.len() as i64).map(|i| i * 90).collect();
            let windows = all(&time, &[0..time.len()]);
            let of = |bytes| SeenPeriods::of(&time, &available, &windows, bytes, 0.0, 1);
            let (smaller, larger) = (of(bytes), of(bytes + 1));
            prop_assert!(larger.available_ms <= smaller.available_ms);
            let mut both = smaller.clone();
            both.merge(&larger);
            prop_assert_eq!(both.lengths.len(), smaller.lengths.len() + larger.lengths.len());
        }
    }
}
