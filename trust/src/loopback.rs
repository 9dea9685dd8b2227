//! Requests for JSON documents to servers of this machine, over plain HTTP.

use crate::address::Address;
use crate::http::{HttpClient, Limits};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Timeout of a server's answer. With ten thousand hosts the answer takes less than a second.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of a server's answer, which has some 1 KB per host.
const ANSWER_BYTES: u64 = 1 << 30;

/// Server that programs of its own machine ask without certificates.
#[derive(Clone, Copy, Debug)]
pub struct LoopbackServer {
    /// Kind of server in messages, such as `collector`.
    pub kind: &'static str,
    /// Name of the asking program, sent as `User-Agent`.
    pub program: &'static str,
    /// Advice for users of other machines, shown when an `https://` address is refused.
    pub from_elsewhere: &'static str,
}

/// JSON document that a server returned.
#[derive(Clone, Debug)]
pub struct JsonAnswer<T> {
    /// Text of the document, as received.
    pub text: String,
    /// Value of the document.
    pub value: T,
}

/// Fault of a request to a server of this machine.
#[derive(Debug, thiserror::Error)]
#[error("the {server} at {url} does not answer: {reason}")]
pub struct LoopbackError {
    /// Kind of the server, such as `collector`.
    pub server: &'static str,
    /// Address of the server, as given.
    pub url: String,
    /// Fault of the address, the connection or the answer; or the server's reason for a refusal.
    pub reason: String,
    /// True if the server answered with another status than 200.
    pub is_refusal: bool,
}

/// Part of a problem document (RFC 9457) that messages show.
#[derive(Deserialize)]
struct ProblemDetail {
    detail: String,
}

impl LoopbackServer {
    /// Requests the document at `path` from the server at `url`, such as `http://127.0.0.1:7480`.
    ///
    /// # Errors
    /// [`LoopbackError`] if there is no answer within 30 s, or if the answer is a refusal or no document of
    /// this type.
    pub fn get<T: DeserializeOwned>(
        &self,
        url: &str,
        path: &str,
    ) -> Result<JsonAnswer<T>, LoopbackError> {
        let kind = self.kind;
        let failed = |reason: String| LoopbackError {
            server: kind,
            url: url.to_owned(),
            reason,
            is_refusal: false,
        };
        let address = Address::parse(url).map_err(|e| failed(e.to_string()))?;
        if address.is_secret() {
            let advice = self.from_elsewhere;
            return Err(failed(format!(
                "only http:// is asked, on the {kind}'s own machine; from elsewhere, {advice}"
            )));
        }
        let limits = Limits {
            whole: Some(PATIENCE),
            ..Limits::default()
        };
        let http = HttpClient::plain(self.program, limits);
        let response = http.agent().get(address.url(path)).call();
        let mut response = response.map_err(|e| failed(e.to_string()))?;
        let body = response.body_mut().with_config().limit(ANSWER_BYTES);
        let text = body.read_to_string().map_err(|e| failed(e.to_string()))?;
        if response.status() != 200 {
            let problem: Result<ProblemDetail, _> = serde_json::from_str(&text);
            let reason = match problem {
                Ok(problem) => problem.detail,
                Err(_) => format!("{}: {}", response.status(), text.trim()),
            };
            return Err(LoopbackError {
                is_refusal: true,
                ..failed(reason)
            });
        }
        match serde_json::from_str(&text) {
            Ok(value) => Ok(JsonAnswer { text, value }),
            Err(e) => Err(failed(format!("its answer is none of a {kind}'s ({e})"))),
        }
    }
}
