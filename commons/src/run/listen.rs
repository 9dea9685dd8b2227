//! Listeners of the service: for other members, and for programs of this machine.

use super::RunError;
use crate::config::SharingConfig;
use crate::metrics::{self, OPENMETRICS};
use crate::peer::MemberDoor;
use crate::status::ServiceStatus;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gleaner_daemon::listen::{Limits, Server, bind, follow_files, serve};
use gleaner_daemon::shares::Shares;
use gleaner_trust::{ClientTrust, ServerTrust};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Time without progress after which a caller that reads an answer is disconnected.
const READER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of connections of programs of this machine.
const LOCAL_CONNECTIONS: usize = 64;
/// Interval of checks of this host's certificates.
const LOOK_AT_FILES: Duration = Duration::from_secs(5);

fn limits(connections: usize, shares: Option<Shares>) -> Limits {
    Limits {
        connections: Arc::new(Semaphore::new(connections)),
        shares: shares.map(Arc::new),
        reader_timeout: READER_TIMEOUT,
    }
}

fn refused(address: SocketAddr) -> impl FnOnce(io::Error) -> RunError {
    move |source| RunError::Listen { address, source }
}

/// Serves the other members in the background by `router`, to the callers that `door` admits. Returns a
/// description of the listener.
pub(super) async fn members(
    (router, door): (Router, Arc<MemberDoor>),
    trust: Arc<ServerTrust>,
    settings: &SharingConfig,
) -> Result<String, RunError> {
    let (socket, address) = bind(settings.listen)
        .await
        .map_err(refused(settings.listen))?;
    let following = follow_files(
        Arc::clone(&trust),
        |_| {},
        |error| eprintln!("gleaner-commons: continues with its present certificates: {error}"),
    );
    tokio::spawn(following);
    let shares = Shares::of(settings.connections_limit as u64);
    let limits = limits(settings.connections_limit, Some(shares));
    tokio::spawn(serve(socket, Some(trust), limits, door, router));
    Ok(format!("listening on https://{address}"))
}

/// Loads this host's certificates as a client again when their files change.
pub(super) async fn follow_client_files(trust: Arc<ClientTrust>) {
    loop {
        tokio::time::sleep(LOOK_AT_FILES).await;
        let _ = trust.reload_if_changed(); // the server's check of the same files reports the fault
    }
}

/// Serves metrics to programs of this machine in the background; returns a description of the listener.
pub(super) async fn local(
    address: SocketAddr,
    current: impl Fn() -> ServiceStatus + Send + Sync + 'static,
) -> Result<String, RunError> {
    let (socket, address) = bind(address).await.map_err(refused(address))?;
    let current = Arc::new(current);
    let scrape = move || {
        let current = Arc::clone(&current);
        async move { scraped(current()) }
    };
    let router = Router::new()
        .route("/metrics", get(scrape))
        .route("/healthz", get(|| async { "ok\n" }));
    let limits = limits(LOCAL_CONNECTIONS, None);
    tokio::spawn(serve(socket, None, limits, Arc::new(LocalServer), router));
    Ok(format!("listening on http://{address}"))
}

fn scraped(status: ServiceStatus) -> Response {
    match metrics::text(status) {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

/// Callbacks of the listener for this machine, whose programs are trusted.
struct LocalServer;

impl Server for LocalServer {
    fn opened(&self) -> Box<dyn Send> {
        Box::new(())
    }

    fn connection_rejected(&self) {}

    fn failed(&self, _address: SocketAddr, _error: &io::Error) {}

    fn forbidden(&self, why: &str) -> Response {
        (StatusCode::FORBIDDEN, why.to_owned()).into_response()
    }
}
