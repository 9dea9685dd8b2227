//! The answer to `GET /v1/status`. docs/collector.md tells its shape to those who read it: fields are added, not
//! changed.

use super::problem::Problem;
use crate::hosts::Host;
use crate::publish;
use crate::sealer::Progress;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A clock that is wrong by more is told of.
const SKEW_MS: u64 = 60_000;

/// The collector and its hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the collector.
    pub version: String,
    /// Now, by the collector's clock, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// When it started.
    pub(crate) started_ms: i64,
    /// No problem is a fault.
    pub is_well: bool,
    /// What is wrong, the worst first.
    pub(crate) problems: Vec<Problem>,
    /// Open connections.
    pub(crate) connections_count: i64,
    /// Acknowledged, and not in the dataset yet.
    pub(crate) journal_bytes: u64,
    pub(crate) dataset_bytes: u64,
    pub(crate) dataset_rows_count: u64,
    pub(crate) dataset_files_count: u64,
    /// What a day's records take, by the last seven days'; absent before there is an hour of them.
    pub(crate) dataset_bytes_per_day: Option<u64>,
    /// Why the dataset cannot be read; absent when it can, or when there is none yet.
    pub(crate) dataset_failure: Option<String>,
    /// Free on the journal's disk.
    pub(crate) free_bytes: u64,
    /// Free on the dataset's disk, which may be the same.
    pub(crate) dataset_free_bytes: u64,
    /// So much is left free: batches are refused before.
    pub(crate) reserve_bytes: u64,
    /// When batches will be refused, at the present rate; absent when there is none to go by.
    pub(crate) disk_left_days: Option<f64>,
    /// End of the collector's certificate, ms since 1970-01-01 UTC; absent without TLS.
    pub(crate) certificate_until_ms: Option<i64>,
    pub(crate) seal: Progress,
    /// The copy on an object store; absent where there is none to be.
    pub(crate) publish: Option<publish::Progress>,
    /// How many hosts there are.
    pub hosts_count: u64,
    /// Not heard of for longer than their intervals explain; some of them may have been refused.
    pub hosts_silent_count: u64,
    /// How many hosts are in each state.
    pub hosts_by_state: BTreeMap<State, u64>,
    /// Of the hosts that are heard of: how far the one in the middle is behind.
    pub(crate) behind_median_ms: Option<i64>,
    /// The same of the one that is furthest behind.
    pub(crate) behind_most_ms: Option<i64>,
    /// By id.
    pub hosts: Vec<HostStatus>,
}

/// How a host is; the first of these that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Turned away when it last came.
    Refused,
    /// Not heard of for longer than its interval explains.
    Silent,
    /// Its clock is wrong by more than a minute.
    ClockWrong,
    /// None of these.
    Well,
}

impl State {
    /// All of them, the worst first.
    pub const ALL: [Self; 4] = [Self::Refused, Self::Silent, Self::ClockWrong, Self::Well];

    /// As JSON and addresses have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Silent => "silent",
            Self::ClockWrong => "clock_wrong",
            Self::Well => "well",
        }
    }

    /// As people read it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ClockWrong => "clock wrong",
            other => other.name(),
        }
    }
}

/// One host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its id.
    pub host_id: String,
    /// The first of the states that holds.
    pub state: State,
    /// Not heard of for longer than its interval explains.
    pub is_silent: bool,
    /// Age of its newest record when it was last heard of, its clock's error taken off.
    pub behind_ms: Option<i64>,
    #[serde(flatten)]
    /// What the collector knows of it.
    pub known: Host,
}

impl HostStatus {
    pub(crate) fn is_clock_wrong(&self) -> bool {
        let skew = self.known.skew_ms.map(i64::unsigned_abs);
        skew.is_some_and(|skew| skew > SKEW_MS)
    }
}

impl Status {
    /// What is wrong, the worst first: how bad it is, and what.
    pub fn told_problems(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let problems = self.problems.iter();
        problems.map(|problem| (problem.severity.word(), problem.text.as_str()))
    }

    /// Of the journal's disk and the dataset's, what the fuller one has left.
    pub(crate) fn smallest_free_bytes(&self) -> u64 {
        self.free_bytes.min(self.dataset_free_bytes)
    }

    /// How many hosts are in `state`.
    #[must_use]
    pub fn in_state(&self, state: State) -> u64 {
        self.hosts_by_state.get(&state).copied().unwrap_or_default()
    }
}
