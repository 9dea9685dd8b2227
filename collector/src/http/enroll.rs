//! Certificates for new and known hosts: `POST /v1/enroll`, `POST /v1/renew`, `GET /v1/authority`.

use super::App;
use super::batches::{content_length, discard};
use super::permissions;
use super::refusal::Refusal;
use axum::Json;
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use gleaner_daemon::listen::Caller;
use gleaner_trust::{Authority, HOST_DAYS, TrustError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum size of a request. Token, id and certificate request have some 600 bytes. The certificate request
/// alone may have 16 KiB.
const MOST_BYTES: usize = 32 << 10;

/// Limits the size of requests, since anybody may send them.
pub(super) fn bounded(route: MethodRouter<Arc<App>>) -> MethodRouter<Arc<App>> {
    let limit = DefaultBodyLimit::max(MOST_BYTES);
    route.layer(limit).layer(from_fn(reject_large_body))
}

/// Refuses a request that announces too large a body, after reading a part of this body. Otherwise the
/// refusal would not reach a sender that is still writing when the connection closes.
async fn reject_large_body(request: Request, next: Next) -> Response {
    if content_length(request.headers()).is_ok_and(|length| length > MOST_BYTES) {
        discard(request.into_body()).await;
        let reason = format!("{MOST_BYTES} bytes are the most that are read here");
        return Refusal::too_large(reason).into_response();
    }
    next.run(request).await
}

/// Request of a new host for its first certificate.
#[derive(Debug, Deserialize)]
pub(super) struct Enrolment {
    token: String,
    host_id: String,
    request_pem: String,
}

/// Request of a known host for its next certificate.
#[derive(Debug, Deserialize)]
pub(super) struct Renewal {
    request_pem: String,
}

/// Answer to an enrolment or renewal.
#[derive(Debug, Serialize)]
pub(super) struct EnrolmentAnswer {
    certificate_pem: String,
    authority_pem: String,
}

/// Issues a certificate to a host that has a token.
pub(super) async fn enroll(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<Enrolment>,
) -> Result<Json<EnrolmentAnswer>, Refusal> {
    let enrolled = certify(&app, move |authority| {
        let (token, host_id) = (&asked.token, &asked.host_id);
        let now = SystemTime::now();
        let certificate = authority.enroll(token, host_id, &asked.request_pem, HOST_DAYS, now)?;
        eprintln!("gleaner-collector: enrolled host {host_id}");
        Ok(certificate)
    });
    let enrolled = enrolled.await.map(Json);
    enrolled.map_err(|refusal| app.refuse(&caller.name(), refusal))
}

/// Renews the certificate of a host whose present certificate is valid.
pub(super) async fn renew(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<Renewal>,
) -> Result<Json<EnrolmentAnswer>, Refusal> {
    let renewed = async {
        let presented = permissions::certificate(&caller)?;
        certify(&app, move |authority| {
            authority.renew(&presented, &asked.request_pem, HOST_DAYS, SystemTime::now())
        })
        .await
    };
    let renewed = renewed.await.map(Json);
    renewed.map_err(|refusal| app.refuse(&caller.name(), refusal))
}

/// The authority's certificate. It is public, and a host checks it against its token.
pub(super) async fn authority(State(app): State<Arc<App>>) -> Result<String, Refusal> {
    let read = |authority: &Authority| Ok(authority.certificate_pem().to_owned());
    with_authority(&app, read).await
}

async fn certify(
    app: &App,
    work: impl FnOnce(&Authority) -> Result<String, TrustError> + Send + 'static,
) -> Result<EnrolmentAnswer, Refusal> {
    let granted = with_authority(app, |authority| {
        Ok(EnrolmentAnswer {
            certificate_pem: work(authority)?,
            authority_pem: authority.certificate_pem().to_owned(),
        })
    });
    granted.await
}

async fn with_authority<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&Authority) -> Result<T, TrustError> + Send + 'static,
) -> Result<T, Refusal> {
    let folder = app.pki.clone().ok_or_else(|| {
        Refusal::not_found(
            "this collector enrols nobody: set pki to the folder of `gleaner pki init`",
        )
    })?;
    let done = tokio::task::spawn_blocking(move || work(&Authority::open(&folder)?)).await;
    let done = done.map_err(|e| Refusal::internal(e.to_string()))?;
    done.map_err(|e| {
        if e.is_refusal() {
            Refusal::forbidden(e.to_string())
        } else {
            Refusal::internal(e.to_string())
        }
    })
}
