//! Busy periods: the time between idle periods, where idleness is known.
//!
//! The rule calls a host idle five minutes after the last activity, and dates the idle period back to that
//! activity. So a busy period lasts from the activity (or high load) that ended one idle period to the last
//! activity (or high load) before the next idle period. If the owner comes and leaves between two samples,
//! the busy period has no length. At the start of the samples, or when idleness becomes known, the host
//! counts as busy until the rule calls it idle. At their end, or when idleness becomes unknown, the busy
//! period ends with the last activity or high load.

use super::Idleness;
use gleaner_policy::idle::{IdleRule, Verdict};
use std::ops::Range;

/// Busy period of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusyPeriod {
    /// Samples inside the period; none if the owner came and left between two samples.
    pub samples: Range<usize>,
    /// Begin of the period, ms since 1970-01-01 UTC.
    pub from_ms: i64,
    /// End of the period, ms since 1970-01-01 UTC.
    pub to_ms: i64,
    /// True if the period's begin was not seen.
    pub is_start_censored: bool,
    /// True if the period's end was not seen.
    pub is_end_censored: bool,
}

/// Busy periods of one host, in order. `idleness` must be computed with the same `rule`.
#[must_use]
pub fn busy_periods(
    time_ms: &[i64],
    runs: &[Range<usize>],
    idleness: &Idleness,
    rule: &IdleRule,
) -> Vec<BusyPeriod> {
    let mut idle = idleness.periods.iter().peekable();
    let mut found = Vec::new();
    for run in runs_in_sight(runs, &idleness.verdicts) {
        let mut open = BusyPeriod {
            samples: run.start..run.start,
            from_ms: time_ms[run.start],
            to_ms: time_ms[run.start],
            is_start_censored: true,
            is_end_censored: true,
        };
        while let Some(away) = idle.next_if(|p| p.samples.start < run.end) {
            open.samples.end = away.samples.start;
            open.to_ms = away.from_ms;
            open.is_end_censored = false;
            // If the run begins with an absence, no busy period precedes it.
            if !open.is_start_censored || open.to_ms > open.from_ms {
                found.push(open);
            }
            open = BusyPeriod {
                samples: away.samples.end..away.samples.end,
                from_ms: away.to_ms,
                to_ms: away.to_ms,
                is_start_censored: false,
                is_end_censored: true,
            };
        }
        if open.samples.start < run.end {
            let last = run.end - 1;
            open.samples.end = run.end;
            open.to_ms =
                last_busy_time_ms(idleness.verdicts[last], time_ms[last], rule).max(open.from_ms);
            found.push(open);
        }
    }
    found
}

/// Parts of the runs between samples with an unknown verdict; those samples are in no part.
fn runs_in_sight(runs: &[Range<usize>], verdicts: &[Verdict]) -> Vec<Range<usize>> {
    let mut in_sight = Vec::new();
    for run in runs {
        let mut start = run.start;
        for i in run.clone() {
            if verdicts[i] == Verdict::Unknown {
                in_sight.push(start..i);
                start = i + 1;
            }
        }
        in_sight.push(start..run.end);
    }
    in_sight.retain(|run| !run.is_empty());
    in_sight
}

/// Time of the last activity or high load that the last sample of a run shows; the owner may be away after
/// it.
fn last_busy_time_ms(last: Verdict, time_ms: i64, rule: &IdleRule) -> i64 {
    match last {
        Verdict::Waiting { at_ms } => at_ms.saturating_sub(rule.idle_after_ms).min(time_ms),
        _ => time_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derived::testing::{HIGH, LOW, MIN, MadeSample, samples, synthetic_samples};
    use proptest::prelude::*;

    fn of(rows: &[MadeSample], runs: &[Range<usize>]) -> (Idleness, Vec<BusyPeriod>) {
        let rule = IdleRule::default();
        let samples = samples(rows);
        let idleness = Idleness::of(&samples, runs, &rule);
        let time_ms: Vec<i64> = samples.iter().map(|s| s.time_ms).collect();
        let busy = busy_periods(&time_ms, runs, &idleness, &rule);
        (idleness, busy)
    }

    /// Busy periods as tuples: begin and end in minutes, true for a begin or an end that was not seen,
    /// samples.
    fn found(
        rows: &[MadeSample],
        runs: &[Range<usize>],
    ) -> Vec<(i64, i64, bool, bool, Range<usize>)> {
        let of_minutes = |p: BusyPeriod| {
            let (from, to) = (p.from_ms / MIN, p.to_ms / MIN);
            (from, to, p.is_start_censored, p.is_end_censored, p.samples)
        };
        let (_, busy) = of(rows, runs);
        busy.into_iter().map(of_minutes).collect()
    }

    #[test]
    fn between_two_absences() {
        // Minutes: busy until 3, away from 3 to 14, at the keyboard until 16, high load at 18, away from 20
        // on.
        let rows = [
            (0, Some(0), LOW),
            (3, Some(0), LOW),
            (9, Some(6), LOW),
            (12, Some(9), LOW),
            (15, Some(1), LOW),
            (18, Some(2), HIGH),
            (20, Some(4), LOW),
            (25, Some(9), LOW),
        ];
        assert_eq!(
            found(&rows, &[0..8]),
            [(0, 3, true, false, 0..1), (14, 20, false, false, 4..6)]
        );
    }

    #[test]
    fn a_visit_between_two_samples_has_no_length() {
        let rows = [(0, Some(0), LOW), (20, Some(20), LOW), (40, Some(10), LOW)];
        assert_eq!(found(&rows, &[0..3]), [(30, 30, false, false, 2..2)]);
    }

    #[test]
    fn cut_by_gaps_and_by_lost_sight() {
        // The owner was last active at minute 4; at minute 9 activity is unknown. A gap lies before minute
        // 30.
        let rows = [
            (0, Some(0), LOW),
            (6, Some(2), LOW),
            (9, None, LOW),
            (12, Some(0), LOW),
            (15, Some(0), HIGH),
            (30, Some(0), LOW),
        ];
        assert_eq!(
            found(&rows, &[0..5, 5..6]),
            [
                (0, 4, true, true, 0..2),
                (12, 15, true, true, 3..5),
                (30, 30, true, true, 5..6)
            ]
        );
        // The owner is away all the time: there is no busy period.
        let away = [(0, Some(60), LOW), (5, Some(65), LOW)];
        assert_eq!(found(&away, &[0..2]), []);
        assert_eq!(found(&[(0, None, LOW)], &[0..1]), []);
        assert_eq!(found(&[], &[]), []);
    }

    proptest! {
        /// For any samples: each sample with known idleness lies in exactly one period, busy or idle. Busy
        /// and idle periods alternate, and each begins where the one before ends, unless one is cut.
        #[test]
        fn busy_and_idle_share_what_is_in_sight(rows in synthetic_samples(), gap in 0..60usize) {
            let gap = gap.min(rows.len());
            let (idleness, busy) = of(&rows, &[0..gap, gap..rows.len()]);
            let mut covered = vec![0; rows.len()];
            for range in idleness.periods.iter().map(|p| &p.samples).chain(busy.iter().map(|p| &p.samples)) {
                covered[range.clone()].iter_mut().for_each(|n| *n += 1);
            }
            for (n, verdict) in covered.iter().zip(&idleness.verdicts) {
                prop_assert_eq!(*n, i32::from(*verdict != Verdict::Unknown));
            }
            for period in &busy {
                prop_assert!(period.from_ms <= period.to_ms);
                if !period.is_start_censored {
                    prop_assert!(idleness.periods.iter().any(|p| p.to_ms == period.from_ms && p.end.is_some()));
                }
                if !period.is_end_censored {
                    prop_assert!(idleness.periods.iter().any(|p| p.from_ms == period.to_ms));
                }
            }
        }
    }
}
