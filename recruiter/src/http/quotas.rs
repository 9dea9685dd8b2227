//! Handlers for the quotas of all hosts.

use super::App;
use super::problem::Problem;
use crate::registry::DatedQuota;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use gleaner_daemon::listen::Caller;
use gleaner_schemas::lending::{HostQuota, Quotas};
use std::sync::Arc;

/// Current quotas of all hosts.
///
/// For clients, readers and admins, and for programs on the recruiter's machine.
#[utoipa::path(
    get,
    path = "/v1/quotas",
    tag = "quotas",
    responses(
        (status = 200, description = "A quota for each host that announced itself within the last three announcement intervals", body = Quotas),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The certificate does not allow this request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn quotas(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    app.may_read(&caller)?;
    let text = all(&app).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Encodes all quotas as JSON. For ten thousand hosts these are megabytes, so this runs outside the serving
/// threads.
pub(crate) async fn all(app: &Arc<App>) -> Result<String, Problem> {
    run_blocking(app, |app| {
        let (state, seen) = (&app.state, app.state.registry().quotas());
        text(seen.iter().map(|seen| seen.at(state.now_ms())).collect())
    })
    .await
}

/// Encodes quotas as JSON, with the present time.
pub(crate) fn text(hosts: Vec<HostQuota>) -> String {
    let time_ms = crate::now_ms();
    serde_json::to_string(&Quotas { time_ms, hosts }).unwrap_or_default() // serializing this cannot fail
}

/// Encodes the quotas of changed hosts as JSON. A host that was removed is included once more, with a quota
/// of 0.
pub(crate) fn changed(changes: &crate::registry::Changes, now_ms: i64) -> String {
    let gone = changes.gone.iter().map(|host_id| HostQuota {
        host_id: host_id.to_string(),
        ..HostQuota::default()
    });
    let changed = changes
        .changed
        .iter()
        .map(|seen: &DatedQuota| seen.at(now_ms));
    text(changed.chain(gone).collect())
}

/// Runs slow work outside the serving threads. Only a few calls run at the same time.
pub(super) async fn run_blocking<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&App) -> T + Send + 'static,
) -> Result<T, Problem> {
    let failed = |why: String| Problem {
        retry_in_ms: Some(1000),
        ..Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "other", why)
    };
    let permit = Arc::clone(&app.writers).acquire_owned().await;
    let permit = permit.map_err(|e| failed(e.to_string()))?;
    let app = Arc::clone(app);
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work(&app)
    });
    done.await.map_err(|e| failed(e.to_string()))
}
