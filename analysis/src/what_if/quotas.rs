//! Memory that one host could lend with one mode and headroom. It is stored as cumulative sums, so that any
//! stretch of time takes the same effort.

use crate::owner::quota::categories;
use crate::trace::samples::Samples;
use gleaner_hosts::derived::unsigned;
use gleaner_policy::accounting::Categories;
use gleaner_policy::idle::Verdict;
use gleaner_policy::quota::{Limits, Mode, Reason, quota};
use gleaner_schemas::units::stored;
use std::ops::Range;

/// Memory that could be lent if the host were idle. A sample's figure holds until the next sample of its run.
#[derive(Debug, Default)]
pub(super) struct IdleQuotas {
    /// Quota at each sample; 0 where it is unknown.
    pub(super) bytes: Vec<i64>,
    /// Cumulative bytes times milliseconds up to each sample.
    byte_ms: Vec<i128>,
    /// Cumulative bytes by which the memory shrank from sample to sample, up to each sample.
    shrunk_bytes: Vec<i128>,
    /// Total time in which the quota is known.
    pub(super) known_ms: i64,
    /// Physical memory times `known_ms`.
    pub(super) physical_byte_ms: i128,
}

impl IdleQuotas {
    /// `categories` are those of each sample ([`categories_by_sample`]).
    pub(super) fn of(
        samples: &Samples,
        categories: &[Option<Categories>],
        segments: &[Range<usize>],
        mode: Mode,
        headroom_share: f64,
    ) -> Self {
        let limits = Limits {
            mode,
            headroom_share,
            ..Limits::default()
        };
        let mut found = Self::default();
        let (mut byte_ms, mut shrunk_bytes) = (0, 0);
        for run in segments {
            let mut before: Option<i64> = None;
            for at in run.clone() {
                let known = at_sample(samples, categories, at, &limits);
                let bytes = known.unwrap_or(0);
                let until = if at + 1 < run.end { at + 1 } else { at };
                let ms = samples.time_ms[until].saturating_sub(samples.time_ms[at]);
                shrunk_bytes += i128::from(before.map_or(0, |b| (b - bytes).max(0)));
                found.bytes.push(bytes);
                found.byte_ms.push(byte_ms);
                found.shrunk_bytes.push(shrunk_bytes);
                byte_ms += i128::from(bytes) * i128::from(ms);
                if known.is_some() {
                    found.known_ms = found.known_ms.saturating_add(ms);
                    let physical = i128::from(samples.physical_bytes[at]);
                    found.physical_byte_ms += physical * i128::from(ms);
                }
                before = known;
            }
        }
        found
    }

    /// Bytes times milliseconds from one instant to another of the same run; `first` is the run's first
    /// sample.
    pub(super) fn quota_byte_ms(
        &self,
        run: &[i64],
        first: usize,
        from_ms: i64,
        to_ms: i64,
    ) -> i128 {
        let until = |ms: i64| {
            let at = first + place(run, ms);
            let since_ms = ms.saturating_sub(run[at - first]).max(0);
            self.byte_ms[at] + i128::from(self.bytes[at]) * i128::from(since_ms)
        };
        until(to_ms) - until(from_ms)
    }

    /// Bytes by which the memory shrank after one instant and up to another of the same run.
    pub(super) fn shrunk_bytes(&self, run: &[i64], first: usize, from_ms: i64, to_ms: i64) -> i128 {
        let until = |ms: i64| self.shrunk_bytes[first + place(run, ms)];
        until(to_ms) - until(from_ms)
    }
}

/// Index of the last sample of a run at or before an instant; the first if all are later.
fn place(run: &[i64], ms: i64) -> usize {
    run.partition_point(|&t| t <= ms).saturating_sub(1)
}

/// Categories of each sample; `None` in a trace that has only physical and available memory.
pub(super) fn categories_by_sample(samples: &Samples) -> Vec<Option<Categories>> {
    (0..samples.len())
        .map(|at| categories(samples, at))
        .collect()
}

/// Quota at one sample; `None` if the trace lacks figures that the mode needs.
fn at_sample(
    samples: &Samples,
    categories: &[Option<Categories>],
    at: usize,
    limits: &Limits,
) -> Option<i64> {
    let found = quota(
        categories.get(at)?.as_ref()?,
        samples.mem_available_bytes[at].map(unsigned),
        Verdict::Unknown,
        limits,
    );
    (found.reason != Reason::HarvestableUnknown).then(|| stored(found.idle_quota_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::Category;
    use proptest::prelude::*;

    /// Samples made from pairs: milliseconds since the sample before, available bytes. All other fields are
    /// 0.
    fn samples(steps: &[(i64, Option<i64>)]) -> Samples {
        let mut now = 0;
        let time = steps.iter().map(|(ms, _)| {
            now += ms;
            now
        });
        let mut categories = vec![vec![Some(0); steps.len()]; Category::ALL.len()];
        categories[Category::Available as usize] = steps.iter().map(|(_, a)| *a).collect();
        Samples {
            time_ms: time.collect(),
            physical_bytes: vec![100; steps.len()],
            categories,
            category_correction_bytes: vec![Some(0); steps.len()],
            mem_available_bytes: steps.iter().map(|(_, a)| a.map(|a| a / 2)).collect(),
            ..Samples::default()
        }
    }

    proptest! {
        /// Compares with the sum over every millisecond and every sample.
        #[test]
        fn stretches_equal_the_slow_version(
            steps in prop::collection::vec((1..9i64, prop::option::weighted(0.9, 0..90i64)), 2..20),
            cut in 1..19usize,
            (from, to) in (0..80i64, 0..80i64),
            mode in prop_oneof![Just(Mode::Paper), Just(Mode::Gentle)],
        ) {
            let samples = samples(&steps);
            let cut = cut.min(steps.len() - 1);
            let segments = [0..cut, cut..steps.len()];
            let categories = categories_by_sample(&samples);
            let found = IdleQuotas::of(&samples, &categories, &segments, mode, 0.1);
            let lends = |at: usize| steps[at].1.map_or(0, |a| match mode {
                Mode::Paper => (a - 10).max(0),
                Mode::Gentle | Mode::Spare => (a / 2 - 10).max(0).min((a - 10).max(0)),
            });
            let mut known_ms = 0;
            for run in &segments {
                let time = &samples.time_ms[run.clone()];
                let (first, last) = (time[0], time[time.len() - 1]);
                let (from, to) = (from.clamp(first, last), to.clamp(first, last));
                let (from, to) = (from.min(to), from.max(to));
                let at = |ms: i64| run.start + time.iter().rposition(|&t| t <= ms).unwrap();
                let lent: i64 = (from..to).map(|ms| lends(at(ms))).sum();
                prop_assert_eq!(found.quota_byte_ms(time, run.start, from, to), i128::from(lent));
                let shrunk: i64 = (at(from) + 1..=at(to))
                    .filter(|&k| steps[k - 1].1.is_some())
                    .map(|k| (lends(k - 1) - lends(k)).max(0))
                    .sum();
                prop_assert_eq!(found.shrunk_bytes(time, run.start, from, to), i128::from(shrunk));
                known_ms += (first..last).filter(|&ms| steps[at(ms)].1.is_some()).count() as i64;
            }
            prop_assert_eq!(found.known_ms, known_ms);
            prop_assert_eq!(found.physical_byte_ms, 100 * i128::from(known_ms));
        }
    }
}
