//! The recruiter itself.

use super::App;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Health of the recruiter.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct Health {
    /// Its version.
    pub(crate) version: String,
    /// Since its start.
    pub(crate) up_for_ms: i64,
    /// Memory servers linked.
    pub(crate) links_count: u64,
    /// For so long it may not know every host yet, and grants nothing; 0: it knows them.
    pub(crate) starting_for_ms: i64,
}

/// Whether the recruiter is there.
///
/// For anybody.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "recruiter",
    responses((status = 200, description = "It is", body = Health))
)]
pub(super) async fn healthz(State(app): State<Arc<App>>) -> Json<Health> {
    let state = &app.state;
    let now_ms = state.now_ms();
    Json(Health {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        up_for_ms: now_ms,
        links_count: state.links.count() as u64,
        starting_for_ms: state.registry().starting_for_ms(now_ms).unwrap_or_default(),
    })
}

/// This document.
///
/// For anybody.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "recruiter",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value))
)]
pub(super) async fn document() -> Json<serde_json::Value> {
    Json(super::openapi())
}
