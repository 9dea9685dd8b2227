//! Windows in which a lease could have lasted: whatever would have ended the lease ends the window.
//!
//! A lease ends when the host sleeps, is switched off or booted; when the agent falls silent, which the lease
//! layer takes for the owner's return; and when the collector receives nothing any more. The period is then
//! known to end there, and a period that follows is known to begin there. A period is censored where the
//! trace begins or ends, and where the cause is unknown: the clock was set, samples could not be stored, are
//! missing or are in another database. In idle time a period is also censored where it is unknown whether the
//! owner was there.

use crate::availability::periods::window::Window;
use crate::derived::HostHistory;
use crate::trace::arrivals::Outage;
use gleaner_hosts::derived::IdlePeriod;
use gleaner_hosts::recorded::Gap;
use gleaner_policy::idle::Verdict;
use gleaner_schemas::findings::EndCause;
use std::ops::Range;

/// Time between a run of samples and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Break {
    /// Cause by which the break ends a lease, if known.
    pub(crate) end: Option<EndCause>,
    /// True if no lease can be followed across the break.
    pub(crate) is_blind: bool,
}

/// Returns the break after each run of a trace.
pub(crate) fn breaks(host: &HostHistory<'_>) -> Vec<Break> {
    let time = &host.trace.samples.time_ms;
    let runs = &host.trace.segments;
    let after = |i: usize| match runs.get(i + 1) {
        Some(next) => {
            let is_new_boot = host.trace.samples.is_new_boot.get(next.start);
            let (before, now) = (time[next.start - 1], time[next.start]);
            Break::of(&host.trace.gaps, before, now, is_new_boot == Some(&true))
        }
        None => Break::TRACE_END,
    };
    (0..runs.len()).map(after).collect()
}

/// A host's trace, divided at everything that ends leases.
pub(crate) struct LeaseWindows<'a> {
    host: &'a HostHistory<'a>,
    /// The break after each run.
    breaks: Vec<Break>,
    /// Outages of the network in each run.
    outages: Vec<Vec<Outage>>,
}

impl<'a> LeaseWindows<'a> {
    pub(crate) fn new(host: &'a HostHistory<'a>) -> Self {
        let time = &host.trace.samples.time_ms;
        let runs = &host.trace.segments;
        let in_run = |run: &Range<usize>| match time.get(run.clone()) {
            Some([first, .., last]) => host.trace.arrivals.outages(*first, *last),
            _ => Vec::new(),
        };
        Self {
            host,
            breaks: breaks(host),
            outages: runs.iter().map(in_run).collect(),
        }
    }

    /// Windows of the scope `all`; `known` are the runs of samples at which available memory is known.
    pub(crate) fn of_runs(&self, known: &[Range<usize>]) -> Vec<Window> {
        let time = &self.host.trace.samples.time_ms;
        let blind_ends = self.blind_ends(known);
        let window = |(i, run): (usize, &Range<usize>)| {
            let window = Window {
                start_seen: self.starts_after_an_end(i),
                end: self.breaks[i].end,
                observed_to_ms: observed_to_ms(time, &blind_ends, run.end),
                ..Window::of_run(time, run)?
            };
            Some(self.parts(&window, i, known))
        };
        let runs = self.host.trace.segments.iter().enumerate();
        runs.filter_map(window).flatten().collect()
    }

    /// Windows of the scope `idle`.
    pub(crate) fn of_absences(&self, known: &[Range<usize>]) -> Vec<Window> {
        let time = &self.host.trace.samples.time_ms;
        let runs = &self.host.trace.segments;
        let mut blind_ends = self.blind_ends(known);
        blind_ends.extend(starts_out_of_sight(&self.host.idleness.verdicts));
        blind_ends.sort_unstable();
        let window = |period: &IdlePeriod| {
            let i = runs.partition_point(|run| run.end <= period.samples.start);
            let run = runs.get(i)?;
            // A period that ends earlier because idleness becomes unknown is censored; at the run's end it
            // ends like the run.
            let reaches_end = period.samples.end == run.end;
            let from_start = period.from_ms <= time[run.start];
            let window = Window {
                start_seen: !period.is_start_censored
                    || (from_start && self.starts_after_an_end(i)),
                end: period.end.or(self.breaks[i].end.filter(|_| reaches_end)),
                observed_to_ms: observed_to_ms(time, &blind_ends, period.samples.end),
                ..Window::of_idle(period)
            };
            Some(self.parts(&window, i, known))
        };
        let periods = self.host.idleness.periods.iter();
        periods.filter_map(window).flatten().collect()
    }

    /// Parts of a window in one run: those in which the size is known and no outage lies.
    fn parts(&self, window: &Window, run: usize, known: &[Range<usize>]) -> Vec<Window> {
        let time = &self.host.trace.samples.time_ms;
        let parts = window.windows_of_known_size(time, known);
        parts
            .flat_map(|part| without_outages(part, time, &self.outages[run]))
            .collect()
    }

    /// Returns true if the break before a run ended every lease.
    fn starts_after_an_end(&self, run: usize) -> bool {
        let before = run.checked_sub(1).and_then(|i| self.breaks.get(i));
        before.is_some_and(|b| b.end.is_some())
    }

    /// Sample indices in order: at each, a run or a stretch of known sizes ends, beyond which no lease can be
    /// followed.
    fn blind_ends(&self, known: &[Range<usize>]) -> Vec<usize> {
        let runs = self.host.trace.segments.iter().zip(&self.breaks);
        let runs = runs.filter(|(_, b)| b.is_blind).map(|(run, _)| run.end);
        let mut ends: Vec<usize> = runs.chain(known.iter().map(|s| s.end)).collect();
        ends.sort_unstable();
        ends
    }
}

impl Break {
    const TRACE_END: Self = Self {
        end: None,
        is_blind: true,
    };

    /// Break between samples at `before_ms` and `now_ms`; `gaps` are the host's, ordered by their ends.
    fn of(gaps: &[Gap], before_ms: i64, now_ms: i64, is_new_boot: bool) -> Self {
        let is_backward = now_ms <= before_ms;
        let first = if is_backward {
            gaps.partition_point(|g| g.to_ms < now_ms)
        } else {
            gaps.partition_point(|g| g.to_ms <= before_ms)
        };
        let last = gaps.partition_point(|g| g.to_ms <= now_ms);
        let here = gaps.get(first..last).unwrap_or_default().iter();
        let mut found = Self {
            end: None,
            is_blind: is_backward,
        };
        for gap in here.filter(|g| (g.to_ms <= g.from_ms) == is_backward) {
            let end = end_by(&gap.cause, is_new_boot);
            found.end = found.end.or(end);
            found.is_blind |= end.is_none();
        }
        found.is_blind |= found.end.is_none();
        found
    }
}

/// Cause by which a gap ends a lease; `None` if the gap says nothing about the host.
fn end_by(cause: &str, is_new_boot: bool) -> Option<EndCause> {
    match cause {
        "sleep" | "boot" => Some(EndCause::SleepOrPower),
        "stopped" if is_new_boot => Some(EndCause::SleepOrPower),
        "stopped" | "late" => Some(EndCause::Agent),
        _ => None,
    }
}

/// First samples of the times in which it is unknown whether the host is idle.
fn starts_out_of_sight(verdicts: &[Verdict]) -> impl Iterator<Item = usize> + '_ {
    let unknown = |i: usize| verdicts[i] == Verdict::Unknown;
    (1..verdicts.len()).filter(move |&i| unknown(i) && !unknown(i - 1))
}

/// Time of the last sample before the first blind end at or after sample `end`; no lease can be followed
/// beyond a blind end.
fn observed_to_ms(time_ms: &[i64], blind_ends: &[usize], end: usize) -> i64 {
    let next = blind_ends.partition_point(|&blind| blind < end);
    let last = blind_ends.get(next).copied().unwrap_or(time_ms.len());
    let time = last.checked_sub(1).and_then(|i| time_ms.get(i));
    time.copied().unwrap_or(i64::MAX)
}

/// Parts of a window between outages: an outage ends the lease, and a new one begins after it.
fn without_outages(window: Window, time_ms: &[i64], outages: &[Outage]) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut rest = window;
    for outage in outages {
        let from = |ms: i64| {
            let times = &time_ms[rest.samples.clone()];
            rest.samples.start + times.partition_point(|&t| t < ms)
        };
        if outage.from_ms >= rest.end_ms {
            break;
        }
        let (last, next) = (from(outage.from_ms), from(outage.to_ms));
        if next == rest.samples.start {
            continue; // the outage ended before the window begins
        }
        if last > rest.samples.start {
            windows.push(Window {
                samples: rest.samples.start..last,
                end_ms: outage.from_ms,
                end: Some(EndCause::Network),
                ..rest.clone()
            });
        }
        rest.samples.start = next;
        rest.start_seen = true;
    }
    if !rest.samples.is_empty() {
        windows.push(rest);
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gap(from_ms: i64, to_ms: i64, cause: &str) -> Gap {
        Gap {
            from_ms,
            to_ms,
            cause: cause.into(),
        }
    }

    #[test]
    fn what_gaps_end_leases_by() {
        use EndCause::{Agent, SleepOrPower};
        let cases = [
            ("sleep", false, Some(SleepOrPower), false),
            ("boot", false, Some(SleepOrPower), false),
            ("stopped", true, Some(SleepOrPower), false),
            ("stopped", false, Some(Agent), false),
            ("late", true, Some(Agent), false),
            ("clock_step", false, None, true),
            ("unwritable", false, None, true),
            ("damaged", false, None, true),
            ("missing", true, None, true),
            ("new_database", false, None, true),
            ("of a later version", false, None, true),
        ];
        for (cause, is_new_boot, end, is_blind) in cases {
            let gaps = [gap(0, 5, "sleep"), gap(10, 20, cause), gap(30, 40, "sleep")];
            let found = Break::of(&gaps, 10, 20, is_new_boot);
            assert_eq!(found, Break { end, is_blind }, "{cause}");
        }
        // The host slept and the clock was set: that ends a lease, and no lease can be followed across it.
        let both = [gap(10, 20, "clock_step"), gap(10, 20, "sleep")];
        let end = Some(SleepOrPower);
        let is_blind = true;
        assert_eq!(Break::of(&both, 10, 20, false), Break { end, is_blind });
        // First, the clock is set back; second, no recorded gap explains the break.
        let back = [gap(20, 15, "clock_step"), gap(20, 30, "sleep")];
        assert_eq!(Break::of(&back, 20, 15, false), Break::TRACE_END);
        assert_eq!(Break::of(&[], 10, 20, false), Break::TRACE_END);
    }

    #[test]
    fn sight_ends_where_it_is_first_lost() {
        let seen = Verdict::Loaded;
        let verdicts = [
            Verdict::Unknown,
            seen,
            seen,
            Verdict::Unknown,
            Verdict::Unknown,
            seen,
        ];
        assert!(starts_out_of_sight(&verdicts).eq([3]));
        // Samples at 0, 10, ...; blind ends are at sample 3 and after the last sample.
        let time = [0, 10, 20, 30, 40, 50];
        let to = |end| observed_to_ms(&time, &[3, 6], end);
        assert_eq!([0, 2, 3, 4, 6].map(to), [20, 20, 20, 50, 50]);
    }

    fn window(samples: Range<usize>, end_ms: i64) -> Window {
        Window {
            samples,
            end_ms,
            start_seen: false,
            end: Some(EndCause::Owner),
            observed_to_ms: 1000,
        }
    }

    fn brief(windows: &[Window]) -> Vec<(Range<usize>, i64, bool, Option<EndCause>)> {
        let brief = |w: &Window| (w.samples.clone(), w.end_ms, w.start_seen, w.end);
        windows.iter().map(brief).collect()
    }

    #[test]
    fn outages_worked_by_hand() {
        let time = [0, 10, 20, 30, 40, 50, 60, 70];
        let outage = |from_ms, to_ms| Outage { from_ms, to_ms };
        let of = |outages: &[Outage]| brief(&without_outages(window(1..7, 65), &time, outages));
        let (owner, network) = (Some(EndCause::Owner), Some(EndCause::Network));
        assert_eq!(of(&[]), [(1..7, 65, false, owner)]);
        // An outage from between two samples to between two later ones; a lease can begin after it.
        let two = [(1..3, 25, false, network), (5..7, 65, true, owner)];
        assert_eq!(of(&[outage(25, 45)]), two);
        // An outage that began before the window, and one that was over by its start.
        assert_eq!(of(&[outage(5, 20)]), [(2..7, 65, true, owner)]);
        assert_eq!(of(&[outage(0, 9)]), [(1..7, 65, false, owner)]);
        // An outage to the window's end, one after it, and one over all of it.
        assert_eq!(of(&[outage(35, 70)]), [(1..4, 35, false, network)]);
        assert_eq!(of(&[outage(65, 70)]), [(1..7, 65, false, owner)]);
        assert_eq!(of(&[outage(0, 70)]), []);
        let three = [
            (1..2, 15, false, network),
            (3..4, 35, true, network),
            (6..7, 65, true, owner),
        ];
        assert_eq!(of(&[outage(15, 30), outage(35, 60)]), three);
    }

    proptest! {
        /// The parts of a window contain, in order, exactly its samples that lie in no outage.
        #[test]
        fn outages_take_their_samples_only(
            steps in prop::collection::vec(1..20i64, 1..30),
            cuts in prop::collection::vec(1..40i64, 0..8),
        ) {
            let mut now = 0;
            let time: Vec<i64> = steps.iter().map(|s| { now += s; now }).collect();
            let mut at = 0;
            let ends: Vec<i64> = cuts.iter().map(|c| { at += c; at }).collect();
            let outages: Vec<Outage> = ends.chunks_exact(2)
                .map(|o| Outage { from_ms: o[0], to_ms: o[1] }).collect();
            let found = without_outages(window(0..time.len(), now), &time, &outages);
            let kept: Vec<usize> = found.iter().flat_map(|w| w.samples.clone()).collect();
            let free = |i: &usize| !outages.iter().any(|o| o.from_ms <= time[*i] && time[*i] < o.to_ms);
            // The window's last sample stands for no time.
            let expected: Vec<usize> = (0..time.len()).filter(free).collect();
            prop_assert_eq!(
                kept.iter().filter(|i| time[**i] < now).collect::<Vec<_>>(),
                expected.iter().filter(|i| time[**i] < now).collect::<Vec<_>>()
            );
            for w in &found {
                prop_assert!(w.end_ms <= now);
                prop_assert!(time[w.samples.end - 1] <= w.end_ms);
            }
        }
    }
}
