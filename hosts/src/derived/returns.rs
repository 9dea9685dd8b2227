//! Returns: the owner or a high load ends an idle period, and all lent memory is reclaimed.

use super::{IdlePeriod, Idleness};
use gleaner_schemas::findings::EndCause;
use std::ops::{Range, RangeInclusive};

/// Return of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    /// End of the idle period, ms since 1970-01-01 UTC.
    pub at_ms: i64,
    /// Cause of the end: the owner or the load.
    pub cause: EndCause,
    /// Index of the idle period's last sample.
    pub last_idle: usize,
    /// Samples in the window after the return. If the first sample after the return comes too late for the
    /// window, it still counts. A gap ends the window.
    pub window: RangeInclusive<usize>,
}

/// Returns of one host, in order: all ends of idle periods that were seen. Each idle period has at least one
/// sample at which the rule called the host idle, so memory could be lent during it.
#[must_use]
pub fn returns(
    time_ms: &[i64],
    runs: &[Range<usize>],
    idleness: &Idleness,
    window_ms: i64,
) -> Vec<Return> {
    let periods = idleness.periods.iter();
    let back = |period| return_of(time_ms, runs, period, window_ms);
    periods.filter_map(back).collect()
}

/// Return at the end of one idle period; `None` if the period was cut.
#[must_use]
pub fn return_of(
    time_ms: &[i64],
    runs: &[Range<usize>],
    period: &IdlePeriod,
    window_ms: i64,
) -> Option<Return> {
    let first = period.samples.end;
    Some(Return {
        at_ms: period.to_ms,
        cause: period.end?,
        last_idle: first.checked_sub(1)?,
        window: window(time_ms, runs, first, period.to_ms, window_ms)?,
    })
}

/// Range of the samples from `first` on that lie at most `window_ms` after `from_ms`; `first` itself is
/// always part of it. `None` if a gap lies before `first`.
fn window(
    time_ms: &[i64],
    runs: &[Range<usize>],
    first: usize,
    from_ms: i64,
    window_ms: i64,
) -> Option<RangeInclusive<usize>> {
    let run = runs.get(runs.partition_point(|run| run.end <= first))?;
    if first <= run.start {
        return None;
    }
    let until_ms = from_ms.saturating_add(window_ms);
    let inside = time_ms[first..run.end].partition_point(|&t| t <= until_ms);
    Some(first..=first + inside.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_policy::idle::{IdleRule, Observation};

    const S: i64 = 1000;

    #[test]
    fn owner_and_load_end_what_was_lent_and_cuts_do_not() {
        // Each row: second of the sample, seconds since the owner was active, load.
        let rows = [
            (0, 600, 0.1),
            (300, 900, 0.1), // idle since 0; the time before is unknown
            (390, 10, 0.1),  // the owner was back at 380
            (480, 100, 0.1),
            (570, 190, 0.1),
            (660, 280, 0.1),
            (750, 370, 0.1), // idle since 380: the visit had no length
            (840, 460, 0.9), // the load rises
            (930, 550, 0.1),
            (1320, 940, 0.1), // idle since 930, until the gap
            (9000, 0, 0.1),
        ];
        let samples = rows.map(|(second, owner_idle, load)| Observation {
            time_ms: second * S,
            owner_idle_ms: Some(owner_idle * S),
            load5: Some(load),
        });
        let time_ms = samples.map(|s| s.time_ms);
        let runs = [0..10, 10..11];
        let idleness = Idleness::of(&samples, &runs, &IdleRule::default());
        let returns = returns(&time_ms, &runs, &idleness, 200 * S);
        let found: Vec<_> = returns
            .into_iter()
            .map(|r| (r.at_ms / S, r.last_idle, r.window))
            .collect();
        assert_eq!(found, [(380, 1, 2..=4), (840, 6, 7..=8)]);
    }

    #[test]
    fn the_window_reaches_to_the_gap_and_holds_one_sample_at_least() {
        let time = [0, 10, 20, 30, 500, 900];
        let of =
            |first, from_ms, window_ms| window(&time, &[0..5, 5..6], first, from_ms, window_ms);
        assert_eq!(of(1, 5, 15), Some(1..=2));
        assert_eq!(of(1, 5, 16), Some(1..=2));
        assert_eq!(of(1, 5, 0), Some(1..=1));
        assert_eq!(of(4, 31, 200), Some(4..=4), "too late, and stands for it");
        assert_eq!(of(3, 25, i64::MAX), Some(3..=4), "the gap ends it");
        assert_eq!(of(5, 890, 200), None, "nothing is known across a gap");
        assert_eq!(of(6, 0, 200), None);
    }
}
