//! Output of `gleaner top --json` for this host: one document, explained in docs/top.md.

use super::kernel::Reading;
use super::owner::{self, State};
use super::{FrameTime, Host};
use gleaner_policy::idle::Verdict;
use gleaner_policy::quota::{Quota, Reason};
use gleaner_schemas::live::Sample;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Document<'a> {
    /// Current time, ms since 1970-01-01 UTC.
    time_ms: i64,
    host_name: &'a str,
    /// The agent's state; null while no agent answers.
    agent: Option<Agent<'a>>,
    /// Reason why no agent answers.
    agent_failure: Option<&'a str>,
    owner: Option<Owner>,
    quota: Option<QuotaDocument>,
    /// Last sample, as the agent reported it.
    sample: Option<&'a Sample>,
    sample_age_ms: Option<i64>,
    /// Current figures of the kernel.
    kernel: Option<&'a Reading>,
}

#[derive(Serialize)]
struct Agent<'a> {
    version: &'a str,
    sample_interval_ms: i64,
}

#[derive(Serialize)]
struct Owner {
    state: &'static str,
    /// Start of the idle period; only in the state `idle`.
    since_time_ms: Option<i64>,
    /// Time at which the host becomes idle if nothing happens; only in the state `in_use`.
    idle_at_time_ms: Option<i64>,
    /// Length of the silence, in ms; only in the state `silent`.
    silent_ms: Option<i64>,
}

#[derive(Serialize)]
struct QuotaDocument {
    quota_bytes: u64,
    idle_quota_bytes: u64,
    paper_quota_bytes: u64,
    reason: &'static str,
}

pub(super) fn of(host: &Host, now: FrameTime) -> Document<'_> {
    let told = host.told.as_ref();
    let sample = told.and_then(|told| told.sample.as_deref());
    let state = told.and_then(|told| owner::state(told, now.monotonic_ms));
    Document {
        time_ms: now.time_ms,
        host_name: &host.name,
        agent: told.map(|told| Agent {
            version: &told.hello.agent_version,
            sample_interval_ms: told.hello.sample_interval_ms,
        }),
        agent_failure: host.lost.as_deref().filter(|_| told.is_none()),
        owner: state.map(of_owner),
        quota: sample
            .zip(state)
            .map(|(sample, state)| of_quota(&owner::gentle_quota(sample, state))),
        sample,
        sample_age_ms: sample.map(|sample| now.time_ms.saturating_sub(sample.time_ms)),
        kernel: host.reading.as_ref(),
    }
}

fn of_owner(state: State) -> Owner {
    let mut owner = Owner {
        state: state.name(),
        since_time_ms: None,
        idle_at_time_ms: None,
        silent_ms: None,
    };
    match state {
        State::Known(Verdict::Idle { since_ms }) => owner.since_time_ms = Some(since_ms),
        State::Known(Verdict::Waiting { at_ms }) => owner.idle_at_time_ms = Some(at_ms),
        State::Silent { for_ms } => owner.silent_ms = Some(for_ms),
        State::Known(Verdict::Loaded | Verdict::Unknown) => {}
    }
    owner
}

fn of_quota(quota: &Quota) -> QuotaDocument {
    QuotaDocument {
        quota_bytes: quota.quota_bytes,
        idle_quota_bytes: quota.idle_quota_bytes,
        paper_quota_bytes: quota.paper_quota_bytes,
        reason: match quota.reason {
            Reason::Idle => "idle",
            Reason::Spare => "spare",
            Reason::NotIdleUntil { .. } => "waiting",
            Reason::Loaded => "loaded",
            Reason::ActivityUnknown => "activity_unknown",
            Reason::HarvestableUnknown => "harvestable_unknown",
        },
    }
}
