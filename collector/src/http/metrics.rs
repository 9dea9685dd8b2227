//! `/metrics`: OpenMetrics text.

use super::App;
use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;

use super::caller::Caller;
use super::refusal::Refusal;
use super::status;

/// Media type of the OpenMetrics text format.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfHost {
    host_id: String,
    host_name: String,
}

/// What is counted since the collector started.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    batches: Counter,
    rows: Counter,
    received: Counter,
    refused: Family<Reason, Counter>,
    connections: Gauge,
}

/// An open connection, until it is dropped.
pub(super) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(super) fn taken_in(&self, rows: u64, bytes: u64) {
        self.batches.inc();
        self.rows.inc_by(rows);
        self.received.inc_by(bytes);
    }

    pub(super) fn refused(&self, reason: &str) {
        let reason = reason.to_owned();
        self.refused.get_or_create(&Reason { reason }).inc();
    }

    pub(super) fn turned_away(&self) {
        self.refused("connections_limit");
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
    caller.may_see_status()?;
    let text = tokio::task::spawn_blocking(move || text(&app)).await;
    let text = text.map_err(|e| Refusal::internal(e.to_string()))?;
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response())
}

fn text(app: &App) -> String {
    let mut registry = Registry::with_prefix("gleaner");
    let m = &app.metrics;
    {
        let collector = registry.sub_registry_with_prefix("collector");
        collector.register("batches", "Batches taken in", m.batches.clone());
        collector.register("rows", "Rows taken in, repeats included", m.rows.clone());
        collector.register_with_unit(
            "received",
            "Compressed content of the batches taken in",
            Unit::Bytes,
            m.received.clone(),
        );
        collector.register("refused", "Requests refused, by reason", m.refused.clone());
        collector.register("connections", "Open connections", m.connections.clone());
    }
    let status = status::read(app);
    let mut gauge = |name: &str, help: &str, value: i64| {
        let gauge: Gauge = Gauge::default();
        gauge.set(value);
        let collector = registry.sub_registry_with_prefix("collector");
        collector.register(name, help, gauge);
    };
    let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    gauge("hosts", "Hosts known", whole(status.hosts.len() as u64));
    gauge(
        "silent_hosts",
        "Hosts not heard of for three of their intervals and ten minutes",
        whole(status.hosts.iter().filter(|h| h.is_silent).count() as u64),
    );
    gauge(
        "journal_bytes",
        "Acknowledged batches that are not in the dataset yet",
        whole(status.journal_bytes),
    );
    gauge(
        "dataset_bytes",
        "Size of the dataset's files",
        whole(status.dataset_bytes),
    );
    gauge(
        "dataset_rows",
        "Rows of the dataset",
        whole(status.dataset_rows_count),
    );
    gauge(
        "dataset_files",
        "Files of the dataset",
        whole(status.dataset_files_count),
    );
    gauge(
        "free_bytes",
        "Free on the collector's disk",
        whole(status.free_bytes),
    );
    gauge(
        "cannot_seal",
        "1 while the journal cannot be sealed",
        i64::from(status.seal.failure.is_some()),
    );
    hosts(&mut registry, &status);
    let mut text = String::new();
    let _ = encode(&mut text, &registry); // writing to a string does not fail
    text
}

fn hosts(registry: &mut Registry, status: &status::Status) {
    let received = Family::<OfHost, Gauge>::default();
    let behind = Family::<OfHost, Gauge>::default();
    let skew = Family::<OfHost, Gauge>::default();
    for host in &status.hosts {
        let labels = OfHost {
            host_id: host.host_id.clone(),
            host_name: host.known.host_name.clone().unwrap_or_default(),
        };
        for (family, value) in [
            (&received, host.known.last_received_ms),
            (&behind, host.behind_ms),
            (&skew, host.known.skew_ms),
        ] {
            if let Some(value) = value {
                family.get_or_create(&labels).set(value);
            }
        }
    }
    registry.register(
        "host_last_received_timestamp_milliseconds",
        "When the host's last batch had arrived",
        received,
    );
    registry.register(
        "host_behind_milliseconds",
        "Age of the host's newest record when it was last heard of",
        behind,
    );
    registry.register(
        "host_clock_skew_milliseconds",
        "The host's clock less the collector's",
        skew,
    );
}
