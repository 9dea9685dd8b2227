//! A refusal, with its reason and the time after which to try again.

use crate::hosts::AdmissionError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gleaner_dataset::{BatchError, DatasetError};
use serde_json::json;
use std::time::Duration;

/// Error answer to a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// Reason of the refusal, with its remedy.
    pub(crate) reason: String,
    /// Time after which the caller may send the same request again; `None`: never.
    pub(crate) retry_after: Option<Duration>,
}

impl Refusal {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            retry_after: None,
        }
    }

    pub(crate) fn unauthorized(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, reason)
    }

    pub(crate) fn forbidden(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, reason)
    }

    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    pub(crate) fn not_found(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, reason)
    }

    pub(crate) fn too_slow(reason: impl Into<String>) -> Self {
        Self {
            retry_after: Some(Duration::from_secs(30)),
            ..Self::new(StatusCode::REQUEST_TIMEOUT, reason)
        }
    }

    pub(crate) fn no_length() -> Self {
        Self::new(
            StatusCode::LENGTH_REQUIRED,
            "a batch needs a Content-Length",
        )
    }

    /// Refuses a request permanently, so that the sender skips it.
    pub(crate) fn for_good(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, reason)
    }

    pub(crate) fn too_large(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
    }

    /// Refuses a request because too much is in progress.
    pub(crate) fn busy(reason: impl Into<String>, retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, reason)
        }
    }

    /// Refuses a request because of the disk's state.
    pub(crate) fn unavailable(reason: impl Into<String>, retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, reason)
        }
    }

    pub(crate) fn internal(reason: impl Into<String>) -> Self {
        Self {
            retry_after: Some(Duration::from_secs(60)),
            ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
        }
    }
}

impl From<BatchError> for Refusal {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::TooLarge { .. } => Self::too_large(error.to_string()),
            BatchError::Newer { .. } => Self {
                // The record is newer than this release. The sender tries again until the collector is
                // upgraded.
                retry_after: Some(Duration::from_secs(3600)),
                ..Self::new(StatusCode::CONFLICT, error.to_string())
            },
            other => Self::malformed(other.to_string()),
        }
    }
}

impl From<AdmissionError> for Refusal {
    fn from(error: AdmissionError) -> Self {
        match error {
            AdmissionError::Databases { .. } => Self::forbidden(error.to_string()),
            AdmissionError::Files { .. } => Self::busy(error.to_string(), Duration::from_secs(60)),
        }
    }
}

impl From<DatasetError> for Refusal {
    fn from(error: DatasetError) -> Self {
        let reason = error.to_string();
        match error {
            DatasetError::UnknownColumn { .. } => Self::malformed(reason),
            DatasetError::Io { .. } => Self::unavailable(reason, Duration::from_secs(60)),
            // The dataset is damaged until an administrator repairs it.
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, reason),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.reason, "retry": self.retry_after.is_some() });
        let mut response = (self.status, axum::Json(body)).into_response();
        if let Some(after) = self.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs()));
        }
        response
    }
}
