//! Messages of the agent to local daemons over its socket: one JSON object per line (`docs/live.md`).
//!
//! Within a [`VERSION`], fields and kinds of message are only added: a listener ignores those that it does
//! not know.

use crate::rows::SampleRow;
use serde::{Deserialize, Serialize};

/// Version of the protocol, sent in the [`Hello`] message.
pub const VERSION: u32 = 1;

/// Time between two `alive` messages.
pub const ALIVE_EVERY_MS: i64 = 1000;

/// Time without messages after which a listener counts the owner as returned.
pub const SILENT_AFTER_MS: i64 = 3000;

/// A line of the protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// The first line of every connection.
    Hello(Hello),
    /// A sample was taken. On connecting, a listener also gets the last sample.
    Sample(Box<Sample>),
    /// The owner's state changed. On connecting, a listener also gets the last change.
    Owner(Owner),
    /// Sign of life: shows that the agent runs, and nothing else.
    Alive(SignOfLife),
    /// The agent has too many listeners and ends the connection.
    Refused(ListenerRefusal),
    /// A message of a later version.
    #[serde(other)]
    Other,
}

/// First message: the agent's identity and its version of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`] of the protocol.
    pub version: u32,
    /// Version of the agent.
    pub agent_version: String,
    /// Time of the message, in milliseconds since 1970-01-01 UTC, like every `time_ms` of the protocol.
    pub time_ms: i64,
    /// Time between two samples.
    pub sample_interval_ms: i64,
    /// Time between two `alive` messages.
    pub alive_every_ms: i64,
    /// Time without messages after which a listener counts the owner as returned.
    pub silent_after_ms: i64,
}

/// A sample: the row as it is stored, and further figures that listeners need to compute a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time of the message.
    pub time_ms: i64,
    /// The host's state by the idle rule.
    #[serde(flatten)]
    pub state: HostState,
    /// Share of physical memory that is never lent; already subtracted in `harvestable_bytes`.
    pub headroom_share: f64,
    /// Row as in the table `samples`.
    #[serde(flatten)]
    pub row: SampleRow,
}

/// State of the host by the rule of `policy::idle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum HostState {
    /// The host is idle.
    Idle {
        /// Start of the idle period: the time of the last activity or of the load's fall below the limit,
        /// whichever is later.
        since_time_ms: i64,
    },
    /// The host is in use, or not idle for long enough yet.
    InUse {
        /// Time at which the host will be idle, if nothing happens until then.
        idle_at_time_ms: i64,
    },
    /// The load is too high.
    Loaded,
    /// Activity or load is unknown; never to be treated as idle.
    #[default]
    Unknown,
}

impl HostState {
    /// Start of the idle period; `None` if the host is not idle.
    #[must_use]
    pub const fn since_time_ms(&self) -> Option<i64> {
        match self {
            Self::Idle { since_time_ms } => Some(*since_time_ms),
            _ => None,
        }
    }
}

/// Change of the owner's presence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// State of the owner after the change.
    pub state: OwnerState,
    /// Time of the change; for a return, that of the owner's first key press, movement or terminal input.
    pub time_ms: i64,
    /// For a return: length of the owner's absence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absence_ms: Option<i64>,
    /// For `idle`: start of the absence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_time_ms: Option<i64>,
    /// For `in_use`: the source of activity that observed the owner, or `load` (the load is too high for an
    /// idle host), or `gap` (samples are missing, and nothing is assumed about the time without them).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// State of the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerState {
    /// The host is in use, or counts as such.
    InUse,
    /// The host is idle.
    Idle,
    /// The state is unknown; treat it as in use.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Sign of life: shows that the agent runs, and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignOfLife {
    /// Time of the message.
    pub time_ms: i64,
}

/// Refusal of a listener, after which the connection ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerRefusal {
    /// Reason of the refusal, for people.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_went() {
        let row = SampleRow {
            physical_bytes: 1 << 34,
            load5: Some(0.25),
            ..SampleRow::default()
        };
        let sample = |state| Sample {
            time_ms: 7,
            state,
            headroom_share: 0.15,
            row: row.clone(),
        };
        let messages = [
            Message::Hello(Hello::default()),
            Message::Sample(Box::new(sample(HostState::Idle { since_time_ms: 5 }))),
            Message::Sample(Box::new(sample(HostState::Unknown))),
            Message::Owner(Owner {
                state: OwnerState::InUse,
                time_ms: 9,
                absence_ms: Some(4),
                ..Owner::default()
            }),
            Message::Alive(SignOfLife { time_ms: 8 }),
            Message::Refused(ListenerRefusal::default()),
        ];
        for message in messages {
            let line = serde_json::to_string(&message).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(
                serde_json::from_str::<Message>(&line).unwrap(),
                message,
                "{line}"
            );
        }
    }

    #[test]
    fn written_as_documented_and_what_comes_later_is_passed_over() {
        let owner = Message::Owner(Owner {
            state: OwnerState::InUse,
            time_ms: 9,
            absence_ms: Some(4),
            source: Some("input".into()),
            ..Owner::default()
        });
        assert_eq!(
            serde_json::to_string(&owner).unwrap(),
            r#"{"type":"owner","state":"in_use","time_ms":9,"absence_ms":4,"source":"input"}"#
        );
        for (later, expected) in [
            (r#"{"type":"lease","bytes":4}"#, Message::Other),
            (
                r#"{"type":"alive","time_ms":8,"new":[1]}"#,
                Message::Alive(SignOfLife { time_ms: 8 }),
            ),
            (
                r#"{"type":"owner","state":"asleep","time_ms":8}"#,
                Message::Owner(Owner {
                    time_ms: 8,
                    ..Owner::default()
                }),
            ),
        ] {
            assert_eq!(serde_json::from_str::<Message>(later).unwrap(), expected);
        }
    }
}
