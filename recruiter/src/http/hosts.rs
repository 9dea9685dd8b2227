//! Handlers for hosts, and for the links of their memory servers.

use super::App;
use super::problem::Problem;
use super::quotas::run_blocking;
use crate::conversation;
use crate::registry::{HostId, HostView};
use crate::socket::Bounds;
use axum::extract::rejection::PathRejection;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use gleaner_daemon::listen::Caller;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All hosts that are registered.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct Hosts {
    /// Hosts, sorted by id.
    pub(crate) hosts: Vec<HostView>,
}

/// All hosts, with their memory servers.
///
/// For clients, readers and admins, and for programs on the recruiter's machine.
#[utoipa::path(
    get,
    path = "/v1/hosts",
    tag = "hosts",
    responses(
        (status = 200, description = "Hosts that announced themselves within the last three announcement intervals", body = Hosts),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The certificate does not allow this request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn hosts(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    app.may_read(&caller)?;
    let text = run_blocking(&app, |app| {
        let mut hosts: Vec<HostView> = Vec::new();
        loop {
            let after = hosts.last().map_or("", |last| &last.quota.host_id);
            let more = app.state.registry().hosts_after(after, app.state.now_ms());
            if more.is_empty() {
                break;
            }
            hosts.extend(more);
        }
        serde_json::to_string(&Hosts { hosts }).unwrap_or_default() // serializing this cannot fail
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], text.await?).into_response())
}

/// Link of a host's memory server.
///
/// A WebSocket (RFC 6455) of JSON text messages: the memory server announces itself, and the recruiter requests leases from it. Only
/// for the host itself.
#[utoipa::path(
    get,
    path = "/v1/hosts/{host_id}/link",
    tag = "hosts",
    params(("host_id" = String, Path, description = "32 lower-case hex digits", pattern = "^[0-9a-f]{32}$")),
    responses(
        (status = 101, description = "The connection becomes a WebSocket"),
        (status = 400, description = "Malformed request, or no WebSocket request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The certificate is not the certificate of this host", body = Problem, content_type = "application/problem+json"),
        (status = 426, description = "The request does not ask for a WebSocket", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn link(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    host_id: Result<Path<String>, PathRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let Path(host_id) = host_id?;
    check_id(&host_id, "a host id")?;
    app.may_link(&caller, &host_id)
        .inspect_err(|problem| app.state.complain(&caller.name(), &problem.detail))?;
    let upgrade = upgraded(upgrade, conversation::BOUNDS)?;
    let host_id = HostId::from(host_id);
    let state = Arc::clone(&app.state);
    Ok(upgrade.on_upgrade(move |socket| conversation::converse(state, host_id, caller, socket)))
}

/// Limits the messages of a link, if the request asks for a WebSocket.
pub(super) fn upgraded(
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    bounds: Bounds,
) -> Result<WebSocketUpgrade, Problem> {
    let upgrade = upgrade.map_err(|rejection| {
        let status = StatusCode::UPGRADE_REQUIRED;
        let detail = format!("the link is a WebSocket (RFC 6455): {rejection}");
        Problem::new(status, "malformed", detail)
    })?;
    Ok(bounds.apply(upgrade))
}

/// Checks that `id` is 32 lower-case hex digits.
pub(super) fn check_id(id: &str, what: &str) -> Result<(), Problem> {
    if gleaner_trust::hex::is_lower(id, 32) {
        return Ok(());
    }
    Err(Problem::malformed(format!(
        "{what} has 32 lower-case hex digits"
    )))
}
