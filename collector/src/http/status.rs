//! How the collector and its hosts are: `GET /v1/status`. docs/collector.md tells its shape to those who
//! read it: fields are added, not changed.

use super::App;
use super::problems::{Problem, Severity, problems};
use super::refusal::Refusal;
use crate::hosts::Host;
use crate::journal::free_bytes;
use crate::now_ms;
use crate::publish;
use crate::sealer::Progress;
use axum::Json;
use axum::extract::{Extension, State as Shared};
use gleaner_listen::Caller;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A host is silent that was not heard of for so many of its intervals, and [`SILENCE_MS`] besides.
const SILENT_INTERVALS: i64 = 3;
const SILENCE_MS: i64 = 600_000;
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

pub(super) fn read(app: &App) -> Status {
    let now = now_ms();
    let extent = app.extents.of(&app.dataset);
    let hosts: Vec<_> = app
        .hosts
        .all()
        .into_iter()
        .map(|(id, host)| of_host(id, host, now))
        .collect();
    let free = free_bytes(app.journal.folder()).unwrap_or_default();
    let dataset_free = free_bytes(&app.dataset).unwrap_or(free); // there is none yet
    let mut status = Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time_ms: now,
        started_ms: app.started_ms,
        is_well: true,
        problems: Vec::new(),
        connections_count: app.metrics.connections_count(),
        journal_bytes: app.journal.bytes(),
        dataset_bytes: extent.bytes(),
        dataset_rows_count: extent.rows_count(),
        dataset_files_count: extent.files_count(),
        dataset_bytes_per_day: extent.bytes_per_day(now),
        dataset_failure: extent.failure,
        free_bytes: free,
        dataset_free_bytes: dataset_free,
        reserve_bytes: app.reserve_bytes,
        disk_left_days: None,
        certificate_until_ms: app.trust.get().map(|trust| ms_of(trust.dates().until)),
        seal: app.sealer.progress(),
        publish: app.sealer.published(),
        hosts_count: hosts.len() as u64,
        hosts_silent_count: hosts.iter().filter(|host| host.is_silent).count() as u64,
        hosts_by_state: BTreeMap::new(),
        behind_median_ms: None,
        behind_most_ms: None,
        hosts,
    };
    sum_up(&mut status);
    status
}

/// Fills in what follows from the rest.
fn sum_up(status: &mut Status) {
    let free = status.smallest_free_bytes();
    let left = free.saturating_sub(status.reserve_bytes) as f64;
    let per_day = status.dataset_bytes_per_day.filter(|bytes| *bytes > 0);
    status.disk_left_days = per_day.map(|per_day| left / per_day as f64);
    for state in State::ALL {
        let hosts = status.hosts.iter().filter(|host| host.state == state);
        let hosts = hosts.count() as u64;
        status.hosts_by_state.insert(state, hosts);
    }
    let heard = status.hosts.iter().filter(|host| !host.is_silent);
    let mut behind: Vec<i64> = heard.filter_map(|host| host.behind_ms).collect();
    behind.sort_unstable();
    status.behind_median_ms = behind.get(behind.len() / 2).copied();
    status.behind_most_ms = behind.last().copied();
    status.problems = problems(status);
    let is_fault = |problem: &Problem| problem.severity == Severity::Fault;
    status.is_well = !status.problems.iter().any(is_fault);
}

fn ms_of(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn of_host(host_id: String, known: Host, now_ms: i64) -> HostStatus {
    let intervals_ms = known.sample_interval_ms.unwrap_or_default();
    let patience_ms = intervals_ms
        .saturating_mul(SILENT_INTERVALS)
        .saturating_add(SILENCE_MS);
    let silence_ms = known
        .last_received_ms
        .map(|last| now_ms.saturating_sub(last));
    let behind = known.last_received_ms.zip(known.last_record_ms);
    let skew_ms = known.skew_ms.unwrap_or_default();
    let mut host = HostStatus {
        host_id,
        state: State::Well,
        is_silent: silence_ms.is_none_or(|silence| silence > patience_ms),
        behind_ms: behind.map(|(received, recorded)| {
            let recorded = recorded.saturating_sub(skew_ms);
            received.saturating_sub(recorded)
        }),
        known,
    };
    host.state = match &host {
        host if host.known.refused.is_some() => State::Refused,
        host if host.is_silent => State::Silent,
        host if host.is_clock_wrong() => State::ClockWrong,
        _ => State::Well,
    };
    host
}

/// Answers `GET /v1/status`.
pub(super) async fn status(
    Shared(app): Shared<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Status>, Refusal> {
    app.may_see_status(&caller)?;
    let read = tokio::task::spawn_blocking(move || read(&app)).await;
    read.map(Json).map_err(|e| Refusal::internal(e.to_string()))
}

/// Answers `POST /v1/seal`: what was acknowledged so far is in the dataset now.
pub(super) async fn seal(
    Shared(app): Shared<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<(), Refusal> {
    app.may_direct(&caller)?;
    let sealed = tokio::task::spawn_blocking(move || app.sealer.seal_now()).await;
    sealed
        .map_err(|e| Refusal::internal(e.to_string()))?
        .map_err(Refusal::internal)
}
