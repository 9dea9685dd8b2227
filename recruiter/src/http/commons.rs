//! Handlers for commonses, and for the links of their members.

use super::App;
use super::hosts::{check_id, upgraded};
use super::problem::Problem;
use crate::commons;
use crate::member_link;
use crate::registry::HostId;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::response::Response;
use gleaner_daemon::listen::Caller;
use gleaner_schemas::commons::CommonsView;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All commonses that have members.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct CommonsList {
    /// Commonses, sorted by name.
    pub(crate) commonses: Vec<CommonsView>,
}

/// Parameters of a member's link.
#[derive(Deserialize)]
pub(super) struct LinkQuery {
    /// Host of the member; absent: the host of the certificate.
    host_id: Option<String>,
}

/// All commonses, with their members and weights.
///
/// For clients, readers and admins, and for programs on the recruiter's machine.
#[utoipa::path(
    get,
    path = "/v1/commons",
    tag = "commons",
    responses(
        (status = 200, description = "Commonses that have members", body = CommonsList),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The certificate does not allow this request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<CommonsList>, Problem> {
    app.may_read(&caller)?;
    let commonses = app.state.commons().views(app.state.now_ms());
    Ok(Json(CommonsList { commonses }))
}

/// Link of a member of a commons.
///
/// A WebSocket (RFC 6455) of JSON text messages: the member reports its state and the ages of its blocks, and the recruiter sends the
/// members and each epoch's weights. Only for a host itself.
#[utoipa::path(
    get,
    path = "/v1/commons/{name}/link",
    operation_id = "commons_link",
    tag = "commons",
    params(
        ("name" = String, Path, description = "Name of the commons", pattern = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$"),
        ("host_id" = Option<String>, Query, description = "Host of the member; necessary without TLS, and otherwise the host of the certificate", pattern = "^[0-9a-f]{32}$"),
    ),
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
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<LinkQuery>, QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let Path(name) = name?;
    let Query(LinkQuery { host_id }) = query?;
    commons::check_name(&name).map_err(|refusal| Problem::malformed(refusal.detail))?;
    let host_id = app
        .own_host(&caller, host_id)
        .inspect_err(|problem| app.state.complain(&caller.name(), &problem.detail))?;
    check_id(&host_id, "a host id")?;
    let member = (name, HostId::from(host_id));
    let state = Arc::clone(&app.state);
    let upgrade = upgraded(upgrade, member_link::BOUNDS)?;
    Ok(upgrade.on_upgrade(move |socket| member_link::converse(state, member, caller, socket)))
}
