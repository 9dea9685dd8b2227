//! HTTP interface of the collector.
//!
//! | request | allowed for | answer |
//! | --- | --- | --- |
//! | `POST /v1/batches` | a host, its own rows | acknowledged once durable |
//! | `GET /v1/mark` | the same, and readers | how far its database is durable |
//! | `POST /v1/enroll`, `GET /v1/authority` | anybody with a token; anybody | a certificate |
//! | `POST /v1/renew` | a host | its next certificate |
//! | `GET /v1/tables`, `GET /v1/tables/TABLE` | readers | the tables; one's rows as an Arrow stream |
//! | `GET /`, `/v1/status`, `/metrics` | readers, and this machine | its status |
//! | `GET /v1/collectors` | the same | the collectors of the dataset, without hosts |
//! | `POST /v1/seal` | this machine, with all access | once all is in the dataset |

mod batches;
mod enroll;
mod extent;
mod metrics;
mod page;
mod permissions;
mod refusal;
pub(crate) mod status;
mod stream;
mod tables;
mod turns;

use crate::config::{Config, LocalAccess};
use crate::hosts::Hosts;
use crate::journal::Journal;
use crate::now_ms;
use crate::peers::{CollectorIdentity, Peers};
use crate::sealer::Sealer;
use crate::tables::TablePublisher;
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use extent::Extents;
use gleaner_daemon::listen::{Log, Server};
use gleaner_dataset::batch;
use gleaner_trust::ServerTrust;
use metrics::Metrics;
use refusal::Refusal;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use tokio::sync::Semaphore;
use turns::Turns;

/// Maximum number of simultaneous readers of tables. Each reader may need memory for one host's rows of a
/// day.
const READERS: usize = 8;

/// Maximum number of simultaneous questions to peers about a host's records. After a restart, all hosts ask at once.
const PEER_QUESTIONS: usize = 4;

/// State shared by the handlers.
pub(crate) struct App {
    /// Name of this collector, if it has one.
    name: Option<String>,
    pub(crate) hosts: Arc<Hosts>,
    journal: Journal,
    sealer: Sealer,
    /// Publisher of Iceberg tables, if they are configured.
    tables: Option<TablePublisher>,
    dataset: PathBuf,
    extents: Extents,
    /// The other collectors of the dataset; unset until this collector listens.
    peers: OnceLock<Peers>,
    /// A permit for each question to the peers about a host's records.
    peer_questions: Semaphore,
    /// TLS configuration with the certificate shown to clients; unset without TLS.
    trust: OnceLock<Arc<ServerTrust>>,
    pki: Option<PathBuf>,
    local_access: LocalAccess,
    batch: Mutex<batch::Limits>,
    /// A permit for each KiB of batches in progress.
    memory: Semaphore,
    /// A permit for each batch being decoded.
    decoders: Semaphore,
    /// A permit for each reader of a table.
    readers: Arc<Semaphore>,
    turns: Turns,
    refusals: Log,
    metrics: Metrics,
    reserve_bytes: u64,
    started_time_ms: i64,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

impl App {
    pub(crate) fn new(
        config: &Config,
        hosts: Arc<Hosts>,
        journal: Journal,
        sealer: Sealer,
        tables: Option<TablePublisher>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let certificates = config.listen.as_ref().map(|(_, certificates)| certificates);
        Self {
            name: config.seal.collector_name.clone(),
            hosts,
            journal,
            sealer,
            tables,
            dataset: config.dataset.clone(),
            extents: Extents::default(),
            peers: OnceLock::new(),
            peer_questions: Semaphore::new(PEER_QUESTIONS),
            trust: OnceLock::new(),
            pki: certificates.and_then(|c| c.pki.clone()),
            local_access: config.local_access,
            batch: Mutex::new(config.batch),
            memory: Semaphore::new(config.memory_bytes / 1024),
            decoders: Semaphore::new(cores),
            readers: Arc::new(Semaphore::new(READERS)),
            turns: Turns::default(),
            refusals: Log::default(),
            metrics: Metrics::default(),
            reserve_bytes: config.journal.reserve_bytes,
            started_time_ms: now_ms(),
        }
    }

    /// Sets the certificate whose expiry the status reports.
    pub(crate) fn set_certificate(&self, trust: &Arc<ServerTrust>) {
        let _ = self.trust.set(Arc::clone(trust)); // set once: there is one listener with TLS
    }

    /// Identity of this collector among its peers.
    pub(crate) fn identity(&self) -> CollectorIdentity {
        CollectorIdentity {
            name: self.name.clone(),
            started_time_ms: self.started_time_ms,
        }
    }

    /// Sets the other collectors of the dataset.
    pub(crate) fn set_peers(&self, peers: Peers) {
        let _ = self.peers.set(peers); // set once, when the collector starts
    }

    /// The other collectors of the dataset; none before [`Self::set_peers`].
    fn peers(&self) -> &Peers {
        static NONE: LazyLock<Peers> = LazyLock::new(Peers::default);
        self.peers.get().unwrap_or(&NONE)
    }

    fn log_refusal(&self, sender: &str, reason: &str) {
        if let Some(line) = self.refusals.news(sender, reason) {
            eprintln!("gleaner-collector: refused {line}");
        }
    }

    fn batch_limits(&self) -> batch::Limits {
        *self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the size limits of batches from now on.
    pub(crate) fn set_batch_limits(&self, limits: batch::Limits) {
        *self.batch.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Counts a refusal. Also logs it and notes it for the host, unless the collector was only busy.
    fn refuse(&self, sender: &str, refusal: Refusal) -> Refusal {
        self.metrics.rejected(reason(refusal.status));
        if refusal.status == StatusCode::TOO_MANY_REQUESTS {
            return refusal;
        }
        self.log_refusal(sender, &refusal.reason);
        if let Some(host_id) = sender.strip_prefix("host ") {
            let kind = reason(refusal.status);
            self.hosts
                .rejected(host_id, now_ms(), kind, &refusal.reason);
        }
        refusal
    }
}

impl Server for App {
    fn opened(&self) -> Box<dyn Send> {
        Box::new(self.metrics.connection())
    }

    fn connection_rejected(&self) {
        self.metrics.connection_rejected();
    }

    fn failed(&self, address: SocketAddr, error: &io::Error) {
        self.log_refusal(&address.ip().to_string(), &error.to_string());
        self.metrics.rejected("connection");
    }

    fn forbidden(&self, why: &str) -> Response {
        Refusal::forbidden(why).into_response()
    }
}

/// Label of a refusal in the metrics.
fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::BAD_REQUEST
        | StatusCode::LENGTH_REQUIRED
        | StatusCode::UNPROCESSABLE_ENTITY => "malformed",
        StatusCode::REQUEST_TIMEOUT => "too_slow",
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::TOO_MANY_REQUESTS => "busy",
        StatusCode::CONFLICT => "newer",
        StatusCode::SERVICE_UNAVAILABLE => "disk",
        _ => "other",
    }
}

/// Routes of the interface.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/batches", post(batches::receive))
        .route("/v1/mark", get(batches::mark))
        .route("/v1/enroll", enroll::bounded(post(enroll::enroll)))
        .route("/v1/renew", enroll::bounded(post(enroll::renew)))
        .route("/v1/authority", get(enroll::authority))
        .route("/", get(page::page))
        .route("/v1/status", get(status::status))
        .route("/v1/collectors", get(status::collectors))
        .route("/v1/tables", get(tables::list))
        .route("/v1/tables/{table}", get(tables::rows))
        .route("/v1/seal", post(status::seal))
        .route("/metrics", get(metrics::scrape))
        .fallback(|| async {
            Refusal::not_found("there is nothing here; docs/collector.md lists what there is")
        })
        .with_state(app)
}
