//! The answer to `GET /v1/status`, described for its readers in docs/collector.md. Fields may be added,
//! but not changed.

use super::problem::Problem;
use crate::hosts::Host;
use crate::peers::GroupMember;
use crate::publish;
use crate::sealer::Progress;
use crate::tables::TableProgress;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest error of a host's clock that is not reported as a problem.
const SKEW_MS: u64 = 60_000;

/// The collector and its hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Name of the collector; absent if its configuration has none.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Version of the collector.
    pub version: String,
    /// Present time by the collector's clock, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Start of the collector, ms since 1970-01-01 UTC.
    pub(crate) started_time_ms: i64,
    /// True if no problem is a fault.
    pub is_well: bool,
    /// Problems, the worst first.
    pub(crate) problems: Vec<Problem>,
    /// Number of open connections.
    pub(crate) connections_count: i64,
    /// Number of batches accepted in the last full minute.
    #[serde(default)]
    pub(crate) batches_per_minute: u64,
    /// Bytes acknowledged, but not in the dataset yet.
    pub(crate) journal_bytes: u64,
    /// Bytes of this collector's files in the dataset.
    pub(crate) dataset_bytes: u64,
    /// Rows of this collector's files in the dataset.
    pub(crate) dataset_rows_count: u64,
    /// Number of this collector's files in the dataset.
    pub(crate) dataset_files_count: u64,
    /// Bytes of this collector's new records per day, as the mean of the last seven days; absent until the records span
    /// an hour.
    pub(crate) dataset_bytes_per_day: Option<u64>,
    /// Bytes of new records per day of all collectors that write into the dataset's folder.
    #[serde(default)]
    pub(crate) folder_bytes_per_day: Option<u64>,
    /// Reason why the dataset cannot be read; absent if it can, or if there is none yet.
    pub(crate) dataset_failure: Option<String>,
    /// Free bytes on the journal's disk.
    pub(crate) journal_disk_free_bytes: u64,
    /// Free bytes on the dataset's disk, which may be the same.
    pub(crate) dataset_disk_free_bytes: u64,
    /// Free bytes below which batches are rejected.
    pub(crate) reserve_bytes: u64,
    /// Days until batches will be rejected at the present growth of the dataset's folder; absent if the growth is
    /// unknown.
    pub(crate) days_until_disk_full: Option<f64>,
    /// End of the collector's certificate, ms since 1970-01-01 UTC; absent without TLS.
    pub(crate) certificate_expiry_time_ms: Option<i64>,
    pub(crate) seal: Progress,
    /// State of the copy on an object store; absent if none is configured.
    pub(crate) publish: Option<publish::Progress>,
    /// State of the Iceberg tables; absent if none are configured.
    pub(crate) tables: Option<TableProgress>,
    /// Number of hosts.
    pub hosts_count: u64,
    /// Number of hosts not heard for longer than their sample intervals explain. Some of them may have been
    /// rejected.
    pub hosts_silent_count: u64,
    /// Numbers of hosts by state.
    pub hosts_by_state: BTreeMap<State, u64>,
    /// Median lag of the hosts that report, in ms.
    pub(crate) median_lag_ms: Option<i64>,
    /// Largest lag of a host that reports, in ms.
    pub(crate) max_lag_ms: Option<i64>,
    /// This collector, and then its peers.
    #[serde(default)]
    pub collectors: Vec<GroupMember>,
    /// Hosts by id.
    pub hosts: Vec<HostStatus>,
}

/// State of a host: the first of these that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The collector rejected the host's last batch or request.
    Rejected,
    /// Nothing was heard from the host for longer than its sample interval explains.
    Silent,
    /// The host's clock is wrong by more than a minute.
    ClockWrong,
    /// The host has none of these problems.
    Well,
}

impl State {
    /// All states, the worst first.
    pub const ALL: [Self; 4] = [Self::Rejected, Self::Silent, Self::ClockWrong, Self::Well];

    /// Name in JSON and addresses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Silent => "silent",
            Self::ClockWrong => "clock_wrong",
            Self::Well => "well",
        }
    }

    /// Name of the state for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ClockWrong => "clock wrong",
            other => other.name(),
        }
    }
}

/// Status of one host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostStatus {
    /// Id of the host.
    pub host_id: String,
    /// State of the host: the first that applies.
    pub state: State,
    /// True if nothing was heard from the host for longer than its sample interval explains.
    pub is_silent: bool,
    /// Age of the newest record when the host was last heard, corrected for its clock's error, in ms.
    pub lag_ms: Option<i64>,
    #[serde(flatten)]
    /// Data that the collector keeps of the host.
    pub known: Host,
}

impl HostStatus {
    pub(crate) fn is_clock_wrong(&self) -> bool {
        let skew = self.known.skew_ms.map(i64::unsigned_abs);
        skew.is_some_and(|skew| skew > SKEW_MS)
    }
}

impl Status {
    /// Severity and text of the problems, the worst first.
    pub fn problem_lines(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let problems = self.problems.iter();
        problems.map(|problem| (problem.severity.word(), problem.text.as_str()))
    }

    /// Free bytes on the journal's or the dataset's disk, whichever has less.
    pub(crate) fn smallest_free_bytes(&self) -> u64 {
        self.journal_disk_free_bytes
            .min(self.dataset_disk_free_bytes)
    }

    /// Number of hosts in `state`.
    #[must_use]
    pub fn in_state(&self, state: State) -> u64 {
        self.hosts_by_state.get(&state).copied().unwrap_or_default()
    }
}
