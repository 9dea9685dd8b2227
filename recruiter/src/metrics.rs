//! Counters since the recruiter's start, which `/metrics` exports.

use gleaner_schemas::lending::RefusalKind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// Upper bounds of the histogram of durations of grants, in seconds.
const GRANT_S: [f64; 11] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];
/// Kinds of refusals. Each has a series from the start, so that a first refusal is an increase.
const KINDS: [RefusalKind; 14] = [
    RefusalKind::Busy,
    RefusalKind::ClientLimit,
    RefusalKind::Ending,
    RefusalKind::InUse,
    RefusalKind::Malformed,
    RefusalKind::NoMemory,
    RefusalKind::NotYours,
    RefusalKind::Other,
    RefusalKind::Paused,
    RefusalKind::Reserve,
    RefusalKind::Starting,
    RefusalKind::TooLong,
    RefusalKind::UnknownLease,
    RefusalKind::Unreachable,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    reason: String,
}

/// Counters since the recruiter's start.
pub(crate) struct Metrics {
    requests: Family<RequestLabels, Counter>,
    refused: Family<RefusalLabels, Counter>,
    granted: Counter,
    grant_duration: Histogram,
    connections: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            refused: Family::default(),
            granted: Counter::default(),
            grant_duration: Histogram::new(GRANT_S),
            connections: Gauge::default(),
        }
    }
}

/// Counts one open connection in the gauge, until it is dropped.
pub(crate) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(crate) fn connection(&self) -> OpenConnection {
        self.connections.inc();
        OpenConnection(self.connections.clone())
    }

    pub(crate) fn count_request(&self, kind: &str) {
        let kind = kind.to_owned();
        self.requests.get_or_create(&RequestLabels { kind }).inc();
    }

    pub(crate) fn count_grant(&self, took: Duration, is_granted: bool) {
        if is_granted {
            self.granted.inc();
            self.grant_duration.observe(took.as_secs_f64());
        }
    }

    pub(crate) fn refused(&self, kind: RefusalKind) {
        self.count_rejection(&name(kind));
    }

    pub(crate) fn count_rejection(&self, reason: &str) {
        let reason = reason.to_owned();
        self.refused.get_or_create(&RefusalLabels { reason }).inc();
    }

    /// Registers every counter. The series of all kinds and reasons begin at 0.
    pub(crate) fn register(&self, registry: &mut Registry) {
        for kind in ["grant", "renew", "release"].map(str::to_owned) {
            let _ = self.requests.get_or_create(&RequestLabels { kind });
        }
        for reason in KINDS.map(name) {
            let _ = self.refused.get_or_create(&RefusalLabels { reason });
        }
        let help = "Requests about leases, by kind";
        registry.register("requests", help, self.requests.clone());
        let help = "Requests, links and connections rejected, by reason";
        registry.register("rejected_requests", help, self.refused.clone());
        let help = "Requests for leases that were granted";
        registry.register("granted_requests", help, self.granted.clone());
        let help = "Time from a request for leases to their grant";
        let grant_duration = self.grant_duration.clone();
        registry.register_with_unit("grant_duration", help, Unit::Seconds, grant_duration);
        let connections = self.connections.clone();
        registry.register("connections", "Open connections", connections);
    }
}

/// Name of a kind of refusal, as in JSON.
pub(crate) fn name(kind: RefusalKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(name)) => name,
        _ => "other".to_owned(),
    }
}
