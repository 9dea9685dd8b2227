//! The nominal recording interval of a machine, from the times of its samples.

/// Maximum number of tasks that record the same machine at the same time, all at the same interval.
const TASKS: usize = 4;
/// Longest interval of a recorder. Longer repetitions come from people's habits, with pauses in between.
const PERIOD_AT_MOST_MS: i64 = 3_600_000;
/// Minimum number of steps from which a period can be found.
const STEPS_AT_LEAST: usize = 16;
/// If more than this percentage of the steps are equal, they are one task's interval. Of two alternating
/// steps, each has half.
const HALF: usize = 55;
/// Minimum percentage of equal periods for which the period counts as the interval of several tasks.
const REGULAR: usize = 90;

/// Recording interval of the samples at `times_ms`, which are in order; `None` for fewer than two samples. It
/// is the median step. If the steps alternate because several tasks record, it is the period after which the
/// steps repeat.
///
/// The analysis takes the median step if no interval is recorded. If steps of 3 s and 57 s alternate, the
/// median is one of them, though both tasks record once a minute. With 3 s, every second step would be a gap.
pub(super) fn interval_ms(times_ms: &[i64]) -> Option<i64> {
    let (median_ms, share) = period(times_ms, 1)?;
    // If more than half of the steps are equal, they are the interval and the others are pauses.
    if share > HALF || times_ms.len() <= STEPS_AT_LEAST {
        return Some(median_ms);
    }
    let periods = (2..=TASKS).filter_map(|tasks| period(times_ms, tasks));
    let mut regular = periods.filter(|(ms, share)| *share >= REGULAR && *ms <= PERIOD_AT_MOST_MS);
    Some(regular.next().map_or(median_ms, |(period_ms, _)| period_ms))
}

/// Median step, which readers of a dataset use if no interval is recorded.
pub(super) fn median_ms(times_ms: &[i64]) -> Option<i64> {
    period(times_ms, 1).map(|(median_ms, _)| median_ms)
}

/// Median time from a sample to the one `tasks` later, and the percentage of such times within 10 % of that
/// median.
fn period(times_ms: &[i64], tasks: usize) -> Option<(i64, usize)> {
    let later = times_ms.iter().skip(tasks);
    let mut steps: Vec<i64> = later.zip(times_ms).map(|(to, from)| to - from).collect();
    steps.sort_unstable();
    let median_ms = *steps.get(steps.len() / 2)?;
    let is_near = |step: &&i64| step.abs_diff(median_ms) <= median_ms.unsigned_abs() / 10;
    let near = steps.iter().filter(is_near).count();
    Some((median_ms, 100 * near / steps.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(steps_ms: &[i64], repeats: usize) -> Vec<i64> {
        let mut times_ms = vec![0];
        for step in steps_ms.iter().cycle().take(steps_ms.len() * repeats) {
            times_ms.push(times_ms.last().unwrap() + step);
        }
        times_ms
    }

    #[test]
    fn tasks_side_by_side_have_the_interval_of_each() {
        for (steps_ms, expected) in [
            (&[10_000][..], 10_000),
            (&[3_000, 57_000], 60_000),
            (&[57_000, 3_000], 60_000),
            (&[1_000, 2_000, 57_000], 60_000),
            // Irregular steps have no period: the result is their median, as in the analysis.
            (&[10_000, 10_000, 90_000, 700_000, 20_000, 40_000], 40_000),
        ] {
            assert_eq!(
                interval_ms(&times(steps_ms, 20)),
                Some(expected),
                "{steps_ms:?}"
            );
        }
        assert_eq!(interval_ms(&[]), None);
        assert_eq!(interval_ms(&[5]), None);
        assert_eq!(interval_ms(&[5, 12]), Some(7));
    }

    /// A machine that is recorded for a few minutes each day does not have an interval of one day.
    #[test]
    fn pauses_are_no_period() {
        for bursts in [
            &[600_000, 600_000, 600_000, 80_000_000][..],
            &[600_000, 600_000, 80_000_000],
            &[80_000_000, 600_000, 600_000],
        ] {
            assert_eq!(interval_ms(&times(bursts, 30)), Some(600_000), "{bursts:?}");
        }
        // With two samples a day, either step may be the interval, but never the whole day.
        let found = interval_ms(&times(&[600_000, 80_000_000], 30));
        assert!(found.is_some_and(|ms| ms <= 80_000_000), "{found:?}");
    }
}
