//! HTTP interface of the recruiter. `gleaner-recruiter openapi` describes it for programs, docs/recruiter.md
//! for people.

mod app;
mod commons;
mod feed;
mod hosts;
mod leases;
mod metrics;
mod permissions;
mod problem;
mod quotas;
mod status;
mod watch;

pub(crate) use app::App;
pub(crate) use commons::CommonsList;
pub(crate) use hosts::Hosts;
pub(crate) use status::Health;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::middleware::map_response_with_state;
use axum::response::Response;
use problem::Problem;
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum size of a request's body. Valid bodies have some hundred bytes.
const BODY_BYTES: usize = 64 << 10;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Gleaner recruiter",
        description = "Quotas and leases of the memory that idle hosts lend. Over TLS, a certificate identifies the caller (docs/trust.md); plain HTTP is for programs on the same machine."
    ),
    tags(
        (name = "quotas", description = "Memory that hosts may lend"),
        (name = "leases", description = "Memory that a host lends to a client for a limited time"),
        (name = "hosts", description = "Memory servers"),
        (name = "commons", description = "Read caches that hosts keep together in idle memory"),
        (name = "recruiter", description = "The recruiter itself"),
    )
)]
struct Api;

fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(quotas::quotas))
        .routes(routes!(watch::watch))
        .routes(routes!(leases::list, leases::grant))
        .routes(routes!(leases::one, leases::release))
        .routes(routes!(leases::renew))
        .routes(routes!(hosts::hosts))
        .routes(routes!(hosts::link))
        .routes(routes!(commons::list))
        .routes(routes!(commons::link))
        .routes(routes!(metrics::scrape))
        .routes(routes!(status::healthz))
        .routes(routes!(status::document))
}

/// The OpenAPI document.
#[must_use]
pub fn openapi() -> serde_json::Value {
    let document = routes().into_openapi();
    serde_json::to_value(document).unwrap_or_default() // the document has only string keys
}

/// Routes of the interface.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (router, _) = routes().split_for_parts();
    router
        .fallback(|| async {
            let detail = "there is nothing here; docs/recruiter.md lists what there is";
            Problem::new(StatusCode::NOT_FOUND, "not_found", detail)
        })
        .method_not_allowed_fallback(|| async {
            let detail = "this address is there for other methods: see the header Allow";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(map_response_with_state(Arc::clone(&app), count))
        .with_state(app)
}

/// Counts every refusal, whichever handler it comes from.
async fn count(State(app): State<Arc<App>>, response: Response) -> Response {
    if let Some(problem::Kind(kind)) = response.extensions().get() {
        app.state.metrics.count_rejection(kind);
    }
    response
}
