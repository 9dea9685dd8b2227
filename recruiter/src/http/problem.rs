//! A refusal as a document (RFC 9457), with its reason and the time after which to try again.

use crate::metrics::name;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gleaner_schemas::lending::{Refusal, RefusalKind};
use serde::Serialize;

/// Maximum length of a client's text that is quoted back to it.
const MOST_SAID_CHARS: usize = 300;

/// Problem details (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct Problem {
    /// `urn:gleaner:refusal:` and the kind.
    #[serde(rename = "type")]
    pub(crate) type_uri: String,
    /// HTTP status in words.
    pub(crate) title: String,
    /// HTTP status code.
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// Text for people: the problem, its cause and the remedy.
    pub(crate) detail: String,
    /// Kind, for programs: a kind of rejection (`no_memory`, `client_limit`, `reserve`, `too_long`, `unknown_lease`, `not_yours`,
    /// `malformed`, `unreachable`, `starting`, `busy`, `in_use`, `paused`, `ending`, `other`), `unauthorized`, `forbidden`, `not_found` or
    /// `method_not_allowed`.
    pub(crate) kind: String,
    /// Time to wait before the same request is repeated; the header Retry-After has it in seconds. Absent: do not repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_in_ms: Option<i64>,
}

/// Kind of a problem, attached to its answer for the metrics.
#[derive(Clone)]
pub(super) struct Kind(pub(super) String);

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Self {
        Self {
            type_uri: format!("urn:gleaner:refusal:{kind}"),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            kind: kind.to_owned(),
            retry_in_ms: None,
        }
    }

    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }
}

fn status(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::UnknownLease => StatusCode::NOT_FOUND,
        RefusalKind::NotYours => StatusCode::FORBIDDEN,
        RefusalKind::Malformed | RefusalKind::TooLong | RefusalKind::Busy => StatusCode::CONFLICT,
        RefusalKind::ClientLimit => StatusCode::TOO_MANY_REQUESTS,
        RefusalKind::InUse
        | RefusalKind::Paused
        | RefusalKind::NoMemory
        | RefusalKind::Reserve
        | RefusalKind::Unreachable
        | RefusalKind::Ending
        | RefusalKind::Starting
        | RefusalKind::Other => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self {
            retry_in_ms: refusal.retry_in_ms,
            ..Self::new(status(refusal.kind), &name(refusal.kind), refusal.detail)
        }
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let status = match rejection.status() {
            StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST, // both statuses become this one
            other => other,
        };
        // A parser's error quotes the whole faulty text, so the message is cut.
        let text = rejection.body_text();
        let detail: String = text.chars().take(MOST_SAID_CHARS).collect();
        Self::new(status, "malformed", detail)
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Self::malformed(rejection.body_text())
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::malformed(rejection.body_text())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default(); // serializing this cannot fail
        let media = HeaderValue::from_static("application/problem+json");
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, media);
        let kind = Kind(self.kind.clone());
        if let Some(ms) = self.retry_in_ms {
            let seconds = ms.max(0).unsigned_abs().div_ceil(1000);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(kind);
        response
    }
}
