//! Answers `/metrics` with OpenMetrics text. docs/recruiter.md lists names and units.

use super::App;
use super::problem::Problem;
use super::quotas::run_blocking;
use crate::registry::DatedQuota;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use gleaner_daemon::listen::Caller;
use gleaner_schemas::commons::CommonsView;
use gleaner_schemas::lending::HostQuota;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;

/// Media type of the OpenMetrics text format.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics in Prometheus' format.
///
/// For readers and admins, and for programs on the recruiter's machine.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "recruiter",
    responses(
        (status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The certificate does not allow this request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn scrape(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    app.may_scrape(&caller)?;
    let text = run_blocking(&app, text).await?;
    let failed = |e: fmt::Error| {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Problem::new(
            status,
            "other",
            format!("the metrics cannot be written: {e}"),
        )
    };
    let text = text.map_err(failed)?;
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response())
}

fn text(app: &App) -> Result<String, fmt::Error> {
    let state = &app.state;
    let known = state.registry();
    let (quotas, totals, leases) = (known.quotas(), known.totals(), known.leases_count());
    drop(known);
    let mut registry = Registry::default();
    registry.register_with_unit(
        "process_start_time",
        "Start time of the recruiter, since 1970-01-01 UTC",
        Unit::Seconds,
        ConstGauge::new(state.start_time_ms as f64 / 1000.0),
    );
    let recruiter = registry.sub_registry_with_prefix("gleaner_recruiter");
    state.metrics.register(recruiter);
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    recruiter.register("build", "The recruiter's version", Info::new(version));
    let whole = |n: usize| ConstGauge::new(i64::try_from(n).unwrap_or(i64::MAX));
    for (name, help, count) in [
        (
            "hosts",
            "Hosts that announced themselves within three announcement intervals",
            quotas.len(),
        ),
        ("links", "Memory servers linked now", state.links.count()),
        ("leases", "Leases known", leases),
        (
            "watchers",
            "Readers of GET /v1/quotas/watch",
            app.feed.readers_count(),
        ),
    ] {
        recruiter.register(name, help, whole(count));
    }
    let views = state.commons().views(state.now_ms());
    recruiter.register_collector(Box::new(CommonsSeries(views)));
    for (name, help, bytes) in [
        ("quota", "What linked hosts may lend", totals.quota_bytes),
        ("lent", "What of it is leased", totals.lent_bytes),
        (
            "unleased",
            "What of it is left to lease",
            totals.unleased_bytes,
        ),
    ] {
        recruiter.register_with_unit(name, help, Unit::Bytes, ConstGauge::new(bytes as f64));
    }
    let of_hosts = registry.sub_registry_with_prefix("gleaner_memoryd");
    of_hosts.register_collector(Box::new(HostSeries(quotas)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// A series with one sample for each host.
type Series = (&'static str, &'static str, fn(&HostQuota) -> u64);

const SERIES: [Series; 4] = [
    ("quota", "What the host may lend now", |q| q.quota_bytes),
    ("lent", "What of it is leased", |q| q.lent_bytes),
    ("unleased", "What of it is left to lease", |q| {
        q.unleased_bytes
    }),
    ("idle_quota", "What it would lend once idle", |q| {
        q.idle_quota_bytes
    }),
];

/// A series with one sample for each commons.
type CommonsSample = (&'static str, &'static str, fn(&CommonsView) -> f64);

const COMMONS_SERIES: [CommonsSample; 3] = [
    ("commons_members", "Members of the commons", |view| {
        view.members.len() as f64
    }),
    ("commons_epoch", "Number of the newest epoch", |view| {
        view.epoch as f64
    }),
    (
        "commons_weights",
        "Sum of the weights of the last epoch that this recruiter weighed, in blocks",
        |view| view.weights_sum as f64,
    ),
];

/// Series of the commonses, by name.
#[derive(Debug)]
struct CommonsSeries(Vec<CommonsView>);

impl Collector for CommonsSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in COMMONS_SERIES {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for view in &self.0 {
                let labels = [("commons", view.name.as_str())];
                let value = ConstGauge::new(value(view));
                value.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Series of the hosts, written directly as text, since a scrape has tens of thousands of them.
#[derive(Debug)]
struct HostSeries(Vec<DatedQuota>);

impl Collector for HostSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in SERIES {
            let gauge = MetricType::Gauge;
            let mut family = encoder.encode_descriptor(name, help, Some(&Unit::Bytes), gauge)?;
            for seen in &self.0 {
                let labels = [("host_id", seen.quota.host_id.as_str())];
                let value = ConstGauge::new(value(&seen.quota) as f64);
                value.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
