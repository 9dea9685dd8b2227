//! Runs of samples without a gap between them. Nothing is assumed across a gap.
//!
//! A gap lies before a sample if the host recorded a gap that ends there, if the sample is in another
//! database, if the clock did not advance, or if more than two configured intervals passed. The last
//! condition does not apply if the interval stored with the sample reaches back to the previous sample, as in
//! a thinned dataset.

use super::Intervals;
use std::ops::Range;

/// Position of one sample in its host's trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleTime {
    /// Number of the sample's database ([`super::Databases`]).
    pub database: i64,
    /// Wall-clock time, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Time since the previous sample, in ms; absent after a gap that the host knows of, and in traces that
    /// other programs recorded.
    pub interval_ms: Option<i64>,
}

/// A time without samples, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Time of the last sample before the gap.
    pub from_ms: i64,
    /// Time of the first sample after the gap; before `from_ms` if the clock was set back.
    pub to_ms: i64,
    /// Cause as recorded; for a gap found from the samples, `missing`, `clock_step` or `new_database`.
    pub cause: String,
}

impl Gap {
    /// Columns of the table `gaps` that the function [`gaps`] takes, in the order of its arguments.
    pub const COLUMNS: [&'static str; 3] = ["from_time_ms", "to_time_ms", "cause"];
}

/// Converts a host's rows of the table `gaps`, given as three columns. A row without a time, which no agent
/// writes, is left out.
#[must_use]
pub fn gaps<'a>(
    from_ms: impl Iterator<Item = Option<i64>>,
    to_ms: impl Iterator<Item = Option<i64>>,
    causes: impl Iterator<Item = Option<&'a str>>,
) -> Vec<Gap> {
    let rows = from_ms.zip(to_ms).zip(causes);
    let gap = |((from_ms, to_ms), cause): ((Option<i64>, Option<i64>), Option<&str>)| {
        Some(Gap {
            from_ms: from_ms?,
            to_ms: to_ms?,
            cause: cause.unwrap_or_default().to_owned(),
        })
    };
    rows.filter_map(gap).collect()
}

/// Returns the runs, as ranges of samples, and all gaps in order: the recorded ones, and those found from the
/// samples. Samples must be in the order of recording.
#[must_use]
pub fn runs(
    samples: &[SampleTime],
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
    let mut runs = Vec::new();
    let mut start = 0;
    for i in 1..samples.len() {
        let (before, now) = (samples[i - 1].time_ms, samples[i].time_ms);
        let seen = if samples[i].database != samples[i - 1].database {
            Some("new_database")
        } else if now <= before {
            Some("clock_step")
        } else if is_missing(
            now.saturating_sub(before),
            intervals.at(now),
            samples[i].interval_ms,
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
            runs.push(start..i);
            start = i;
        }
    }
    if !samples.is_empty() {
        runs.push(start..samples.len());
    }
    gaps.sort_by_key(|g| (g.to_ms, g.from_ms));
    (runs, gaps)
}

/// Returns true if samples are missing in a step of `passed_ms` before a sample whose stored interval is
/// `own_ms`.
fn is_missing(passed_ms: i64, configured_ms: i64, own_ms: Option<i64>) -> bool {
    // Two clocks measure the same step: wall clock (`passed_ms`) and boot clock (`own_ms`). They differ by
    // less than half an interval.
    let reaches_back = own_ms.is_some_and(|own| passed_ms.saturating_sub(own) <= configured_ms / 2);
    passed_ms > configured_ms.saturating_mul(2) && !reaches_back
}

/// Time covered by a run, in ms: from its first sample to its last.
#[must_use]
pub fn covered_ms(time_ms: &[i64], run: &Range<usize>) -> i64 {
    match time_ms.get(run.clone()) {
        Some([first, .., last]) => last.saturating_sub(*first),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(time_ms: &[i64]) -> Vec<SampleTime> {
        let sample = |&time_ms: &i64| SampleTime {
            time_ms,
            ..SampleTime::default()
        };
        time_ms.iter().map(sample).collect()
    }

    fn gap(from_ms: i64, to_ms: i64, cause: &str) -> Gap {
        Gap {
            from_ms,
            to_ms,
            cause: cause.into(),
        }
    }

    #[test]
    fn a_gap_is_a_row_with_both_its_times() {
        let from = [Some(1), None, Some(3), Some(4)];
        let to = [Some(2), Some(3), None, Some(3)];
        let causes = [Some("sleep"), Some("boot"), None, None];
        let found = gaps(from.into_iter(), to.into_iter(), causes.into_iter());
        assert_eq!(found, [gap(1, 2, "sleep"), gap(4, 3, "")]);
    }

    #[test]
    fn worked_by_hand() {
        let every_90 = Intervals::new([(0, Some(90))], &[]);
        // Each case: times of the samples, recorded gaps, expected runs, expected gaps.
        let cases = [
            (vec![], vec![], vec![], vec![]),
            (vec![5], vec![], vec![0..1], vec![]),
            // After a step of exactly two intervals a sample is late, but none is missing.
            (vec![0, 90, 270, 360], vec![], vec![0..4], vec![]),
            (
                vec![0, 90, 271],
                vec![],
                vec![0..2, 2..3],
                vec![gap(90, 271, "missing")],
            ),
            // A recorded gap counts even if it is shorter than two intervals.
            (
                vec![0, 90, 200],
                vec![gap(90, 200, "sleep")],
                vec![0..2, 2..3],
                vec![gap(90, 200, "sleep")],
            ),
            // A gap that is both recorded and long is listed once.
            (
                vec![0, 90, 900],
                vec![gap(90, 900, "stopped")],
                vec![0..2, 2..3],
                vec![gap(90, 900, "stopped")],
            ),
            // The clock was set back: once found only from the samples, once recorded as well.
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
            // A gap lies between any two samples.
            (
                vec![0, 500, 1000],
                vec![],
                vec![0..1, 1..2, 2..3],
                vec![gap(0, 500, "missing"), gap(500, 1000, "missing")],
            ),
        ];
        for (times, recorded, expected, gaps) in cases {
            let found = super::runs(&samples(&times), recorded, &every_90);
            assert_eq!(found, (expected, gaps), "{times:?}");
        }
    }

    #[test]
    fn an_interval_that_reaches_back_leaves_no_gap() {
        let every_90 = Intervals::new([(0, Some(90))], &[]);
        let mut thinned = samples(&[0, 900, 1800, 2700]);
        (thinned[1].interval_ms, thinned[2].interval_ms) = (Some(899), Some(90));
        let (runs, _) = runs(&thinned, vec![], &every_90);
        assert_eq!(runs, [0..2, 2..3, 3..4]);
    }

    #[test]
    fn a_new_database_begins_anew() {
        let mut two = samples(&[0, 90, 180]);
        two[2].database = 1;
        let (runs, gaps) = runs(&two, vec![], &Intervals::new([(0, Some(90))], &[]));
        assert_eq!(runs, [0..2, 2..3]);
        assert_eq!(gaps, [gap(90, 180, "new_database")]);
    }

    #[test]
    fn a_gap_is_by_the_interval_in_force() {
        // Samples are due every 10 s, and from second 100 on every 90 s.
        let intervals = Intervals::new([(0, Some(10)), (100, Some(90))], &[]);
        let (runs, gaps) = runs(&samples(&[0, 50, 60, 170, 350, 531]), vec![], &intervals);
        assert_eq!(runs, [0..1, 1..5, 5..6]);
        assert_eq!(gaps, [gap(0, 50, "missing"), gap(350, 531, "missing")]);
    }

    #[test]
    fn a_run_covers_first_to_last() {
        let three = [10, 100, 200];
        assert_eq!(covered_ms(&three, &(0..3)), 190);
        assert_eq!(covered_ms(&three, &(1..2)), 0);
    }
}
