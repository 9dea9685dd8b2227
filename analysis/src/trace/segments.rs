//! Runs of samples without a gap between them. Nothing is assumed across a gap.
//!
//! A gap lies before a sample when the host recorded one that ends there, when its database is
//! another, when the clock did not go forward, or when more than two configured intervals passed, unless
//! its own interval reaches back to the sample before: so it does where a dataset was thinned.

use crate::trace::intervals::Intervals;
use crate::trace::samples::Samples;
use std::ops::Range;

/// A time without samples, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Last sample before it.
    pub(crate) from_ms: i64,
    /// First sample after it; before `from_ms` when the clock was set back.
    pub(crate) to_ms: i64,
    /// As recorded, or `missing`, `clock_step`, `new_database` as seen here.
    pub(crate) cause: String,
}

/// The runs, as ranges of samples, and all gaps in order: the recorded ones, and those that only the
/// samples show.
pub(crate) fn segments(
    samples: &Samples,
    recorded: Vec<Gap>,
    intervals: &Intervals,
) -> (Vec<Range<usize>>, Vec<Gap>) {
    let mut gaps = recorded;
    let ends = |backward: bool| {
        let such = gaps.iter().filter(|g| (g.to_ms <= g.from_ms) == backward);
        let mut ends: Vec<i64> = such.map(|g| g.to_ms).collect();
        ends.sort_unstable();
        ends
    };
    let (forward, backward) = (ends(false), ends(true));
    let mut segments = Vec::new();
    let mut start = 0;
    for i in 1..samples.len() {
        let (before, now) = (samples.time_ms[i - 1], samples.time_ms[i]);
        let seen = if samples.database[i] != samples.database[i - 1] {
            Some("new_database")
        } else if now <= before {
            Some("clock_step")
        } else if is_missing(
            now.saturating_sub(before),
            intervals.at(now),
            samples.interval(i),
        ) {
            Some("missing")
        } else {
            None
        };
        let is_recorded = if now <= before {
            backward.binary_search(&now).is_ok()
        } else {
            let first = forward.partition_point(|&end| end <= before);
            forward.get(first).is_some_and(|&end| end <= now)
        };
        if let (Some(cause), false) = (seen, is_recorded) {
            gaps.push(Gap {
                from_ms: before,
                to_ms: now,
                cause: cause.to_owned(),
            });
        }
        if seen.is_some() || is_recorded {
            segments.push(start..i);
            start = i;
        }
    }
    if !samples.is_empty() {
        segments.push(start..samples.len());
    }
    gaps.sort_by_key(|g| (g.to_ms, g.from_ms));
    (segments, gaps)
}

/// Whether samples are missing in a step of `passed_ms` before one that says that its interval was `own_ms`.
fn is_missing(passed_ms: i64, configured_ms: i64, own_ms: Option<i64>) -> bool {
    // The two clocks that measure the same step differ by less.
    let reaches_back = own_ms.is_some_and(|own| passed_ms.saturating_sub(own) <= configured_ms / 2);
    passed_ms > configured_ms.saturating_mul(2) && !reaches_back
}

/// Time that a run covers: from its first sample to its last.
pub(crate) fn covered_ms(samples: &Samples, segment: &Range<usize>) -> i64 {
    match samples.time_ms.get(segment.clone()) {
        Some([first, .., last]) => last.saturating_sub(*first),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(time_ms: &[i64]) -> Samples {
        Samples {
            database: vec![0; time_ms.len()],
            time_ms: time_ms.to_vec(),
            ..Default::default()
        }
    }

    fn gap(from_ms: i64, to_ms: i64, cause: &str) -> Gap {
        Gap {
            from_ms,
            to_ms,
            cause: cause.into(),
        }
    }

    #[test]
    fn worked_by_hand() {
        let every_90 = Intervals::new(vec![(0, 90)], &[]);
        // times, recorded gaps → segments, gaps
        let cases = [
            (vec![], vec![], vec![], vec![]),
            (vec![5], vec![], vec![0..1], vec![]),
            // Two intervals late is late, not missing.
            (vec![0, 90, 270, 360], vec![], vec![0..4], vec![]),
            (
                vec![0, 90, 271],
                vec![],
                vec![0..2, 2..3],
                vec![gap(90, 271, "missing")],
            ),
            // Recorded, though shorter than two intervals.
            (
                vec![0, 90, 200],
                vec![gap(90, 200, "sleep")],
                vec![0..2, 2..3],
                vec![gap(90, 200, "sleep")],
            ),
            // Recorded and long: named once.
            (
                vec![0, 90, 900],
                vec![gap(90, 900, "stopped")],
                vec![0..2, 2..3],
                vec![gap(90, 900, "stopped")],
            ),
            // The clock was set back, seen and recorded.
            (
                vec![0, 90, 45, 135],
                vec![],
                vec![0..2, 2..4],
                vec![gap(90, 45, "clock_step")],
            ),
            (
                vec![0, 90, 45, 135],
                vec![gap(90, 45, "clock_step")],
                vec![0..2, 2..4],
                vec![gap(90, 45, "clock_step")],
            ),
            // Nothing but gaps.
            (
                vec![0, 500, 1000],
                vec![],
                vec![0..1, 1..2, 2..3],
                vec![gap(0, 500, "missing"), gap(500, 1000, "missing")],
            ),
        ];
        for (times, recorded, expected, gaps) in cases {
            let found = segments(&samples(&times), recorded, &every_90);
            assert_eq!(found, (expected, gaps), "{times:?}");
        }
    }

    #[test]
    fn an_interval_that_reaches_back_leaves_no_gap() {
        let every_90 = Intervals::new(vec![(0, 90)], &[]);
        let mut thinned = samples(&[0, 900, 1800, 2700]);
        thinned.interval_ms = vec![None, Some(899), Some(90), None];
        let (segments, _) = segments(&thinned, vec![], &every_90);
        assert_eq!(segments, [0..2, 2..3, 3..4]);
    }

    #[test]
    fn a_new_database_begins_anew() {
        let mut two = samples(&[0, 90, 180]);
        two.database = vec![0, 0, 1];
        let (segments, gaps) = segments(&two, vec![], &Intervals::new(vec![(0, 90)], &[]));
        assert_eq!(segments, [0..2, 2..3]);
        assert_eq!(gaps, [gap(90, 180, "new_database")]);
    }

    #[test]
    fn a_run_covers_first_to_last() {
        let three = samples(&[10, 100, 200]);
        assert_eq!(covered_ms(&three, &(0..3)), 190);
        assert_eq!(covered_ms(&three, &(1..2)), 0);
    }
}
