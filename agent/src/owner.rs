//! The owner: whether they are away, when they return, and whether the host counts as idle by
//! [`gleaner_policy::idle`]. This module decides; it neither waits nor writes.

use crate::activity::{ACTIVITY_JITTER_MS, Sign, least_idle};
use crate::clock::Moment;
use crate::sample::Sample;
use crate::trace::events;
use crate::trace::gap;
use crate::trace::store::Event;
use gleaner_policy::guest_load::owner_load5;
use gleaner_policy::idle::{IdleRule, IdleState, Observation, Verdict};
use gleaner_schemas::live::{HostState, Owner as Message, OwnerState};

/// State of what is known about the owner's presence.
#[derive(Debug)]
pub(crate) struct Owner {
    interval_ms: i64,
    return_watch_after_ms: i64,
    rule: IdleRule,
    idle: IdleState,
    last: Option<Moment>,
    /// Last sample during the owner's absence; `None` while the owner is present.
    away: Option<OwnerAbsence>,
    /// State of the owner in the last message.
    told: OwnerState,
}

#[derive(Clone, Copy, Debug)]
struct OwnerAbsence {
    at: Moment,
    idle_ms: i64,
}

/// Result of evaluating one sample.
#[derive(Debug)]
pub(crate) struct OwnerUpdate {
    /// The host's state by the idle rule.
    pub(crate) state: HostState,
    /// Messages to send about the owner: the return first, then changes.
    pub(crate) messages: Vec<Message>,
    /// The owner's return, if this sample is the first to show it.
    pub(crate) event: Option<Event>,
    /// True if the agent should wait for the owner's return.
    pub(crate) is_away: bool,
    /// Time since the previous sample; `None` after a gap.
    pub(crate) interval_ms: Option<i64>,
}

impl Owner {
    /// Owner whose return is awaited after an idle time of `return_watch_after_ms`; samples are taken every
    /// `interval_ms`.
    pub(crate) fn new(interval_ms: i64, return_watch_after_ms: i64) -> Self {
        Self {
            interval_ms,
            return_watch_after_ms,
            rule: IdleRule::default(),
            idle: IdleState::default(),
            last: None,
            away: None,
            told: OwnerState::Unknown,
        }
    }

    /// Sets new intervals; the knowledge of the owner stays.
    pub(crate) const fn configure(&mut self, interval_ms: i64, return_watch_after_ms: i64) {
        self.interval_ms = interval_ms;
        self.return_watch_after_ms = return_watch_after_ms;
    }

    /// Evaluates a sample.
    pub(crate) fn sampled(&mut self, sample: &Sample) -> OwnerUpdate {
        let now = sample.moment;
        let before = self.last.replace(now);
        let before = before.filter(|b| gap::between(b, &now, self.interval_ms).is_none());
        let interval_ms = before.map(|before| now.boottime_ms - before.boottime_ms);
        let verdict = self.verdict(sample, before.is_some());
        let state = host_state(&now, verdict);
        let source = least_idle(&sample.activity).unwrap_or("unknown");
        let owner_idle_ms = sample.row.owner_idle_ms;
        let away = owner_idle_ms.filter(|&idle_ms| idle_ms >= self.return_watch_after_ms);
        let away = away.map(|idle_ms| OwnerAbsence { at: now, idle_ms });
        let before = std::mem::replace(&mut self.away, away);
        let mut found = OwnerUpdate {
            state,
            messages: Vec::new(),
            event: None,
            is_away: away.is_some(),
            interval_ms,
        };
        if let (Some(before), Some(idle_ms)) = (before, owner_idle_ms) {
            // The owner may have returned and left between the samples. Their idle time then began during the
            // absence.
            let absence_ms = before.until(&now) - idle_ms;
            if away.is_none() || absence_ms > before.idle_ms + ACTIVITY_JITTER_MS {
                let (time_ms, absence_ms) = (now.time_ms - idle_ms, absence_ms.max(0));
                found
                    .messages
                    .push(self.in_use(time_ms, Some(absence_ms), source));
                found.event = Some(events::owner_returned(time_ms, absence_ms, source));
            }
        }
        let message = match (verdict, self.told) {
            (Verdict::Idle { .. }, OwnerState::Idle)
            | (Verdict::Unknown, OwnerState::Unknown)
            | (Verdict::Waiting { .. } | Verdict::Loaded, OwnerState::InUse) => None,
            (Verdict::Idle { .. }, _) => Some(self.record_message(Message {
                state: OwnerState::Idle,
                time_ms: now.time_ms,
                since_time_ms: state.since_time_ms(),
                ..Message::default()
            })),
            (Verdict::Unknown, _) => Some(self.record_message(Message {
                state: OwnerState::Unknown,
                time_ms: now.time_ms,
                ..Message::default()
            })),
            (Verdict::Loaded, _) => Some(self.in_use(now.time_ms, None, "load")),
            (Verdict::Waiting { .. }, _) => {
                // If the owner is still away, they did not return: the rule only started over, since nothing
                // is assumed across a gap.
                let source = if away.is_some() { "gap" } else { source };
                Some(self.in_use(now.time_ms, None, source))
            }
        };
        found.messages.extend(message);
        found
    }

    /// Handles the first sign of the owner; `None` if they were not away.
    pub(crate) fn returned(&mut self, now: &Moment, sign: Sign) -> Option<(Message, Event)> {
        let absence_ms = self.away.take()?.until(now);
        let message = self.in_use(sign.time_ms, Some(absence_ms), sign.source);
        Some((
            message,
            events::owner_returned(sign.time_ms, absence_ms, sign.source),
        ))
    }

    fn verdict(&mut self, sample: &Sample, follows: bool) -> Verdict {
        if !follows {
            self.idle = IdleState::default();
        }
        let seen = Observation {
            time_ms: sample.moment.boottime_ms, // the wall clock may be set
            owner_idle_ms: sample.row.owner_idle_ms,
            load5: owner_load5(sample.row.load5, sample.row.guest_load5),
        };
        self.idle.step(&self.rule, seen)
    }

    fn in_use(&mut self, time_ms: i64, absence_ms: Option<i64>, source: &str) -> Message {
        self.record_message(Message {
            state: OwnerState::InUse,
            time_ms,
            absence_ms,
            source: Some(source.to_owned()),
            ..Message::default()
        })
    }

    fn record_message(&mut self, message: Message) -> Message {
        self.told = message.state;
        message
    }
}

impl OwnerAbsence {
    /// Length of the owner's absence until `now`, if it still lasts. The boot clock measures it, since nobody
    /// can set that clock.
    const fn until(&self, now: &Moment) -> i64 {
        self.idle_ms + (now.boottime_ms - self.at.boottime_ms)
    }
}

/// Converts a verdict's times from the boot clock to the wall clock, for listeners.
fn host_state(now: &Moment, verdict: Verdict) -> HostState {
    let to_wall_clock = |boottime_ms: i64| now.time_ms - now.boottime_ms + boottime_ms;
    match verdict {
        Verdict::Idle { since_ms } => HostState::Idle {
            since_time_ms: to_wall_clock(since_ms),
        },
        Verdict::Waiting { at_ms } => HostState::InUse {
            idle_at_time_ms: to_wall_clock(at_ms),
        },
        Verdict::Loaded => HostState::Loaded,
        Verdict::Unknown => HostState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::missing_values::MissingValues;
    use gleaner_schemas::rows::{ActivityRow, SampleRow};

    const MINUTE: i64 = 60_000;
    const BOOTED_AT_MS: i64 = 1_000_000;

    fn moment(boottime_ms: i64) -> Moment {
        Moment {
            time_ms: BOOTED_AT_MS + boottime_ms,
            boottime_ms,
            monotonic_ms: boottime_ms,
        }
    }

    fn sample(boottime_ms: i64, owner_idle_ms: Option<i64>, load5: f64) -> Sample {
        Sample {
            moment: moment(boottime_ms),
            row: SampleRow {
                owner_idle_ms,
                load5: Some(load5),
                ..SampleRow::default()
            },
            processes: Vec::new(),
            files: Vec::new(),
            activity: vec![ActivityRow {
                source: "logind".into(),
                state: "ok".into(),
                idle_ms: owner_idle_ms,
                devices_count: 1,
            }],
            numa_nodes: Vec::new(),
            cgroups: Vec::new(),
            missing_values: MissingValues::default(),
        }
    }

    fn owner() -> Owner {
        Owner::new(MINUTE, MINUTE)
    }

    /// State, length of absence and source of the only message; `None` without a message.
    fn state_fields(found: &OwnerUpdate) -> Option<(OwnerState, Option<i64>, Option<&str>)> {
        assert!(found.messages.len() < 2, "{found:?}");
        let message = found.messages.first()?;
        Some((message.state, message.absence_ms, message.source.as_deref()))
    }

    #[test]
    fn told_once_of_each_change_and_waited_for_after_a_minute() {
        let mut owner = owner();
        let in_use = |source| Some((OwnerState::InUse, None, Some(source)));
        let steps = [
            // Each row: minute, owner's idle time in ms, load; expected message, expected `is_away`.
            (1, Some(30_000), 0.1, in_use("logind"), false),
            (2, Some(59_999), 0.1, None, false),
            (3, Some(MINUTE), 0.1, None, true),
            (4, Some(2 * MINUTE), 0.1, None, true),
            (5, Some(3 * MINUTE), 0.1, None, true),
            (6, Some(4 * MINUTE), 0.1, None, true),
            (
                7,
                Some(5 * MINUTE),
                0.1,
                Some((OwnerState::Idle, None, None)),
                true,
            ),
            (8, Some(6 * MINUTE), 0.1, None, true),
            (9, Some(7 * MINUTE), 0.5, in_use("load"), true),
            (
                10,
                None,
                0.1,
                Some((OwnerState::Unknown, None, None)),
                false,
            ),
            (11, None, 0.1, None, false),
        ];
        for (minute, idle_ms, load5, expected, is_away) in steps {
            let found = owner.sampled(&sample(minute * MINUTE, idle_ms, load5));
            assert_eq!(state_fields(&found), expected, "{minute}");
            assert_eq!(found.is_away, is_away, "{minute}");
            assert_eq!(found.event, None, "{minute}");
        }
    }

    #[test]
    fn a_busy_memory_server_does_not_end_the_absence_that_it_lends_in() {
        let mut owner = owner();
        let mut at = |minute: i64, load5, guest_load5| {
            let mut sample = sample(minute * MINUTE, Some(minute * MINUTE), load5);
            sample.row.guest_load5 = Some(guest_load5);
            let found = owner.sampled(&sample);
            found.messages.first().map(|message| message.state)
        };
        assert_eq!(at(10, 0.1, 0.0), Some(OwnerState::InUse));
        for minute in 11..15 {
            assert_eq!(at(minute, 0.1, 0.0), None, "{minute}");
        }
        assert_eq!(at(15, 0.1, 0.0), Some(OwnerState::Idle));
        assert_eq!(at(16, 1.1, 1.0), None);
        assert_eq!(at(17, 1.1, 0.1), Some(OwnerState::InUse));
    }

    #[test]
    fn a_return_says_how_long_the_owner_was_away_whoever_sees_it_first() {
        let mut first = owner();
        first.sampled(&sample(10 * MINUTE, Some(2 * MINUTE), 0.1));
        let sign = Sign {
            source: "input",
            time_ms: 777,
        };
        let now = moment(10 * MINUTE + 30_000);
        let (message, event) = first.returned(&now, sign).unwrap();
        assert_eq!((message.state, message.time_ms), (OwnerState::InUse, 777));
        assert_eq!(message.absence_ms, Some(150_000));
        assert_eq!((event.0, event.1.duration_ms), (777, Some(150_000)));
        assert_eq!(first.returned(&now, sign), None); // a return is reported once
        let found = first.sampled(&sample(11 * MINUTE, Some(30_000), 0.1));
        assert_eq!((state_fields(&found), &found.event), (None, &None));

        let mut second = owner();
        second.sampled(&sample(10 * MINUTE, Some(2 * MINUTE), 0.1));
        let found = second.sampled(&sample(11 * MINUTE, Some(20_000), 0.1));
        let absence_ms = Some(160_000);
        assert_eq!(
            state_fields(&found),
            Some((OwnerState::InUse, absence_ms, Some("logind")))
        );
        let (time_ms, row) = found.event.unwrap();
        assert_eq!(time_ms, BOOTED_AT_MS + 11 * MINUTE - 20_000);
        assert_eq!(
            (row.kind.as_str(), row.duration_ms),
            ("owner_returned", absence_ms)
        );
    }

    #[test]
    fn who_came_and_went_between_two_samples_has_returned() {
        let mut owner = owner();
        owner.sampled(&sample(10 * MINUTE, Some(2 * MINUTE), 0.1));
        let reckoned_anew = Some(3 * MINUTE - ACTIVITY_JITTER_MS);
        let found = owner.sampled(&sample(11 * MINUTE, reckoned_anew, 0.1));
        assert_eq!((state_fields(&found), &found.event), (None, &None));
        let found = owner.sampled(&sample(12 * MINUTE + 10_000, Some(MINUTE), 0.1));
        let (time_ms, row) = found.event.as_ref().unwrap();
        assert_eq!(*time_ms, BOOTED_AT_MS + 11 * MINUTE + 10_000);
        let absence_ms = Some(3 * MINUTE + 10_000 - ACTIVITY_JITTER_MS);
        assert_eq!(row.duration_ms, absence_ms);
        assert!(
            state_fields(&found) == Some((OwnerState::InUse, absence_ms, Some("logind")))
                && found.is_away
        );
    }

    #[test]
    fn nothing_is_assumed_across_a_gap() {
        let mut owner = owner();
        for minute in 0..=5 {
            owner.sampled(&sample(minute * MINUTE, Some(20 * MINUTE), 0.1));
        }
        let since_time_ms = BOOTED_AT_MS;
        let found = owner.sampled(&sample(6 * MINUTE, Some(26 * MINUTE), 0.1));
        assert_eq!(found.state, HostState::Idle { since_time_ms });
        let found = owner.sampled(&sample(30 * MINUTE, Some(50 * MINUTE), 0.1));
        let idle_at_time_ms = BOOTED_AT_MS + 35 * MINUTE;
        assert_eq!(found.state, HostState::InUse { idle_at_time_ms });
        assert_eq!(
            state_fields(&found),
            Some((OwnerState::InUse, None, Some("gap")))
        );
    }
}
