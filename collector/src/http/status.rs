//! How the collector and its hosts are: `GET /v1/status`.

use super::App;
use super::caller::Caller;
use super::refusal::Refusal;
use crate::hosts::Host;
use crate::journal::free_bytes;
use crate::now_ms;
use crate::sealer::Progress;
use axum::Json;
use axum::extract::{Extension, State};
use gleaner_dataset::Dataset;
use serde::Serialize;
use std::sync::Arc;

/// A host is silent that was not heard of for so many of its intervals, and [`SILENCE_MS`] besides.
const SILENT_INTERVALS: i64 = 3;
const SILENCE_MS: i64 = 600_000;

/// The collector and its hosts.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Status {
    /// Version of the collector.
    pub(super) version: &'static str,
    /// Now, by the collector's clock, ms since 1970-01-01 UTC.
    pub(super) time_ms: i64,
    /// When it started.
    pub(super) started_ms: i64,
    pub(super) connections_count: i64,
    /// Acknowledged, and not in the dataset yet.
    pub(super) journal_bytes: u64,
    pub(super) dataset_bytes: u64,
    pub(super) dataset_rows_count: u64,
    pub(super) dataset_files_count: u64,
    /// Why the dataset cannot be read; absent when it can, or when there is none yet.
    pub(super) dataset_failure: Option<String>,
    /// Free on the journal's disk.
    pub(super) free_bytes: u64,
    pub(super) seal: Progress,
    /// By id.
    pub(super) hosts: Vec<HostStatus>,
}

/// One host.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HostStatus {
    pub(super) host_id: String,
    /// Not heard of for longer than its interval explains.
    pub(super) is_silent: bool,
    /// Age of its newest record when it was last heard of, its clock's error taken off.
    pub(super) behind_ms: Option<i64>,
    #[serde(flatten)]
    pub(super) known: Host,
}

pub(super) fn read(app: &App) -> Status {
    let now = now_ms();
    let (files, dataset_failure) = match Dataset::open(&app.dataset) {
        Ok(dataset) => (dataset.manifest().files.clone(), None),
        Err(gleaner_dataset::DatasetError::NotADataset { .. }) => (Vec::new(), None),
        Err(e) => (Vec::new(), Some(e.to_string())),
    };
    let hosts = app
        .hosts
        .all()
        .into_iter()
        .map(|(id, host)| of_host(id, host, now));
    Status {
        version: env!("CARGO_PKG_VERSION"),
        time_ms: now,
        started_ms: app.started_ms,
        connections_count: app.metrics.connections_count(),
        journal_bytes: app.journal.bytes(),
        dataset_bytes: files.iter().map(|f| f.bytes).sum(),
        dataset_rows_count: files.iter().map(|f| f.rows).sum(),
        dataset_files_count: files.len() as u64,
        dataset_failure,
        free_bytes: free_bytes(app.journal.folder()).unwrap_or_default(),
        seal: app.sealer.progress(),
        hosts: hosts.collect(),
    }
}

fn of_host(host_id: String, known: Host, now_ms: i64) -> HostStatus {
    let patience = known.sample_interval_ms.unwrap_or_default() * SILENT_INTERVALS + SILENCE_MS;
    let silence = known.last_received_ms.map(|last| now_ms - last);
    let behind = known.last_received_ms.zip(known.last_record_ms);
    let skew = known.skew_ms.unwrap_or_default();
    HostStatus {
        host_id,
        is_silent: silence.is_none_or(|silence| silence > patience),
        behind_ms: behind.map(|(received, recorded)| received - (recorded - skew)),
        known,
    }
}

/// Answers `GET /v1/status`.
pub(super) async fn status(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Status>, Refusal> {
    caller.may_see_status()?;
    let read = tokio::task::spawn_blocking(move || read(&app)).await;
    read.map(Json).map_err(|e| Refusal::internal(e.to_string()))
}

/// Answers `POST /v1/seal`: what was acknowledged so far is in the dataset now.
pub(super) async fn seal(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<(), Refusal> {
    caller.may_direct()?;
    let sealed = tokio::task::spawn_blocking(move || app.sealer.seal_now()).await;
    sealed
        .map_err(|e| Refusal::internal(e.to_string()))?
        .map_err(Refusal::internal)
}
