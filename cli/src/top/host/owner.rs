//! State of the owner, and memory that could be lent now, from the last sample and later messages.

use super::agent::AgentState;
use gleaner_hosts::derived::{Figures, unsigned};
use gleaner_policy::idle::{IdleRule, Verdict};
use gleaner_policy::quota::{Limits, Quota, quota};
use gleaner_schemas::live::{HostState, OwnerState, Sample};

/// State by the idle rule, as the agent reports it; if the agent is silent, the owner is assumed to have
/// returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Known(Verdict),
    Silent { for_ms: i64 },
}

impl State {
    /// Name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Known(Verdict::Idle { .. }) => "idle",
            Self::Known(Verdict::Waiting { .. }) => "in_use",
            Self::Known(Verdict::Loaded) => "loaded",
            Self::Known(Verdict::Unknown) => "unknown",
            Self::Silent { .. } => "silent",
        }
    }

    /// Verdict of the idle rule that applies.
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Known(verdict) => verdict,
            Self::Silent { .. } => Verdict::Unknown,
        }
    }
}

/// State of the owner at `monotonic_ms`, on the clock of [`AgentState::heard_ms`]; `None` before the first
/// message.
pub(super) fn state(told: &AgentState, monotonic_ms: i64) -> Option<State> {
    let silent_ms = monotonic_ms.saturating_sub(told.heard_ms);
    if silent_ms > told.hello.silent_after_ms.max(1) {
        return Some(State::Silent { for_ms: silent_ms });
    }
    let sample = told.sample.as_ref().map(|sample| verdict(sample.state));
    let Some(owner) = &told.owner else {
        return sample.map(State::Known);
    };
    let returned_at_ms = owner
        .time_ms
        .saturating_add(IdleRule::default().idle_after_ms);
    let known = match (owner.state, sample.unwrap_or(Verdict::Unknown)) {
        (OwnerState::Idle, _) => Verdict::Idle {
            since_ms: owner.since_time_ms.unwrap_or(owner.time_ms),
        },
        (OwnerState::Unknown, _) => Verdict::Unknown,
        // The owner returned after the sample.
        (OwnerState::InUse, Verdict::Idle { .. }) => Verdict::Waiting {
            at_ms: returned_at_ms,
        },
        (OwnerState::InUse, Verdict::Waiting { at_ms }) if owner.absence_ms.is_some() => {
            Verdict::Waiting {
                at_ms: at_ms.max(returned_at_ms),
            }
        }
        (OwnerState::InUse, sampled) => sampled,
    };
    Some(State::Known(known))
}

fn verdict(state: HostState) -> Verdict {
    match state {
        HostState::Idle { since_time_ms } => Verdict::Idle {
            since_ms: since_time_ms,
        },
        HostState::InUse { idle_at_time_ms } => Verdict::Waiting {
            at_ms: idle_at_time_ms,
        },
        HostState::Loaded => Verdict::Loaded,
        HostState::Unknown => Verdict::Unknown,
    }
}

/// Quota in mode `gentle`, computed by `policy::quota` without the limits that an owner may set.
pub(super) fn gentle_quota(sample: &Sample, state: State) -> Quota {
    let limits = Limits {
        headroom_share: sample.headroom_share,
        ..Limits::default()
    };
    let mem_available_bytes = sample.row.mem_available_bytes.map(unsigned);
    quota(
        &Figures::from(&sample.row).known(),
        mem_available_bytes,
        state.verdict(),
        &limits,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::live::{Hello, Owner};

    fn told(sample: HostState, owner: Option<Owner>) -> AgentState {
        AgentState {
            hello: Hello {
                silent_after_ms: 3000,
                ..Hello::default()
            },
            sample: Some(Box::new(Sample {
                state: sample,
                ..Sample::default()
            })),
            owner,
            heard_ms: 10_000,
        }
    }

    fn owner(state: OwnerState, absence_ms: Option<i64>) -> Option<Owner> {
        Some(Owner {
            state,
            time_ms: 1_000_000,
            absence_ms,
            since_time_ms: (state == OwnerState::Idle).then_some(700_000),
            ..Owner::default()
        })
    }

    #[test]
    fn what_came_after_the_sample_counts() {
        let idle = HostState::Idle {
            since_time_ms: 600_000,
        };
        let sampled = HostState::InUse {
            idle_at_time_ms: 1_100_000,
        };
        let (in_use, away) = (OwnerState::InUse, OwnerState::Idle);
        let back = Verdict::Waiting { at_ms: 1_300_000 };
        for (sample, owner, expected) in [
            (idle, None, Verdict::Idle { since_ms: 600_000 }),
            (idle, owner(away, None), Verdict::Idle { since_ms: 700_000 }),
            (idle, owner(in_use, Some(400_000)), back),
            (sampled, owner(in_use, Some(90_000)), back),
            (
                sampled,
                owner(in_use, None),
                Verdict::Waiting { at_ms: 1_100_000 },
            ),
            (HostState::Loaded, owner(in_use, Some(5)), Verdict::Loaded),
            (idle, owner(OwnerState::Unknown, None), Verdict::Unknown),
        ] {
            let found = state(&told(sample, owner.clone()), 12_000);
            assert_eq!(found, Some(State::Known(expected)), "{sample:?} {owner:?}");
        }
        let silent = state(&told(idle, None), 13_001).unwrap();
        assert_eq!(silent, State::Silent { for_ms: 3001 });
        assert!(!silent.verdict().is_idle());
    }
}
