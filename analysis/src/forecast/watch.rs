//! What of a trace leases of memory could have been followed through, and what ended them.
//!
//! A lease ends where the host sleeps, is switched off or booted, and where the agent falls silent. Nothing can be told
//! beyond a trace's end, and across gaps of other causes; for idle time, nor where the owner is out of sight.

use crate::trace::HostTrace;
use crate::trace::segments::Gap;
use gleaner_policy::idle::Verdict;
use std::ops::Range;

/// Samples over which a region that stays available stays leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    pub(super) samples: Range<usize>,
    /// What still lasts then ends then, or cannot be followed further.
    pub(super) end_ms: i64,
    /// Up to when fates are known, whatever they are.
    pub(super) known_to_ms: i64,
}

/// What lies after a run of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// It ends leases; what comes after can be followed.
    End,
    /// Nothing can be told beyond.
    Blind,
}

/// Scope `all`: each run of samples.
pub(super) fn of_runs(trace: &HostTrace<'_>) -> Vec<Watch> {
    let time = &trace.samples.time_ms;
    let blind_ends = blind_ends(trace);
    let runs = trace.segments.iter();
    runs.filter_map(|run| {
        Some(Watch {
            samples: run.clone(),
            end_ms: *time.get(run.clone())?.last()?,
            known_to_ms: known_to_ms(time, &blind_ends, run.end),
        })
    })
    .collect()
}

/// Scope `idle`: each idle period.
pub(super) fn of_absences(trace: &HostTrace<'_>) -> Vec<Watch> {
    let time = &trace.samples.time_ms;
    let verdicts = &trace.idleness.verdicts;
    let unknown = |i: usize| verdicts[i] == Verdict::Unknown;
    let mut blind_ends = blind_ends(trace);
    blind_ends.extend((1..verdicts.len()).filter(|&i| unknown(i) && !unknown(i - 1)));
    blind_ends.sort_unstable();
    let periods = trace.idleness.periods.iter();
    periods
        .map(|period| Watch {
            samples: period.samples.clone(),
            end_ms: period.to_ms,
            known_to_ms: known_to_ms(time, &blind_ends, period.samples.end),
        })
        .collect()
}

/// Ends of the runs (samples) beyond which nothing can be told, in order.
fn blind_ends(trace: &HostTrace<'_>) -> Vec<usize> {
    let time = &trace.samples.time_ms;
    let runs = trace.segments.windows(2);
    let within = runs.filter_map(|pair| {
        let (before, now) = (time[pair[0].end - 1], time[pair[1].start]);
        (break_between(&trace.gaps, before, now) == Break::Blind).then_some(pair[0].end)
    });
    within.chain([time.len()]).collect()
}

/// Between two samples; `gaps` are the host's, in order of their ends.
fn break_between(gaps: &[Gap], before_ms: i64, now_ms: i64) -> Break {
    if now_ms <= before_ms {
        return Break::Blind;
    }
    let first = gaps.partition_point(|g| g.to_ms <= before_ms);
    let last = gaps.partition_point(|g| g.to_ms <= now_ms);
    let here = gaps[first..last].iter().filter(|g| g.from_ms < g.to_ms);
    let ends = |gap: &Gap| matches!(gap.cause.as_str(), "sleep" | "boot" | "stopped" | "late");
    match here.map(ends).reduce(|all, ends| all && ends) {
        Some(true) => Break::End,
        // Of a gap that nobody recorded nothing is known.
        Some(false) | None => Break::Blind,
    }
}

/// The last sample before the first blind end from sample `end` on.
fn known_to_ms(time_ms: &[i64], blind_ends: &[usize], end: usize) -> i64 {
    let next = blind_ends.partition_point(|&blind| blind < end);
    let end = blind_ends.get(next).copied().unwrap_or(time_ms.len());
    let last = end.checked_sub(1).and_then(|i| time_ms.get(i));
    last.copied().unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(from_ms: i64, to_ms: i64, cause: &str) -> Gap {
        Gap {
            from_ms,
            to_ms,
            cause: cause.into(),
        }
    }

    #[test]
    fn what_ends_leases_and_what_hides_their_fate() {
        let gaps = [
            gap(20, 15, "clock_step"),
            gap(90, 100, "sleep"),
            gap(190, 200, "missing"),
            gap(290, 300, "stopped"),
            gap(292, 300, "unwritable"),
        ];
        assert_eq!(break_between(&gaps, 90, 100), Break::End);
        assert_eq!(break_between(&gaps, 190, 200), Break::Blind);
        assert_eq!(break_between(&gaps, 290, 300), Break::Blind);
        // Unrecorded, and backward.
        assert_eq!(break_between(&gaps, 390, 400), Break::Blind);
        assert_eq!(break_between(&gaps, 20, 15), Break::Blind);
        assert_eq!(break_between(&gaps, 10, 16), Break::Blind);
    }

    #[test]
    fn known_up_to_the_next_blind_end() {
        let time = [0, 10, 20, 30, 40, 50];
        assert_eq!(known_to_ms(&time, &[3, 6], 2), 20);
        assert_eq!(known_to_ms(&time, &[3, 6], 3), 20);
        assert_eq!(known_to_ms(&time, &[3, 6], 4), 50);
        assert_eq!(known_to_ms(&[], &[], 0), i64::MIN);
    }
}
