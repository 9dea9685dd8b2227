//! Idle periods: the policy's rule applied to each run of samples.
//!
//! A period begins when both conditions of the rule (no activity, low load) began to hold. The first sample
//! at which the host counts as idle comes at least `idle_after` later. A period ends with the owner's
//! activity, whose time the first sample after it gives, or with a sample whose load is too high. A period is
//! cut where samples, or knowledge of activity and load, begin or end; only its seen part then counts as its
//! length.

use gleaner_policy::idle::{IdleRule, IdleState, Observation, Verdict};
use gleaner_schemas::findings::EndCause;
use std::ops::Range;

/// Idle period of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdlePeriod {
    /// Samples inside the period.
    pub samples: Range<usize>,
    /// Begin of the period, ms since 1970-01-01 UTC.
    pub from_ms: i64,
    /// End of the period, ms since 1970-01-01 UTC.
    pub to_ms: i64,
    /// True if the period's begin was not seen.
    pub is_start_censored: bool,
    /// Cause of the period's end; absent if the end was not seen.
    pub end: Option<EndCause>,
}

/// Verdicts and idle periods of one host, by one rule.
#[derive(Debug, Default)]
pub struct Idleness {
    /// Verdict at each sample.
    pub verdicts: Vec<Verdict>,
    /// Idle periods, in order.
    pub periods: Vec<IdlePeriod>,
    /// Time covered by samples at which activity and load were known, in ms.
    pub seen_ms: i64,
}

impl Idleness {
    /// Applies the rule to each run of samples.
    #[must_use]
    pub fn of(samples: &[Observation], runs: &[Range<usize>], rule: &IdleRule) -> Self {
        let mut found = Self::default();
        for run in runs {
            found.add_run(samples, run.clone(), rule);
        }
        found
    }

    /// True if no sample has a known verdict.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.verdicts.iter().all(|v| *v == Verdict::Unknown)
    }

    /// Idle share of the time in which idleness was known; `None` if there was none.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let idle_ms: i64 = self.periods.iter().map(|p| p.to_ms - p.from_ms).sum();
        (self.seen_ms > 0).then(|| (idle_ms as f64 / self.seen_ms as f64).min(1.0))
    }

    /// For each sample, true if it lies in an idle period; `None` if that is unknown.
    #[must_use]
    pub fn by_sample(&self) -> Vec<Option<bool>> {
        let mut idle: Vec<Option<bool>> = self
            .verdicts
            .iter()
            .map(|v| (*v != Verdict::Unknown).then_some(false))
            .collect();
        for period in &self.periods {
            idle[period.samples.clone()].fill(Some(true));
        }
        idle
    }

    fn add_run(&mut self, samples: &[Observation], run: Range<usize>, rule: &IdleRule) {
        let mut state = IdleState::default();
        let mut open: Option<IdlePeriod> = None;
        // End time of the previous period, and index of the first sample after that period.
        let mut earliest = (i64::MIN, run.start);
        let mut calm: Option<CalmRun> = None;
        let mut cut = true; // the time before the run is unknown
        for i in run.clone() {
            let now = samples[i].time_ms;
            let before = if i > run.start {
                samples[i - 1].time_ms
            } else {
                now
            };
            let verdict = state.step(rule, samples[i]);
            self.verdicts.push(verdict);
            if verdict != Verdict::Unknown && i + 1 < run.end {
                self.seen_ms += samples[i + 1].time_ms - now;
            }
            if let Some((to_ms, end)) = end_of_open(verdict, before, now, rule)
                && let Some(mut period) = open.take()
            {
                period.to_ms = to_ms.clamp(before, now);
                period.end = end;
                earliest = (period.to_ms, period.samples.end);
                self.periods.push(period);
            }
            match verdict {
                Verdict::Loaded | Verdict::Unknown => {
                    calm = None;
                    cut = verdict == Verdict::Unknown;
                }
                Verdict::Waiting { .. } => {
                    calm.get_or_insert(CalmRun { since_ms: now, cut });
                }
                Verdict::Idle { since_ms } => {
                    let calm = calm.get_or_insert(CalmRun { since_ms: now, cut });
                    let owner_idle_ms = samples[i].owner_idle_ms.unwrap_or(0);
                    let is_start_censored =
                        calm.cut && now.saturating_sub(owner_idle_ms) < calm.since_ms;
                    let period = open.get_or_insert_with(|| {
                        let from_ms = since_ms.max(earliest.0);
                        let of_run = &samples[run.clone()];
                        let first = of_run.partition_point(|s| s.time_ms < from_ms);
                        IdlePeriod {
                            samples: (run.start + first).max(earliest.1)..i,
                            from_ms,
                            to_ms: now,
                            is_start_censored,
                            end: None, // until an end is seen
                        }
                    });
                    period.samples.end = i + 1;
                    period.to_ms = now;
                }
            }
        }
        self.periods.extend(open);
    }
}

/// Time and cause of the end of an open period, if the period ends between the two samples at `before_ms` and
/// `now_ms`. The cause is `None` if the period is cut.
fn end_of_open(
    verdict: Verdict,
    before_ms: i64,
    now_ms: i64,
    rule: &IdleRule,
) -> Option<(i64, Option<EndCause>)> {
    match verdict {
        // A later start of idleness means that the owner came and left between the samples.
        Verdict::Idle { since_ms } => {
            (since_ms > before_ms).then_some((since_ms, Some(EndCause::Owner)))
        }
        Verdict::Waiting { at_ms } => Some((
            at_ms.saturating_sub(rule.idle_after_ms),
            Some(EndCause::Owner),
        )),
        Verdict::Loaded => Some((now_ms, Some(EndCause::Load))),
        Verdict::Unknown => Some((before_ms, None)),
    }
}

/// A run of samples with the load below the limit and the owner's activity known.
struct CalmRun {
    since_ms: i64,
    /// True if nothing is known about the time before this run.
    cut: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derived::testing::{HIGH, LOW, MIN, MadeSample, samples, synthetic_samples};
    use proptest::prelude::*;

    fn found(rows: &[MadeSample]) -> Vec<(i64, i64, bool, bool, Range<usize>)> {
        let all = 0..rows.len();
        Idleness::of(&samples(rows), &[all], &IdleRule::default())
            .periods
            .into_iter()
            .map(|p| {
                (
                    p.from_ms / MIN,
                    p.to_ms / MIN,
                    p.is_start_censored,
                    p.end.is_none(),
                    p.samples,
                )
            })
            .collect()
    }

    #[test]
    fn an_absence_seen_from_start_to_end() {
        // The owner leaves at minute 3 and is back at minute 14, one minute before the sample at minute 15.
        let rows = [
            (0, Some(0), LOW),
            (3, Some(0), LOW),
            (6, Some(3), LOW),
            (9, Some(6), LOW),
            (12, Some(9), LOW),
            (15, Some(1), LOW),
        ];
        assert_eq!(found(&rows), [(3, 14, false, false, 1..5)]);
        let idleness = Idleness::of(&samples(&rows), &[0..6], &IdleRule::default());
        assert_eq!(idleness.share(), Some(11.0 / 15.0));
        assert_eq!(
            idleness.by_sample(),
            [false, true, true, true, true, false].map(Some)
        );
    }

    #[test]
    fn the_load_rises_and_falls() {
        // The load falls at minute 2 and rises at minute 10; the owner is away all the time.
        let rows = [
            (0, Some(60), HIGH),
            (2, Some(62), LOW),
            (8, Some(68), LOW),
            (10, Some(70), HIGH),
        ];
        assert_eq!(found(&rows), [(2, 10, false, false, 1..3)]);
    }

    #[test]
    fn what_ends_them() {
        let ends = |rows: &[MadeSample]| -> Vec<Option<EndCause>> {
            Idleness::of(&samples(rows), &[0..rows.len()], &IdleRule::default())
                .periods
                .iter()
                .map(|p| p.end)
                .collect()
        };
        let away = [(0, Some(0), LOW), (6, Some(6), LOW), (12, Some(12), LOW)];
        let then =
            |minute, owner_idle, load| ends(&[&away[..], &[(minute, owner_idle, load)]].concat());
        assert_eq!(ends(&away), [None]);
        assert_eq!(then(14, Some(1), LOW), [Some(EndCause::Owner)]);
        // At minute 24 the owner was last active at 18: they came and left between two samples.
        assert_eq!(then(24, Some(6), LOW), [Some(EndCause::Owner), None]);
        assert_eq!(then(14, Some(14), HIGH), [Some(EndCause::Load)]);
        assert_eq!(then(14, None, LOW), [None]);
        assert_eq!(then(14, Some(14), None), [None]);
    }

    #[test]
    fn cut_by_the_trace_and_by_lost_sight() {
        // The owner was away before the trace began, and when it ended.
        let away = [(0, Some(60), LOW), (5, Some(65), LOW), (9, Some(69), LOW)];
        assert_eq!(found(&away), [(0, 9, true, true, 0..3)]);
        // Activity is unknown from minute 9 on.
        let lost = [
            (0, Some(0), LOW),
            (6, Some(6), LOW),
            (9, None, LOW),
            (12, None, LOW),
        ];
        assert_eq!(found(&lost), [(0, 6, false, true, 0..2)]);
        // The owner left when the trace began: the period's start is seen.
        assert_eq!(found(&lost[..2]), [(0, 6, false, true, 0..2)]);
        assert_eq!(found(&[(0, Some(60), LOW)]), []);
        assert_eq!(found(&[]), []);
    }

    #[test]
    fn a_visit_between_two_samples_divides() {
        let rows = [(0, Some(0), LOW), (20, Some(20), LOW), (40, Some(10), LOW)];
        assert_eq!(
            found(&rows),
            [(0, 30, false, false, 0..2), (30, 40, false, true, 2..3)]
        );
    }

    #[test]
    fn nothing_is_assumed_across_a_gap() {
        let rows = [
            (0, Some(0), LOW),
            (6, Some(6), LOW),
            (30, Some(30), LOW),
            (36, Some(36), LOW),
        ];
        let periods = Idleness::of(&samples(&rows), &[0..2, 2..4], &IdleRule::default()).periods;
        let ends: Vec<_> = periods
            .iter()
            .map(|p| (p.from_ms / MIN, p.to_ms / MIN))
            .collect();
        assert_eq!(ends, [(0, 6), (30, 36)]);
        assert!(periods[1].is_start_censored);
    }

    proptest! {
        /// For any samples: periods are in order, disjoint and inside their run. Every sample that the rule
        /// calls idle lies in a period.
        #[test]
        fn periods_are_in_order_and_apart(rows in synthetic_samples()) {
            let samples = samples(&rows);
            let idleness = Idleness::of(&samples, &[0..rows.len()], &IdleRule::default());
            for period in &idleness.periods {
                prop_assert!(period.from_ms <= period.to_ms);
                prop_assert!(period.from_ms >= samples[0].time_ms);
            }
            for pair in idleness.periods.windows(2) {
                prop_assert!(pair[0].to_ms <= pair[1].from_ms);
                prop_assert!(pair[0].samples.end <= pair[1].samples.start);
            }
            let inside = idleness.by_sample();
            for (verdict, inside) in idleness.verdicts.iter().zip(&inside) {
                prop_assert!(!verdict.is_idle() || *inside == Some(true));
            }
            prop_assert!(idleness.share().is_none_or(|s| (0.0..=1.0).contains(&s)));
        }
    }
}
