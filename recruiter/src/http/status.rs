//! Handlers for the recruiter itself: health and API document.

use super::App;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Health of the recruiter.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct Health {
    /// Version of the recruiter.
    pub(crate) version: String,
    /// Time since the recruiter started.
    pub(crate) uptime_ms: i64,
    /// Number of linked memory servers.
    pub(crate) links_count: u64,
    /// Time until the recruiter grants leases: after a start it may not know every host yet; 0: it grants.
    pub(crate) grants_in_ms: i64,
}

/// Liveness of the recruiter.
///
/// For all callers.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "recruiter",
    responses((status = 200, description = "The recruiter is running", body = Health))
)]
pub(super) async fn healthz(State(app): State<Arc<App>>) -> Json<Health> {
    let state = &app.state;
    let now_ms = state.now_ms();
    Json(Health {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_ms: now_ms,
        links_count: state.links.count() as u64,
        grants_in_ms: state.registry().grants_in_ms(now_ms).unwrap_or_default(),
    })
}

/// OpenAPI document of this API.
///
/// For all callers.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "recruiter",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value))
)]
pub(super) async fn document() -> Json<serde_json::Value> {
    Json(super::openapi())
}
