//! Availability periods: how long a region of s bytes stays available.
//!
//! Convention: a sample stands for the interval that follows it. A period lasts from its first sample
//! with `available >= s` to the first sample below, so one sample at 90 s counts 90 s; inside an idle
//! period it lasts to that period's end at the latest. Where samples end first, it lasts to the last
//! one seen and is censored; so is one that samples begin with, since its start was not seen.

use crate::error::Result;
use crate::measure::Measure;
use crate::owner::idle::IdlePeriod;
use crate::statistics::survival::{Length, restricted_mean_ms};
use crate::trace::HostTrace;
use gleaner_schemas::findings::{AvailabilityPeriods, Findings, Parameters, Scope};
use std::ops::Range;

/// A stretch of samples in which periods are sought.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) samples: Range<usize>,
    /// A period that is still open there ends there.
    pub(crate) end_ms: i64,
    /// Whether what came before, and after, could not be seen.
    pub(crate) start_cut: bool,
    pub(crate) end_cut: bool,
}

impl Window {
    /// Scope `all`: a run of samples, cut at both ends. `None` for an empty one.
    pub(crate) fn of_segment(time_ms: &[i64], segment: &Range<usize>) -> Option<Self> {
        Some(Self {
            samples: segment.clone(),
            end_ms: *time_ms.get(segment.clone())?.last()?,
            start_cut: true,
            end_cut: true,
        })
    }

    /// Scope `idle`.
    pub(crate) fn of_idle(period: &IdlePeriod) -> Self {
        Self {
            samples: period.samples.clone(),
            end_ms: period.to_ms,
            start_cut: period.start_cut,
            end_cut: period.end_cut,
        }
    }
}

/// The periods of every region size, in all time and in idle time.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    all: Vec<RegionPeriods>,
    /// Empty where no host can tell when it was idle.
    idle: Vec<RegionPeriods>,
}

impl Measure for Periods {
    fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Result<Self> {
        let samples = &trace.samples;
        let of = |windows: &[Window]| {
            let of_region = |&region_bytes: &i64| {
                RegionPeriods::of(
                    &samples.time_ms,
                    &samples.available_bytes,
                    windows,
                    region_bytes,
                    parameters.minimum_period_s * 1000.0,
                    trace.covered_ms(),
                )
            };
            parameters.region_bytes.iter().map(of_region).collect()
        };
        let runs = trace.segments.iter();
        let runs: Vec<Window> = runs
            .filter_map(|run| Window::of_segment(&samples.time_ms, run))
            .collect();
        let absences: Vec<Window> = (trace.idleness.periods.iter())
            .map(Window::of_idle)
            .collect();
        Ok(Self {
            all: of(&runs),
            idle: if trace.idle_can_be_told() {
                of(&absences)
            } else {
                Vec::new()
            },
        })
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.all, &other.all), (&mut self.idle, &other.idle)] {
            if mine.is_empty() {
                mine.clone_from(theirs);
            } else {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    mine.merge(theirs);
                }
            }
        }
    }

    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        for (scope, periods) in [(Scope::All, &self.all), (Scope::Idle, &self.idle)] {
            let by_region = parameters.region_bytes.iter().zip(periods);
            let records =
                by_region.map(|(&bytes, p)| p.finding(size_class.to_owned(), scope, bytes));
            findings.availability_periods.extend(records);
        }
    }
}

/// Periods of one region size on one or several hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RegionPeriods {
    /// Those not shorter than the minimum.
    lengths: Vec<Length>,
    /// Time in which the region was available, short periods included.
    available_ms: i64,
    /// Time that samples cover.
    covered_ms: i64,
}

impl RegionPeriods {
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
            let enough = |i: &usize| available_bytes[*i] >= region_bytes;
            let mut next = window.samples.start;
            while let Some(first) = (next..window.samples.end).find(enough) {
                let below = (first..window.samples.end).find(|i| !enough(i));
                next = below.unwrap_or(window.samples.end);
                let to_ms = below.map_or(window.end_ms, |i| time_ms[i]);
                let start_cut = window.start_cut && first == window.samples.start;
                let end_cut = window.end_cut && below.is_none();
                let length = Length {
                    ms: to_ms.saturating_sub(time_ms[first]),
                    censored: start_cut || end_cut,
                };
                found.available_ms += length.ms;
                // One sample before a cut was not seen to last at all.
                if length.ms > 0 && length.ms as f64 >= minimum_ms {
                    found.lengths.push(length);
                }
            }
        }
        found
    }

    /// Pools the periods of other hosts.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.lengths.extend_from_slice(&other.lengths);
        self.available_ms = self.available_ms.saturating_add(other.available_ms);
        self.covered_ms = self.covered_ms.saturating_add(other.covered_ms);
    }

    /// As a finding.
    pub(crate) fn finding(
        &self,
        size_class: String,
        scope: Scope,
        region_bytes: i64,
    ) -> AvailabilityPeriods {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        let n = lengths.len();
        let total_ms: f64 = lengths.iter().map(|l| l.ms as f64).sum();
        let seconds = |ms: f64| ms / 1000.0;
        let median_ms =
            || Some((lengths.get((n - 1) / 2)?.ms as f64 + lengths.get(n / 2)?.ms as f64) / 2.0);
        AvailabilityPeriods {
            size_class,
            scope,
            region_bytes,
            periods: n as i64,
            censored: lengths.iter().filter(|l| l.censored).count() as i64,
            mean_s: (n > 0).then(|| seconds(total_ms / n as f64)),
            median_s: if n > 0 {
                median_ms().map(seconds)
            } else {
                None
            },
            longest_s: lengths.last().map(|l| seconds(l.ms as f64)),
            restricted_mean_s: restricted_mean_ms(&lengths).map(seconds),
            available_time_share: (self.covered_ms > 0)
                .then(|| (self.available_ms as f64 / self.covered_ms as f64).min(1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(time_ms: &[i64], segments: &[Range<usize>]) -> Vec<Window> {
        segments
            .iter()
            .filter_map(|s| Window::of_segment(time_ms, s))
            .collect()
    }

    fn lengths(periods: &RegionPeriods) -> Vec<(i64, bool)> {
        periods.lengths.iter().map(|l| (l.ms, l.censored)).collect()
    }

    #[test]
    fn scope_all_worked_by_hand() {
        // time      0    90   180   270   360   450 | gap | 1000  1090
        // available 5     5     3     5     3     4            4     4
        let time = [0, 90, 180, 270, 360, 450, 1000, 1090];
        let available = [5, 5, 3, 5, 3, 4, 4, 4];
        let windows = all(&time, &[0..6, 6..8]);
        let of =
            |bytes, minimum| RegionPeriods::of(&time, &available, &windows, bytes, minimum, 540);
        // 5 bytes: 0-180 from the trace's start (cut), one sample at 270 counts 90.
        assert_eq!(lengths(&of(5, 0.0)), [(180, true), (90, false)]);
        assert_eq!(lengths(&of(5, 91.0)), [(180, true)]);
        // 4 bytes: besides, one sample before the gap has no length, and 1000-1090 is cut twice.
        assert_eq!(lengths(&of(4, 0.0)), [(180, true), (90, false), (90, true)]);
        // 3 bytes: never below.
        assert_eq!(lengths(&of(3, 0.0)), [(450, true), (90, true)]);
        assert_eq!(lengths(&of(6, 0.0)), []);

        let finding = of(4, 0.0).finding("all".into(), Scope::All, 4);
        assert_eq!((finding.periods, finding.censored), (3, 2));
        assert_eq!(finding.mean_s, Some(0.12));
        assert_eq!(finding.median_s, Some(0.09));
        assert_eq!(finding.longest_s, Some(0.18));
        // At 90 one of three ends: 90 + 90 × 2/3 = 150.
        assert!((finding.restricted_mean_s.unwrap() - 0.15).abs() < 1e-12);
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
            start_cut: false,
            end_cut: false,
        };
        let windows = [Window::of_idle(&idle)];
        let of = |available: [i64; 5]| {
            lengths(&RegionPeriods::of(&time, &available, &windows, 5, 0.0, 410))
        };
        // Ends with the owner's return, not with the trace: nothing is cut.
        assert_eq!(of([9, 9, 9, 9, 9]), [(300, false)]);
        // Memory falls first.
        assert_eq!(of([9, 9, 0, 9, 9]), [(100, false), (100, false)]);
        assert_eq!(of([9, 0, 0, 0, 9]), []);
    }

    #[test]
    fn nothing_seen_is_absent_not_zero() {
        let none = RegionPeriods::of(&[], &[], &[], 1, 0.0, 0).finding("all".into(), Scope::All, 1);
        assert_eq!((none.periods, none.censored), (0, 0));
        assert_eq!(
            (none.mean_s, none.median_s, none.longest_s),
            (None, None, None)
        );
        assert_eq!(
            (none.restricted_mean_s, none.available_time_share),
            (None, None)
        );
    }

    /// The definition, said slowly: `from..to` is a period when all of its samples have enough, and
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
            let found = RegionPeriods::of(&time, &available, &all(&time, &runs), bytes, 0.0, 1);
            let expected: Vec<_> = runs
                .iter()
                .flat_map(|run| slowly(&time, &available, run, bytes))
                .collect();
            prop_assert_eq!(lengths(&found), expected);
        }

        /// A larger region is never available for longer, and pooling is what it says.
        #[test]
        fn larger_regions_last_no_longer(
            available in prop::collection::vec(0..10i64, 1..40), bytes in 0..10i64
        ) {
            let time: Vec<i64> = (0..available.len() as i64).map(|i| i * 90).collect();
            let windows = all(&time, &[0..time.len()]);
            let of = |bytes| RegionPeriods::of(&time, &available, &windows, bytes, 0.0, 1);
            let (smaller, larger) = (of(bytes), of(bytes + 1));
            prop_assert!(larger.available_ms <= smaller.available_ms);
            let mut both = smaller.clone();
            both.merge(&larger);
            prop_assert_eq!(both.lengths.len(), smaller.lengths.len() + larger.lengths.len());
        }
    }
}
