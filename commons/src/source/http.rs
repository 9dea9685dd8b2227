//! An HTTP server as a source. Each block is one request with a range.
//!
//! The client is not `gleaner_trust::http`: that one trusts the deployment's own authorities, while files are
//! served by servers of any kind, which have certificates of authorities that the system trusts.

use super::url::Base;
use super::{FilePart, differs, missing, unavailable};
use crate::answer::{BUFFER_BYTES, body};
use crate::store::FetchError;
use gleaner_trust::provider;
use std::time::{Duration, Instant};
use ureq::http::header::{CONTENT_LENGTH, CONTENT_RANGE, LOCATION};
use ureq::http::{HeaderMap, HeaderName, Response, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Number of idle connections that are kept for further requests.
const IDLE_CONNECTIONS: usize = 64;
/// Maximum time for connecting, so that a server behind a firewall is noticed soon.
const CONNECT: Duration = Duration::from_secs(10);

pub(super) struct Http {
    base: Base,
    agent: Agent,
}

impl Http {
    pub(super) fn new(base: Base, timeout: Duration) -> Self {
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider())
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let connect = CONNECT.min(timeout);
        let agent = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0) // a redirect would double the requests: the message names the new address
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_resolve(Some(connect))
            .timeout_connect(Some(connect))
            .input_buffer_size(BUFFER_BYTES)
            .output_buffer_size(BUFFER_BYTES)
            .max_idle_connections(IDLE_CONNECTIONS)
            .max_idle_connections_per_host(IDLE_CONNECTIONS)
            .accept_encoding("identity")
            .user_agent(concat!("gleaner-commons/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            base,
            agent: agent.new_agent(),
        }
    }

    pub(super) fn fetch(
        &self,
        part: &FilePart<'_>,
        deadline: Instant,
    ) -> Result<Vec<u8>, FetchError> {
        let (first, last) = (part.offset, part.offset + part.bytes - 1);
        let url = self.base.join(part.path);
        let request = self
            .agent
            .get(&url)
            .header("Range", format!("bytes={first}-{last}"));
        let request = request.config().timeout_global(Some(remaining(deadline)?));
        let mut answer = request.build().call().map_err(failure)?;
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => {
                let range = text(answer.headers(), &CONTENT_RANGE).unwrap_or_default();
                check_range(range, first, last, part.file_bytes)?;
            }
            StatusCode::OK if part.bytes == part.file_bytes => (), // the part is the whole file
            StatusCode::OK => {
                let detail = "it answers requests for ranges with whole files";
                return Err(unavailable(detail));
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(differs(format!("the file ends before byte {first}")));
            }
            _ => return Err(refusal(&answer)),
        }
        let bytes = match body(&mut answer, part.bytes) {
            Err(ureq::Error::BodyExceedsLimit(_)) => {
                return Err(differs(format!(
                    "it answered more than {} bytes",
                    part.bytes
                )));
            }
            other => other.map_err(failure)?,
        };
        if bytes.len() as u64 != part.bytes {
            let found = bytes.len();
            return Err(differs(format!(
                "it answered {found} bytes instead of {}",
                part.bytes
            )));
        }
        Ok(bytes)
    }

    pub(super) fn check_size(
        &self,
        path: &[u8],
        wanted: u64,
        deadline: Instant,
    ) -> Result<(), FetchError> {
        let request = self.agent.head(self.base.join(path));
        let request = request.config().timeout_global(Some(remaining(deadline)?));
        let answer = request.build().call().map_err(failure)?;
        if answer.status() != StatusCode::OK {
            return Err(refusal(&answer));
        }
        let found = text(answer.headers(), &CONTENT_LENGTH);
        match found.and_then(|length| length.parse::<u64>().ok()) {
            Some(found) if found != wanted => {
                Err(differs(format!("the file has {found} bytes, not {wanted}")))
            }
            _ => Ok(()), // the blocks' ranges show the size as well
        }
    }
}

fn remaining(deadline: Instant) -> Result<Duration, FetchError> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    if remaining.is_zero() {
        return Err(FetchError::TimedOut);
    }
    Ok(remaining)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Checks a header `Content-Range: bytes FIRST-LAST/LENGTH`. The length may be `*`.
fn check_range(range: &str, first: u64, last: u64, file_bytes: u64) -> Result<(), FetchError> {
    let parsed = || {
        let (span, length) = range.strip_prefix("bytes ")?.split_once('/')?;
        let (from, to) = span.split_once('-')?;
        let length = match length {
            "*" => None,
            length => Some(length.parse::<u64>().ok()?),
        };
        Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?, length))
    };
    let (from, to, length) =
        parsed().ok_or_else(|| unavailable(format!("its Content-Range is {range:?}")))?;
    if let Some(length) = length.filter(|length| *length != file_bytes) {
        return Err(differs(format!(
            "the file has {length} bytes, not {file_bytes}"
        )));
    }
    if (from, to) != (first, last) {
        let detail = format!("it answered bytes {from}-{to} to a request for {first}-{last}");
        return Err(unavailable(detail));
    }
    Ok(())
}

/// Error for an answer without the file.
fn refusal(answer: &Response<Body>) -> FetchError {
    let status = answer.status();
    if status.is_redirection() {
        let to = text(answer.headers(), &LOCATION).unwrap_or("another address");
        return unavailable(format!(
            "it redirects to {to:?}: name that address with --source"
        ));
    }
    match status.as_u16() {
        401 | 403 | 404 | 410 => missing(format!("the server answered {status}")),
        _ => unavailable(format!("the server answered {status}")),
    }
}

fn failure(error: ureq::Error) -> FetchError {
    match error {
        ureq::Error::Timeout(_) => FetchError::TimedOut,
        other => unavailable(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_requested_range_of_the_sealed_size_is_taken() {
        for (range, is_differing) in [
            ("bytes 10-19/100", None),
            ("bytes 10-19/*", None),
            ("bytes 10-19/101", Some(true)),
            ("bytes 10-18/100", Some(false)),
            ("bytes 0-9/100", Some(false)),
            ("bytes 10-19", Some(false)),
            ("10-19/100", Some(false)),
            ("bytes */100", Some(false)),
            ("", Some(false)),
            ("bytes 10-99999999999999999999999/100", Some(false)),
        ] {
            let found = check_range(range, 10, 19, 100);
            let found = found.err().map(|e| matches!(e, FetchError::Differs { .. }));
            assert_eq!(found, is_differing, "{range:?}");
        }
    }
}
