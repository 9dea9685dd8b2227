//! A request to one recruiter, and the meaning of its replies.

use super::BorrowError;
use gleaner_schemas::lending::Refusal;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{Method, Request};
use ureq::{Agent, SendBody};

/// Maximum length of a text from the network that is shown in error messages.
const MOST_SAID_CHARS: usize = 300;
/// Maximum size of a reply: room for tens of thousands of leases of some 400 bytes each.
const MOST_ANSWER_BYTES: u64 = 16 << 20;

/// Status and body of a reply.
pub(super) struct RecruiterReply {
    status: u16,
    body: String,
}

/// Sends a request to the recruiter at `url`. `path` is the part of the URL after the API's version. `client`
/// is the client's name, needed if no certificate contains it.
pub(super) fn ask(
    agent: &Agent,
    url: &str,
    client: Option<&str>,
    (method, path, document): (Method, &str, Option<&Value>),
) -> Result<RecruiterReply, BorrowError> {
    exchange(agent, format!("{url}/v1/{path}"), client, method, document).map_err(|e| match e {
        ureq::Error::BodyExceedsLimit(_) => foreign(url, "an answer without end"),
        e => BorrowError::Unreachable {
            url: url.to_owned(),
            reason: printable(&e.to_string()),
        },
    })
}

fn exchange(
    agent: &Agent,
    uri: String,
    client: Option<&str>,
    method: Method,
    document: Option<&Value>,
) -> Result<RecruiterReply, ureq::Error> {
    let mut request = Request::builder().method(method).uri(uri);
    if let Some(client) = client {
        request = request.header("Gleaner-Client", client);
    }
    let mut answer = match document {
        Some(document) => {
            let request = request.header("Content-Type", "application/json");
            agent.run(request.body(SendBody::from_json(document)?)?)?
        }
        None => agent.run(request.body(())?)?,
    };
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(MOST_ANSWER_BYTES);
    Ok(RecruiterReply {
        status,
        body: body.lossy_utf8(true).read_to_string()?,
    })
}

impl RecruiterReply {
    /// Checks that a request without a result succeeded.
    pub(super) fn done(&self, url: &str) -> Result<(), BorrowError> {
        match self.status {
            204 => Ok(()),
            _ => Err(self.refused(url)),
        }
    }

    /// Parses the result of a successful request.
    pub(super) fn told<T: DeserializeOwned>(&self, url: &str) -> Result<T, BorrowError> {
        match self.status {
            200 | 201 => serde_json::from_str(&self.body).map_err(|e| foreign(url, &e.to_string())),
            _ => Err(self.refused(url)),
        }
    }

    fn refused(&self, url: &str) -> BorrowError {
        // Problem details (RFC 9457) have a refusal's fields, among others.
        match serde_json::from_str::<Refusal>(&self.body) {
            Ok(refusal) if self.status >= 400 => BorrowError::Refused {
                url: url.to_owned(),
                refusal: Refusal {
                    detail: printable(&refusal.detail),
                    ..refusal
                },
            },
            _ => foreign(url, &format!("status {}: {}", self.status, self.body)),
        }
    }
}

pub(super) fn foreign(url: &str, what: &str) -> BorrowError {
    BorrowError::Foreign {
        url: url.to_owned(),
        what: printable(what),
    }
}

/// Replaces control characters, on which a terminal would act.
fn printable(said: &str) -> String {
    let harmless = |c: char| if c.is_control() { '?' } else { c };
    said.trim()
        .chars()
        .take(MOST_SAID_CHARS)
        .map(harmless)
        .collect()
}
