//! Events between two moments. All functions here are pure.

use crate::clock::Moment;
use crate::interval;
use crate::trace::store::Event;
use gleaner_schemas::rows::{EventRow, SampleRow};
use std::time::Duration;

/// Minimum length of a suspend: a shorter one cannot be distinguished from clocks read a moment apart.
const SHORTEST_SLEEP_MS: i64 = 500;

/// Minimum step of the wall clock. A smaller one may be the time between reading the clocks, or the slewing
/// of a clock between two wakeups.
const LEAST_STEP_MS: i64 = 50;

/// Minimum step of the wall clock if the kernel reported none: no clock is slewed that far between two
/// wakeups.
const LEAST_UNTOLD_STEP_MS: i64 = 2000;

/// Maximum CPU time of a sample.
const MOST_CPU_US: i64 = 50_000;

/// State of the clocks at the last wakeup of the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    last: Moment,
    /// True if the kernel reported a step after the clocks were read last.
    told: bool,
}

impl Clocks {
    /// Makes clocks as of `now`.
    pub(crate) const fn new(now: Moment) -> Self {
        Self {
            last: now,
            told: false,
        }
    }

    /// Events between the last wakeup and this one. `clock_set` is true if the kernel reported a step; the
    /// caller checks this after reading `now`.
    pub(crate) fn step(&mut self, now: &Moment, clock_set: bool) -> Vec<Event> {
        let before = std::mem::replace(&mut self.last, *now);
        let suspended_ms = suspended_ms(&before, now);
        let stepped_ms = stepped_ms(&before, now);
        let told = clock_set || std::mem::take(&mut self.told);
        let mut events = Vec::new();
        if suspended_ms >= SHORTEST_SLEEP_MS {
            // The kernel wakes the loop as soon as the host wakes: `now` is the end of the sleep.
            let asleep_at_ms = now.time_ms - stepped_ms - suspended_ms;
            events.push(event(asleep_at_ms, "sleep", Some(suspended_ms), None));
            events.push(event(now.time_ms, "wake", Some(suspended_ms), None));
        }
        let least_ms = if told {
            LEAST_STEP_MS
        } else {
            LEAST_UNTOLD_STEP_MS
        };
        if stepped_ms.abs() >= least_ms {
            events.push(event(now.time_ms, "clock_step", Some(stepped_ms), None));
        } else {
            self.told = clock_set && suspended_ms < SHORTEST_SLEEP_MS;
        }
        events
    }
}

/// Time that the host slept between two moments, in ms.
const fn suspended_ms(before: &Moment, now: &Moment) -> i64 {
    (now.boottime_ms - before.boottime_ms) - (now.monotonic_ms - before.monotonic_ms)
}

/// Step of the wall clock between two moments, in ms; negative: backwards.
pub(crate) const fn stepped_ms(before: &Moment, now: &Moment) -> i64 {
    (now.time_ms - before.time_ms) - (now.boottime_ms - before.boottime_ms)
}

/// Event of missed samples: `due` samples became due since the one at `before`, and only one is taken, `now`.
/// `None` if the host slept in between: the events of the sleep explain the missed samples.
pub(crate) fn missed(due: u64, before: &Moment, now: &Moment, interval_ms: i64) -> Option<Event> {
    let count = i64::try_from(due).ok()?.saturating_sub(1);
    if count < 1 || suspended_ms(before, now) >= SHORTEST_SLEEP_MS {
        return None;
    }
    let interval = Duration::from_millis(u64::try_from(interval_ms).ok()?);
    let detail = format!("{count} of {}", interval::format(interval));
    let late_ms = count.saturating_mul(interval_ms);
    Some(event(
        now.time_ms,
        "missed_sample",
        Some(late_ms),
        Some(detail),
    ))
}

/// Event of a sample that used more of the host than tracing may.
pub(crate) fn overload(time_ms: i64, sample: &SampleRow, interval_ms: i64) -> Option<Event> {
    let (cpu_us, wall_us) = (sample.agent_cpu_us, sample.agent_wall_us);
    let (most_us, what) = if cpu_us > MOST_CPU_US {
        (cpu_us, "of CPU time")
    } else if wall_us > interval_ms.saturating_mul(1000) / 2 {
        (wall_us, "of the interval")
    } else {
        return None;
    };
    let detail = Some(what.to_owned());
    Some(event(time_ms, "overload", Some(most_us / 1000), detail))
}

/// Event of the host's boot. `boot_id` identifies a boot: each is recorded once.
pub(crate) fn boot(now: &Moment, boot_id: &str) -> Event {
    let booted_at_ms = now.time_ms - now.boottime_ms;
    event(booted_at_ms, "boot", None, Some(boot_id.to_owned()))
}

/// Event of the agent's start.
pub(crate) fn agent_start(now: &Moment) -> Event {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    event(now.time_ms, "agent_start", None, Some(version))
}

/// Event of the agent's end, with the reason.
pub(crate) fn agent_stop(now: &Moment, why: &str) -> Event {
    event(now.time_ms, "agent_stop", None, Some(why.to_owned()))
}

/// Event of the owner's return, first seen by `source`.
pub(crate) fn owner_returned(time_ms: i64, absence_ms: i64, source: &str) -> Event {
    let detail = Some(source.to_owned());
    event(time_ms, "owner_returned", Some(absence_ms), detail)
}

fn event(time_ms: i64, kind: &str, duration_ms: Option<i64>, detail: Option<String>) -> Event {
    let kind = kind.to_owned();
    (
        time_ms,
        EventRow {
            kind,
            duration_ms,
            detail,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Moment = Moment {
        time_ms: 1_000_000,
        boottime_ms: 5000,
        monotonic_ms: 4000,
    };

    fn after(wall: i64, boottime: i64, monotonic: i64) -> Moment {
        Moment {
            time_ms: BEFORE.time_ms + wall,
            boottime_ms: BEFORE.boottime_ms + boottime,
            monotonic_ms: BEFORE.monotonic_ms + monotonic,
        }
    }

    fn brief(events: &[Event]) -> Vec<(i64, &str, Option<i64>)> {
        let brief = |(time_ms, row): &'_ Event| (time_ms - BEFORE.time_ms, row.duration_ms);
        let with_kind = |e| {
            let (time_ms, duration_ms) = brief(e);
            (time_ms, e.1.kind.as_str(), duration_ms)
        };
        events.iter().map(with_kind).collect()
    }

    #[test]
    fn sleeps_and_steps_between_two_wakes() {
        let cases = [
            // Each case: time passed on wall, boot and monotonic clock; true if the kernel reported a step;
            // expected events (time, kind, length).
            (5000, 5000, 5000, false, vec![]),
            (5000, 5000, 4501, false, vec![]), // clocks read a moment apart
            (
                9000,
                9000,
                5000,
                true,
                vec![(5000, "sleep", Some(4000)), (9000, "wake", Some(4000))],
            ),
            (5049, 5000, 5000, true, vec![]), // slewed
            (5050, 5000, 5000, true, vec![(5050, "clock_step", Some(50))]),
            (
                3000,
                5000,
                5000,
                true,
                vec![(3000, "clock_step", Some(-2000))],
            ),
            (5500, 5000, 5000, false, vec![]), // slewed fast
            (
                7000,
                5000,
                5000,
                false,
                vec![(7000, "clock_step", Some(2000))],
            ),
            // The host sleeps for a minute from the fifth second on. After it wakes, its clock is set forward
            // by an hour.
            (
                3_665_000,
                65_000,
                5000,
                true,
                vec![
                    (5000, "sleep", Some(60_000)),
                    (3_665_000, "wake", Some(60_000)),
                    (3_665_000, "clock_step", Some(3_600_000)),
                ],
            ),
        ];
        for (wall, boottime, monotonic, told, expected) in cases {
            let mut clocks = Clocks::new(BEFORE);
            let events = clocks.step(&after(wall, boottime, monotonic), told);
            assert_eq!(
                brief(&events),
                expected,
                "{wall} {boottime} {monotonic} {told}"
            );
        }
    }

    #[test]
    fn a_step_told_of_just_before_it_is_seen_counts_and_once() {
        let mut clocks = Clocks::new(BEFORE);
        assert_eq!(brief(&clocks.step(&after(10, 10, 10), true)), []);
        let stepped = clocks.step(&after(120, 20, 20), false);
        assert_eq!(brief(&stepped), [(120, "clock_step", Some(100))]);
        assert_eq!(brief(&clocks.step(&after(220, 30, 30), false)), []);
    }

    #[test]
    fn samples_missed_while_awake() {
        const INTERVAL_MS: i64 = 90_000;
        let cases = [
            // Each case: samples due, time passed on boot and monotonic clock; expected length and detail of
            // the event.
            (1, 90_000, 90_000, None),
            (1, 170_000, 170_000, None), // late, but none missed
            (2, 185_000, 185_000, Some((90_000, "1 of 1m30s"))),
            (5, 450_000, 450_000, Some((360_000, "4 of 1m30s"))),
            (41, 3_690_000, 90_000, None),  // asleep
            (41, 3_690_000, 290_000, None), // asleep, and slow to wake
        ];
        for (due, boottime, monotonic, expected) in cases {
            let now = after(boottime, boottime, monotonic);
            let event = missed(due, &BEFORE, &now, INTERVAL_MS);
            let event = event.as_ref().map(|(_, row)| {
                assert_eq!(row.kind, "missed_sample");
                (row.duration_ms.unwrap(), row.detail.as_deref().unwrap())
            });
            assert_eq!(event, expected, "{due} {boottime} {monotonic}");
        }
    }

    #[test]
    fn samples_that_take_too_much() {
        let cases = [
            // Each case: CPU time and wall time in us; expected length in ms and detail of the event.
            (50_000, 500_000, None),
            (50_001, 60_000, Some((50, "of CPU time"))),
            (9000, 500_001, Some((500, "of the interval"))),
        ];
        for (agent_cpu_us, agent_wall_us, expected) in cases {
            let sample = SampleRow {
                agent_cpu_us,
                agent_wall_us,
                ..SampleRow::default()
            };
            let event = overload(7, &sample, 1000);
            let event = event.as_ref().map(|(time_ms, row)| {
                assert_eq!((*time_ms, row.kind.as_str()), (7, "overload"));
                (row.duration_ms.unwrap(), row.detail.as_deref().unwrap())
            });
            assert_eq!(event, expected, "{agent_cpu_us} {agent_wall_us}");
        }
    }

    #[test]
    fn a_boot_is_when_the_clock_of_boots_began() {
        let (time_ms, row) = boot(&BEFORE, "b");
        assert_eq!((time_ms, row.detail.as_deref()), (995_000, Some("b")));
    }
}
