//! Computes the state of the collector and its hosts: `GET /v1/status`.

mod document;
mod problem;
mod problems;

pub use document::{HostStatus, State, Status};
pub(super) use problem::{Kind, Problem, Severity};

use super::App;
use super::refusal::Refusal;
use crate::hosts::{Host, Memory};
use crate::journal::free_bytes;
use crate::now_ms;
use crate::peers::{CollectorOverview, Group, GroupMember, GroupSums};
use crate::tables::TablePublisher;
use axum::Json;
use axum::extract::{Extension, State as Shared};
use gleaner_daemon::listen::Caller;
use problems::problems;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A host counts as silent if nothing was heard for this many of its sample intervals plus [`SILENCE_MS`].
const SILENT_INTERVALS: i64 = 3;
const SILENCE_MS: i64 = 600_000;

pub(super) fn read(app: &App) -> Status {
    let now = now_ms();
    let extent = app.extents.of(&app.dataset, app.name.as_deref());
    let hosts: Vec<_> = app
        .hosts
        .all()
        .into_iter()
        .map(|(id, host)| of_host(id, host, now))
        .collect();
    let free = free_bytes(app.journal.folder()).unwrap_or_default();
    let dataset_free = free_bytes(&app.dataset).unwrap_or(free); // the dataset may not exist yet
    let mut status = Status {
        name: app.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time_ms: now,
        started_time_ms: app.started_time_ms,
        is_well: true,
        problems: Vec::new(),
        connections_count: app.metrics.connections_count(),
        batches_per_minute: app.metrics.batches_per_minute(now),
        journal_bytes: app.journal.bytes(),
        dataset_bytes: extent.bytes(),
        dataset_rows_count: extent.rows_count(),
        dataset_files_count: extent.files_count(),
        dataset_bytes_per_day: extent.bytes_per_day(now),
        folder_bytes_per_day: extent.folder_bytes_per_day(now),
        dataset_failure: extent.failure,
        journal_disk_free_bytes: free,
        dataset_disk_free_bytes: dataset_free,
        reserve_bytes: app.reserve_bytes,
        days_until_disk_full: None,
        certificate_expiry_time_ms: app.trust.get().map(|trust| ms_of(trust.dates().until)),
        seal: app.sealer.progress(),
        publish: app.sealer.published(),
        tables: app.tables.as_ref().map(TablePublisher::progress),
        hosts_count: hosts.len() as u64,
        hosts_silent_count: hosts.iter().filter(|host| host.is_silent).count() as u64,
        hosts_by_state: BTreeMap::new(),
        median_lag_ms: None,
        max_lag_ms: None,
        collectors: app.peers().members(),
        hosts,
    };
    sum_up(&mut status);
    status
}

/// Computes the fields of the status that follow from its other fields.
fn sum_up(status: &mut Status) {
    let free = status.smallest_free_bytes();
    let left = free.saturating_sub(status.reserve_bytes) as f64;
    let per_day = status.folder_bytes_per_day.filter(|bytes| *bytes > 0);
    status.days_until_disk_full = per_day.map(|per_day| left / per_day as f64);
    for state in State::ALL {
        let hosts = status.hosts.iter().filter(|host| host.state == state);
        let hosts = hosts.count() as u64;
        status.hosts_by_state.insert(state, hosts);
    }
    let heard = status.hosts.iter().filter(|host| !host.is_silent);
    let mut lags: Vec<i64> = heard.filter_map(|host| host.lag_ms).collect();
    lags.sort_unstable();
    status.median_lag_ms = lags.get(lags.len() / 2).copied();
    status.max_lag_ms = lags.last().copied();
    status.problems = problems(status);
    let is_fault = |problem: &Problem| problem.severity == Severity::Fault;
    status.is_well = !status.problems.iter().any(is_fault);
    let own = GroupMember {
        answered_time_ms: Some(status.time_ms),
        overview: Some(overview(status)),
        ..GroupMember::default()
    };
    status.collectors.insert(0, own);
}

/// Figures of this collector for its peers.
fn overview(status: &Status) -> CollectorOverview {
    let faults = status.problems.iter().filter(|problem| {
        problem.severity == Severity::Fault && problem.kind != Kind::PeerUnreachable
    });
    let reporting = status.hosts.iter().filter(|host| !host.is_silent);
    let memories = || {
        reporting
            .clone()
            .filter_map(|host| host.known.memory.as_ref())
    };
    let is_idle = |memory: &&Memory| memory.state.since_time_ms().is_some();
    let sum = |bytes: fn(&Memory) -> Option<u64>| -> u64 {
        memories().filter_map(bytes).fold(0, u64::saturating_add)
    };
    CollectorOverview {
        name: status.name.clone(),
        version: status.version.clone(),
        started_time_ms: status.started_time_ms,
        faults: faults.map(|problem| problem.text.clone()).collect(),
        median_lag_ms: status.median_lag_ms,
        max_lag_ms: status.max_lag_ms,
        disk_free_bytes: status.smallest_free_bytes(),
        sums: GroupSums {
            hosts_count: status.hosts_count,
            hosts_silent_count: status.hosts_silent_count,
            hosts_idle_count: memories().filter(is_idle).count() as u64,
            batches_per_minute: status.batches_per_minute,
            connections_count: u64::try_from(status.connections_count).unwrap_or_default(),
            dataset_rows_count: status.dataset_rows_count,
            dataset_bytes: status.dataset_bytes,
            physical_bytes: sum(|memory| Some(memory.figures.physical_bytes)),
            available_bytes: sum(|memory| memory.figures.available_bytes),
            harvestable_bytes: sum(|memory| memory.harvestable_bytes),
            quota_bytes: sum(|memory| memory.quota_bytes),
        },
    }
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
        .last_received_time_ms
        .map(|last| now_ms.saturating_sub(last));
    let arrival_and_record = known.last_received_time_ms.zip(known.last_record_time_ms);
    let skew_ms = known.skew_ms.unwrap_or_default();
    let mut host = HostStatus {
        host_id,
        state: State::Well,
        is_silent: silence_ms.is_none_or(|silence| silence > patience_ms),
        lag_ms: arrival_and_record.map(|(received, recorded)| {
            let recorded = recorded.saturating_sub(skew_ms);
            received.saturating_sub(recorded)
        }),
        known,
    };
    host.state = match &host {
        host if host.known.last_rejection.is_some() => State::Rejected,
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

/// Answers `GET /v1/collectors`: this collector, and then its peers, without their hosts.
pub(super) async fn collectors(
    Shared(app): Shared<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Group>, Refusal> {
    app.may_see_status(&caller)?;
    let read = tokio::task::spawn_blocking(move || read(&app)).await;
    let status = read.map_err(|e| Refusal::internal(e.to_string()))?;
    Ok(Json(Group::new(status.time_ms, status.collectors)))
}

/// Answers `POST /v1/seal` once everything acknowledged so far is in the dataset.
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
