//! Busy periods: what lies between idle periods, in the time in which idleness can be told.
//!
//! The rule calls a host idle five minutes after the last activity, and dates the idle period back to it: a busy
//! period lasts from the activity (or load) that ended one idle period to the last before the next. A visit that fell
//! between two samples has no length. Where samples, or the sight of the owner, begin, the host counts
//! as busy until the rule calls it idle; where they end, a busy period was seen up to the last activity or load.

use crate::trace::samples::Samples;
use gleaner_hosts::derived::Idleness;
use gleaner_policy::idle::{IdleRule, Verdict};
use std::ops::Range;

/// One busy period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BusyPeriod {
    /// Samples inside it; none in a visit between two.
    pub(crate) samples: Range<usize>,
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
    pub(crate) start_cut: bool,
    pub(crate) end_cut: bool,
}

/// One host's, in order.
pub(crate) fn periods(
    samples: &Samples,
    segments: &[Range<usize>],
    idleness: &Idleness,
    rule: &IdleRule,
) -> Vec<BusyPeriod> {
    let mut idle = idleness.periods.iter().peekable();
    let mut found = Vec::new();
    for run in runs_in_sight(segments, &idleness.verdicts) {
        let mut open = BusyPeriod {
            samples: run.start..run.start,
            from_ms: samples.time_ms[run.start],
            to_ms: samples.time_ms[run.start],
            start_cut: true,
            end_cut: true,
        };
        while let Some(away) = idle.next_if(|p| p.samples.start < run.end) {
            open.samples.end = away.samples.start;
            open.to_ms = away.from_ms;
            open.end_cut = false;
            // An absence that the run begins with has nothing before it.
            if !open.start_cut || open.to_ms > open.from_ms {
                found.push(open);
            }
            open = BusyPeriod {
                samples: away.samples.end..away.samples.end,
                from_ms: away.to_ms,
                to_ms: away.to_ms,
                start_cut: false,
                end_cut: true,
            };
        }
        if open.samples.start < run.end {
            let last = run.end - 1;
            open.samples.end = run.end;
            open.to_ms = seen_busy_until(idleness.verdicts[last], samples.time_ms[last], rule)
                .max(open.from_ms);
            found.push(open);
        }
    }
    found
}

/// Runs of samples of which each can tell.
fn runs_in_sight(segments: &[Range<usize>], verdicts: &[Verdict]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    for segment in segments {
        let mut start = segment.start;
        for i in segment.clone() {
            if verdicts[i] == Verdict::Unknown {
                runs.push(start..i);
                start = i + 1;
            }
        }
        runs.push(start..segment.end);
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// After the last activity and load nothing tells whether an absence had begun.
fn seen_busy_until(last: Verdict, time_ms: i64, rule: &IdleRule) -> i64 {
    match last {
        Verdict::Waiting { at_ms } => at_ms.saturating_sub(rule.idle_after_ms).min(time_ms),
        _ => time_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIN: i64 = 60_000;
    const LOW: Option<f64> = Some(0.1);
    const HIGH: Option<f64> = Some(0.9);

    type SampleOf = (i64, Option<i64>, Option<f64>);

    /// Rows of (minute, owner idle for minutes, load).
    fn samples(rows: &[SampleOf]) -> Samples {
        Samples {
            time_ms: rows.iter().map(|r| r.0 * MIN).collect(),
            owner_idle_ms: rows.iter().map(|r| r.1.map(|m| m * MIN)).collect(),
            load5: rows.iter().map(|r| r.2).collect(),
            ..Default::default()
        }
    }

    fn of(samples: &Samples, segments: &[Range<usize>]) -> (Idleness, Vec<BusyPeriod>) {
        let rule = IdleRule::default();
        let idleness = Idleness::of(&samples.observations(), segments, &rule);
        let busy = periods(samples, segments, &idleness, &rule);
        (idleness, busy)
    }

    /// Minutes from and to, cut at the start and end, samples.
    fn found(
        rows: &[SampleOf],
        segments: &[Range<usize>],
    ) -> Vec<(i64, i64, bool, bool, Range<usize>)> {
        let of_minutes = |p: BusyPeriod| {
            let (from, to) = (p.from_ms / MIN, p.to_ms / MIN);
            (from, to, p.start_cut, p.end_cut, p.samples)
        };
        let (_, busy) = of(&samples(rows), segments);
        busy.into_iter().map(of_minutes).collect()
    }

    #[test]
    fn between_two_absences() {
        // Busy until 3, away until 14, at the keyboard until 16 and under load at 18, away from 20 on.
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
        // Active up to minute 4, then nobody knows.
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
        // Away all the time: no busy period at all.
        let away = [(0, Some(60), LOW), (5, Some(65), LOW)];
        assert_eq!(found(&away, &[0..2]), []);
        assert_eq!(found(&[(0, None, LOW)], &[0..1]), []);
        assert_eq!(found(&[], &[]), []);
    }

    proptest! {
        /// Whatever the samples say: every sample in sight lies in one busy or one idle period, and
        /// periods alternate and touch unless one is cut.
        #[test]
        fn busy_and_idle_share_what_is_in_sight(
            steps in prop::collection::vec(
                (1..6i64, prop::option::weighted(0.9, 0..20i64), prop::option::weighted(0.9, 0.0..0.5f64)),
                0..60,
            ),
            gap in 0..60usize,
        ) {
            let mut minute = 0;
            let rows: Vec<_> = steps
                .into_iter()
                .map(|(step, idle, load)| { minute += step; (minute, idle, load) })
                .collect();
            let samples = samples(&rows);
            let gap = gap.min(rows.len());
            let segments = [0..gap, gap..rows.len()];
            let (idleness, busy) = of(&samples, &segments);
            let mut covered = vec![0; rows.len()];
            for range in idleness.periods.iter().map(|p| &p.samples).chain(busy.iter().map(|p| &p.samples)) {
                covered[range.clone()].iter_mut().for_each(|n| *n += 1);
            }
            for (n, verdict) in covered.iter().zip(&idleness.verdicts) {
                prop_assert_eq!(*n, i32::from(*verdict != Verdict::Unknown));
            }
            for period in &busy {
                prop_assert!(period.from_ms <= period.to_ms);
                if !period.start_cut {
                    prop_assert!(idleness.periods.iter().any(|p| p.to_ms == period.from_ms && p.end.is_some()));
                }
                if !period.end_cut {
                    prop_assert!(idleness.periods.iter().any(|p| p.from_ms == period.to_ms));
                }
            }
        }
    }
}
