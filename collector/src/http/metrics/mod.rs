//! Answers `/metrics` with OpenMetrics text. docs/collector.md lists the names. Units and suffixes follow
//! Prometheus: seconds and bytes, `_total` for counters.

mod hosts;
mod minutes;

use super::App;
use super::refusal::Refusal;
use super::status::{self, Kind, State as HostState, Status};
use crate::now_ms;
use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use gleaner_daemon::listen::Caller;
use hosts::HostSeries;
use minutes::Minutes;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Media type of the OpenMetrics text format.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Maximum number of hosts with series of their own. The hosts heard most recently have them. A Prometheus of
/// common size handles that many.
const HOSTS: usize = 10_000;

/// Reasons of rejections. Each has a series from the start, so that a first rejection is an increase.
const REASONS: [&str; 11] = [
    "busy",
    "connection",
    "connections_limit",
    "disk",
    "forbidden",
    "malformed",
    "newer",
    "other",
    "too_large",
    "too_slow",
    "unauthorized",
];

type FloatGauge = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PeerLabels {
    url: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProblemLabels {
    kind: &'static str,
    severity: &'static str,
}

/// Counters since the collector started.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    batches: Counter,
    minutes: Minutes,
    rows: Counter,
    received: Counter,
    rejected: Family<Reason, Counter>,
    connections: Gauge,
}

/// Counts one open connection in the gauge, until it is dropped.
pub(super) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(super) fn count_batch(&self, rows: u64, bytes: u64) {
        self.batches.inc();
        self.minutes.count(now_ms());
        self.rows.inc_by(rows);
        self.received.inc_by(bytes);
    }

    /// Number of batches accepted in the last full minute before `now_ms`.
    pub(super) fn batches_per_minute(&self, now_ms: i64) -> u64 {
        self.minutes.last(now_ms)
    }

    pub(super) fn rejected(&self, reason: &str) {
        let reason = reason.to_owned();
        self.rejected.get_or_create(&Reason { reason }).inc();
    }

    pub(super) fn connection_rejected(&self) {
        self.rejected("connections_limit");
    }

    pub(super) fn connection(&self) -> OpenConnection {
        self.connections.inc();
        OpenConnection(self.connections.clone())
    }

    pub(super) fn connections_count(&self) -> i64 {
        self.connections.get()
    }
}

/// Answers a scrape.
pub(super) async fn scrape(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    app.may_see_status(&caller)?;
    let text = tokio::task::spawn_blocking(move || text(&app)).await;
    let text = text.map_err(|e| Refusal::internal(e.to_string()))?;
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response())
}

fn text(app: &App) -> String {
    let status = status::read(app);
    // With a name, every series has it as a label, so that several collectors can be told apart in one Prometheus.
    let name = status.name.clone();
    let label = name.map(|name| (Cow::Borrowed("collector"), Cow::Owned(name)));
    let mut registry = Registry::with_labels(label.into_iter());
    let started: FloatGauge = Gauge::default();
    started.set(seconds(status.started_time_ms));
    registry.register_with_unit(
        "process_start_time",
        "Start time of the collector, since 1970-01-01 UTC",
        Unit::Seconds,
        started,
    );
    let collector = registry.sub_registry_with_prefix("gleaner_collector");
    counted(collector, &app.metrics, &status);
    measured(collector, &status);
    let of_hosts = registry.sub_registry_with_prefix("gleaner_host");
    of_hosts.register_collector(Box::new(hosts(status)));
    let mut text = String::new();
    let _ = encode(&mut text, &registry); // writing to a string does not fail
    text
}

/// Registers the counters.
fn counted(registry: &mut Registry, m: &Metrics, status: &Status) {
    registry.register("batches", "Accepted batches", m.batches.clone());
    registry.register(
        "rows",
        "Rows of accepted batches, repeats included",
        m.rows.clone(),
    );
    registry.register_with_unit(
        "received",
        "Compressed size of accepted batches",
        Unit::Bytes,
        m.received.clone(),
    );
    for reason in REASONS.map(str::to_owned) {
        let _ = m.rejected.get_or_create(&Reason { reason }); // begins at 0
    }
    let help = "Rejected requests and connections, by reason";
    registry.register("rejected_requests", help, m.rejected.clone());
    let seal = &status.seal;
    let mut counter = |name, help, value: u64| {
        registry.register(name, help, ConstCounter::new(value));
    };
    counter(
        "seals",
        "Seals: writes of the journal into the dataset",
        seal.seals_count,
    );
    counter(
        "sealed_rows",
        "Rows that seals added to the dataset",
        seal.sealed_rows_count,
    );
    counter(
        "repeated_rows",
        "Repeated rows, which were dropped",
        seal.repeated_rows_count,
    );
    counter(
        "merged_files",
        "Small files that were merged into larger ones",
        seal.merged_files_count,
    );
    counter(
        "damaged_files",
        "Damaged files of the dataset that were set aside",
        seal.damaged_files_count,
    );
    counter(
        "set_aside_batches",
        "Batches set aside in the journal because they could not be sealed",
        seal.set_aside_batches_count,
    );
    if let Some(tables) = &status.tables {
        counter(
            "tables_written_files",
            "Parquet files written for the Iceberg tables",
            tables.written_files_count,
        );
        counter(
            "tables_versions",
            "New versions of Iceberg tables",
            tables.versions_count,
        );
        counter(
            "tables_failures",
            "Failed publications of the Iceberg tables",
            tables.failures_count,
        );
    }
    registry.register_with_unit(
        "lost_journal",
        "Bytes of the journal that were lost to damage on the disk",
        Unit::Bytes,
        ConstCounter::new(seal.lost_journal_bytes),
    );
}

/// Registers the gauges.
fn measured(registry: &mut Registry, status: &Status) {
    let version = vec![("version", status.version.clone())];
    registry.register("build", "The collector's version", Info::new(version));
    let gauge = |value: i64| ConstGauge::new(value);
    let whole = |n: u64| ConstGauge::new(i64::try_from(n).unwrap_or(i64::MAX));
    let files = whole(status.dataset_files_count);
    let rows = whole(status.dataset_rows_count);
    registry.register(
        "connections",
        "Open connections",
        gauge(status.connections_count),
    );
    registry.register(
        "dataset_files",
        "This collector's files in the dataset",
        files,
    );
    registry.register(
        "dataset_rows",
        "Rows of this collector's files in the dataset",
        rows,
    );
    let bytes = [
        (
            "dataset",
            "Size of this collector's files in the dataset",
            status.dataset_bytes,
        ),
        (
            "journal",
            "Acknowledged batches that are not in the dataset yet",
            status.journal_bytes,
        ),
        (
            "journal_disk_free",
            "Free space on the journal's disk",
            status.journal_disk_free_bytes,
        ),
        (
            "dataset_disk_free",
            "Free space on the dataset's disk, which may be the same",
            status.dataset_disk_free_bytes,
        ),
        (
            "disk_reserve",
            "Space kept free: batches are rejected before using it",
            status.reserve_bytes,
        ),
    ];
    for (name, help, value) in bytes {
        registry.register_with_unit(name, help, Unit::Bytes, whole(value));
    }
    let times = [
        (
            "last_sealed_timestamp",
            "Last time when the whole journal was in the dataset, since 1970-01-01 UTC",
            status.seal.last_sealed_time_ms,
        ),
        (
            "certificate_expiry_timestamp",
            "End of the collector's certificate, since 1970-01-01 UTC",
            status.certificate_expiry_time_ms,
        ),
        (
            "last_published_timestamp",
            "Last time when the object store held the whole dataset, since 1970-01-01 UTC",
            status
                .publish
                .as_ref()
                .and_then(|p| p.last_published_time_ms),
        ),
    ];
    let tables = status.tables.as_ref();
    let of_tables = [
        (
            "tables_last_published_timestamp",
            "Last time when the Iceberg tables were brought up to date, since 1970-01-01 UTC",
            tables.and_then(|tables| tables.last_published_time_ms),
        ),
        (
            "tables_duration",
            "Duration of the last successful publication of the Iceberg tables",
            tables.and_then(|tables| i64::try_from(tables.last_duration_ms?).ok()),
        ),
    ];
    for (name, help, ms) in times.into_iter().chain(of_tables) {
        if let Some(ms) = ms {
            let time = ConstGauge::new(seconds(ms));
            registry.register_with_unit(name, help, Unit::Seconds, time);
        }
    }
    if let Some(publish) = &status.publish {
        let pending = whole(publish.pending_bytes);
        let help = "Bytes of the dataset that are missing in the object store";
        registry.register_with_unit("publish_pending", help, Unit::Bytes, pending);
    }
    let peers = Family::<PeerLabels, Gauge>::default();
    for peer in &status.collectors {
        if let Some(url) = peer.url.clone() {
            let is_up = i64::from(peer.present().is_some());
            peers.get_or_create(&PeerLabels { url }).set(is_up);
        }
    }
    let help = "1 if the other collector of the dataset answers, else 0";
    registry.register("peer_up", help, peers);
    let hosts = Family::<StateLabels, Gauge>::default();
    for state in HostState::ALL {
        let count = i64::try_from(status.in_state(state)).unwrap_or(i64::MAX);
        let labels = StateLabels {
            state: state.name(),
        };
        hosts.get_or_create(&labels).set(count);
    }
    registry.register("hosts", "Hosts by state", hosts);
    let problems = Family::<ProblemLabels, Gauge>::default();
    for kind in Kind::ALL {
        let labels = ProblemLabels {
            kind: kind.name(),
            severity: kind.severity().word(),
        };
        let is_there = status.problems.iter().any(|problem| problem.kind == kind);
        problems.get_or_create(&labels).set(i64::from(is_there));
    }
    registry.register(
        "problem",
        "1 while a problem of this kind exists, else 0",
        problems,
    );
    let without_series = whole(status.hosts.len().saturating_sub(HOSTS) as u64);
    let help = "Hosts without series of their own: those whose last batch is oldest";
    registry.register("hosts_without_series", help, without_series);
}

/// Series of the hosts heard most recently.
fn hosts(status: Status) -> HostSeries {
    let mut hosts = status.hosts;
    hosts.sort_by_key(|host| std::cmp::Reverse(host.known.last_received_time_ms));
    hosts.truncate(HOSTS);
    HostSeries(hosts)
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}
