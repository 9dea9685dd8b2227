//! Handlers for leases: requesting, viewing, renewing and ending them.

use super::App;
use super::hosts::check_id;
use super::permissions::Lessee;
use super::problem::Problem;
use super::quotas::run_blocking;
use crate::links::AnswerFailure;
use crate::placing;
use crate::registry::{HostId, Key, starting};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gleaner_daemon::listen::Caller;
use gleaner_schemas::lending::{
    LeaseList, LeaseRequest, LeaseView, MOST_AVOIDED, Outcome, Refusal, RefusalKind,
    RenewalRequest, RequestKind,
};
use std::sync::Arc;
use std::time::Instant;

/// Maximum size of a request, one petabyte. A larger size is a typing error.
const MOST_BYTES: u64 = 1 << 50;
/// Maximum number of copies; a client that needs more hosts sends another request.
const MOST_COPIES: u32 = 16;
/// Minimum term. With shorter terms, clients would do nothing but renew.
const LEAST_TERM_MS: i64 = 1000;
/// Maximum term of a request; a memory server may grant a shorter one.
const MOST_TERM_MS: i64 = 86_400_000;
/// Largest `minimum_duration_ms` of a request.
const MOST_LEAST_MS: i64 = 30 * 86_400_000;
/// Maximum length of a lease's key. Announcements contain the keys of all leases.
const KEY_CHARS: usize = 64;

/// Request memory of idle hosts.
///
/// For clients and admins, and with `host_id` for a host that uses its own memory. A repeated request with the same key gets the same leases, also after a restart of recruiter or memory server.
#[utoipa::path(
    post,
    path = "/v1/leases",
    tag = "leases",
    params(("Gleaner-Client" = Option<String>, Header, description = "Client for whom the request is made; accepted from admins and from programs on the recruiter's machine", pattern = "^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,63}$")),
    request_body = LeaseRequest,
    responses(
        (status = 200, description = "Leases that an earlier request with this key was granted", body = LeaseList),
        (status = 201, description = "Granted", body = LeaseList),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The certificate does not allow this request", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "The key has leases of another size, an earlier request with it is in progress, no memory is expected to stay for that long, or the request names its only host and also how to choose hosts", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too long", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body is not JSON", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The client has reached its limit of memory", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Not possible now: too little memory, or hosts that do not answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn grant(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Result<Json<LeaseRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<LeaseList>), Problem> {
    let begun = Instant::now();
    app.state.metrics.count_request("grant");
    let lessee = app.lessee(&caller, &headers)?;
    let Json(request) = body?;
    check(&request)?;
    let client = app.client_of(&caller, lessee, &request)?;
    let granted = placing::grant(Arc::clone(&app.state), client, request).await;
    app.state
        .metrics
        .count_grant(begun.elapsed(), granted.is_ok());
    let granted = granted?;
    let status = if granted.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let leases = granted.leases;
    Ok((status, Json(LeaseList { leases })))
}

fn check(request: &LeaseRequest) -> Result<(), Problem> {
    let wrong = |what: &str| Err(Problem::malformed(what));
    if !(1..=MOST_BYTES).contains(&request.bytes) {
        return wrong("bytes is from 1 to 2^50");
    }
    if !(1..=KEY_CHARS).contains(&request.key.chars().count()) {
        return wrong("key has 1 to 64 characters");
    }
    if !(1..=MOST_COPIES).contains(&request.copies) {
        return wrong("copies is from 1 to 16");
    }
    check_term(request.term_ms)?;
    let possible = 1..=MOST_LEAST_MS;
    if request
        .minimum_duration_ms
        .is_some_and(|ms| !possible.contains(&ms))
    {
        return wrong("minimum_duration_ms is from 1 to 2592000000: 30 days");
    }
    if request.avoided_host_ids.len() > MOST_AVOIDED {
        return wrong("avoided_host_ids names at most 64 hosts");
    }
    match &request.host_id {
        Some(host_id) => check_id(host_id, "host_id"),
        None => Ok(()),
    }
}

fn check_term(term_ms: i64) -> Result<(), Problem> {
    if (LEAST_TERM_MS..=MOST_TERM_MS).contains(&term_ms) {
        return Ok(());
    }
    Err(Problem::malformed(
        "term_ms is from 1000 to 86400000: a second to a day",
    ))
}

/// Leases of the client; for an admin, leases of all clients.
#[utoipa::path(
    get,
    path = "/v1/leases",
    tag = "leases",
    params(("Gleaner-Client" = Option<String>, Header, description = "Client for whom the request is made; accepted from programs on the recruiter's machine", pattern = "^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,63}$")),
    responses(
        (status = 200, description = "Leases, sorted by client and key", body = LeaseList),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The certificate does not allow this request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let lessee = app.lessee(&caller, &headers)?;
    let text = run_blocking(&app, move |app| {
        let mut leases: Vec<LeaseView> = Vec::new();
        let mut last: Option<Key> = None;
        loop {
            let now_ms = app.state.now_ms();
            let registry = app.state.registry();
            let more = registry.leases_after(lessee.bounds(), last.as_ref(), now_ms);
            drop(registry);
            let Some(of) = more.last() else {
                break;
            };
            last = Some((of.lease.client.clone(), of.lease.key.clone()));
            leases.extend(more);
        }
        serde_json::to_string(&LeaseList { leases }).unwrap_or_default() // serializing this cannot fail
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], text.await?).into_response())
}

/// A lease of the client; for an admin, a lease of any client.
#[utoipa::path(
    get,
    path = "/v1/leases/{lease_id}",
    operation_id = "lease",
    tag = "leases",
    params(
        ("lease_id" = String, Path, description = "32 lower-case hex digits", pattern = "^[0-9a-f]{32}$"),
        ("Gleaner-Client" = Option<String>, Header, description = "Client for whom the request is made; accepted from programs on the recruiter's machine", pattern = "^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,63}$"),
    ),
    responses(
        (status = 200, description = "The lease", body = LeaseView),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The lease belongs to another client", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "Unknown lease, or a lease that has ended", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The recruiter has just started, and may not know the lease yet", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    lease_id: Result<Path<String>, PathRejection>,
) -> Result<Json<LeaseView>, Problem> {
    let lessee = app.lessee(&caller, &headers)?;
    let Path(lease_id) = lease_id?;
    check_id(&lease_id, "a lease id")?;
    found(&app, &lessee, &lease_id).map(Json)
}

/// Renew a lease.
#[utoipa::path(
    post,
    path = "/v1/leases/{lease_id}/renew",
    tag = "leases",
    params(
        ("lease_id" = String, Path, description = "32 lower-case hex digits", pattern = "^[0-9a-f]{32}$"),
        ("Gleaner-Client" = Option<String>, Header, description = "Client for whom the request is made; accepted from programs on the recruiter's machine", pattern = "^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,63}$"),
    ),
    request_body = RenewalRequest,
    responses(
        (status = 200, description = "Renewed", body = LeaseView),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The lease belongs to another client", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "Unknown lease, or a lease that has ended", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "The host rejected the request", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too long", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body is not JSON", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The host does not answer now, or the recruiter has just started", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn renew(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    lease_id: Result<Path<String>, PathRejection>,
    body: Result<Json<RenewalRequest>, JsonRejection>,
) -> Result<Json<LeaseView>, Problem> {
    app.state.metrics.count_request("renew");
    let lessee = app.lessee(&caller, &headers)?;
    let Path(lease_id) = lease_id?;
    check_id(&lease_id, "a lease id")?;
    let Json(RenewalRequest { term_ms }) = body?;
    check_term(term_ms)?;
    let lease = found(&app, &lessee, &lease_id)?;
    let asked = RequestKind::Renew {
        client: lessee.bounds().map(str::to_owned),
        lease_id: lease_id.clone(),
        term_ms,
    };
    match ask(&app, &lease, asked).await? {
        Outcome::Renewed { lease: renewed } => Ok(Json(LeaseView {
            lease: renewed,
            ..lease
        })),
        _ => Err(unexpected().into()),
    }
}

/// End a lease. The request also succeeds if the lease has already ended.
#[utoipa::path(
    delete,
    path = "/v1/leases/{lease_id}",
    tag = "leases",
    params(
        ("lease_id" = String, Path, description = "32 lower-case hex digits", pattern = "^[0-9a-f]{32}$"),
        ("Gleaner-Client" = Option<String>, Header, description = "Client for whom the request is made; accepted from programs on the recruiter's machine", pattern = "^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,63}$"),
    ),
    responses(
        (status = 204, description = "The lease has ended, now or earlier"),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The lease belongs to another client", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "The host rejected the request", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The host does not answer now, or the recruiter has just started", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn release(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    lease_id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    app.state.metrics.count_request("release");
    let lessee = app.lessee(&caller, &headers)?;
    let Path(lease_id) = lease_id?;
    check_id(&lease_id, "a lease id")?;
    let lease = match found(&app, &lessee, &lease_id) {
        Err(problem) if problem.status == StatusCode::NOT_FOUND => {
            return Ok(StatusCode::NO_CONTENT);
        }
        found => found?,
    };
    let asked = RequestKind::Release {
        client: lessee.bounds().map(str::to_owned),
        lease_id,
    };
    match ask(&app, &lease, asked).await {
        Ok(Outcome::Released { .. }) => Ok(StatusCode::NO_CONTENT),
        Ok(_) => Err(unexpected().into()),
        Err(problem) if problem.status == StatusCode::NOT_FOUND => Ok(StatusCode::NO_CONTENT),
        Err(problem) => Err(problem),
    }
}

/// Returns the lease if the caller may see it.
fn found(app: &App, lessee: &Lessee, lease_id: &str) -> Result<LeaseView, Problem> {
    let now_ms = app.state.now_ms();
    let registry = app.state.registry();
    let (lease, grants_in_ms) = (
        registry.lease(lease_id, now_ms),
        registry.grants_in_ms(now_ms),
    );
    let may_exist_on_removed_host = registry.may_exist_on_removed_host(lease_id, now_ms);
    drop(registry);
    match (lease, grants_in_ms) {
        (Some(lease), _) => match lessee.bounds() {
            Some(client) if client != lease.lease.client => Err(Refusal {
                kind: RefusalKind::NotYours,
                detail: format!("lease {lease_id} is another client's than {client}"),
                retry_in_ms: None,
            }
            .into()),
            _ => Ok(lease),
        },
        (None, Some(left_ms)) => Err(starting("leases are looked up", left_ms).into()),
        (None, None) if may_exist_on_removed_host => Err(Refusal {
            kind: RefusalKind::Unreachable,
            detail: format!(
                "the host of lease {lease_id} missed three announcements; the lease may continue there, and is looked up again when the host is back"
            ),
            retry_in_ms: Some(10_000),
        }
        .into()),
        (None, None) => Err(Refusal {
            kind: RefusalKind::UnknownLease,
            detail: format!("no host has lease {lease_id}: it has ended, or never existed"),
            retry_in_ms: None,
        }
        .into()),
    }
}

/// Sends a request about a lease to the lease's host.
async fn ask(app: &App, lease: &LeaseView, asked: RequestKind) -> Result<Outcome, Problem> {
    let host_id = HostId::from(&*lease.host_id);
    let patience = app.state.asking().answer_timeout;
    match app.state.links.ask(&host_id, asked, patience).await {
        Ok(Outcome::Refused(refusal)) => {
            if refusal.kind == RefusalKind::UnknownLease {
                let lease_id = &lease.lease.lease_id;
                app.state.registry().unknown_to_host(&host_id, lease_id);
            }
            Err(refusal.into())
        }
        Ok(outcome) => Ok(outcome),
        Err(unanswered) => {
            if unanswered == AnswerFailure::Late {
                let now_ms = app.state.now_ms();
                app.state.registry().failed(&host_id, now_ms);
            }
            let words = placing::words(unanswered);
            Err(Refusal {
                kind: RefusalKind::Unreachable,
                detail: format!(
                    "host {host_id} has the lease, and {words}; the lease continues there meanwhile"
                ),
                retry_in_ms: Some(1000),
            }
            .into())
        }
    }
}

fn unexpected() -> Refusal {
    Refusal {
        kind: RefusalKind::Other,
        detail:
            "the host answered another question: are memory server and recruiter of one release?"
                .to_owned(),
        retry_in_ms: Some(1000),
    }
}
