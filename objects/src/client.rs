//! HTTP connections of the S3 client, made by ureq. The HTTP client of `object_store` would add a second HTTP
//! client and a second TLS configuration to the program.

use gleaner_trust::provider;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpService,
};
use std::time::Duration;
use ureq::Agent;
use ureq::http::Method;
use ureq::http::header::RANGE;
use ureq::http::request::{Parts, Request};
use ureq::tls::{RootCerts, TlsConfig};

const CONNECT: Duration = Duration::from_secs(10);
/// Time without progress after which a connection is closed.
const STALLED: Duration = Duration::from_secs(60);
/// Time for connecting to the service that gives a cloud instance its credentials. It is near, or absent.
const CONNECT_TO_INSTANCE: Duration = Duration::from_secs(1);
/// Maximum size of an answer without a range: a list of at most a thousand objects, a manifest, or an error.
const ANSWER_BYTES: u64 = 256 << 20;
/// Number of idle connections that are kept for further requests.
const IDLE_CONNECTIONS: usize = 64;

/// Factory of the S3 client's HTTP connections.
#[derive(Debug)]
pub(crate) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let connect = match options.get_config_value(&ClientConfigKey::ConnectTimeout) {
            // object_store sets this for the requests of a cloud instance's credentials only.
            Some(timeout) if timeout == "1s" => CONNECT_TO_INSTANCE,
            _ => CONNECT,
        };
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider())
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .https_only(allows_http.as_deref() != Some("true"))
            .http_status_as_error(false)
            .max_redirects(0) // a signature is valid for one address only
            .max_redirects_will_error(false)
            .timeout_resolve(Some(connect))
            .timeout_connect(Some(connect))
            .timeout_per_write(Some(STALLED))
            .timeout_recv_response(Some(STALLED))
            .timeout_per_read(Some(STALLED))
            .max_idle_connections(IDLE_CONNECTIONS)
            .max_idle_connections_per_host(IDLE_CONNECTIONS)
            .user_agent(concat!("gleaner/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(HttpClient::new(Client(agent.into())))
    }
}

#[derive(Debug)]
struct Client(Agent);

#[async_trait::async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let agent = self.0.clone();
        let answered = tokio::task::spawn_blocking(move || ask(&agent, parts, &body)).await;
        answered.map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?
    }
}

fn ask(agent: &Agent, parts: Parts, body: &[u8]) -> Result<HttpResponse, HttpError> {
    let limit_bytes = requested_bytes(&parts).unwrap_or(0).max(ANSWER_BYTES);
    let has_body = [Method::POST, Method::PUT].contains(&parts.method);
    let answer = if has_body {
        agent.run(Request::from_parts(parts, body))
    } else {
        agent.run(Request::from_parts(parts, ()))
    };
    let (parts, mut body) = answer.map_err(failure)?.into_parts();
    let body = body.with_config().limit(limit_bytes).read_to_vec();
    let body = body.map_err(failure)?;
    Ok(HttpResponse::from_parts(parts, body.into()))
}

/// Number of bytes that the request's range has; `None` without a range of known length.
fn requested_bytes(parts: &Parts) -> Option<u64> {
    let range = parts.headers.get(RANGE)?.to_str().ok()?;
    match range.strip_prefix("bytes=")?.split_once('-')? {
        ("", suffix) => suffix.parse().ok(),
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        }
    }
}

fn failure(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => HttpErrorKind::Connect,
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::Io(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
            HttpErrorKind::Connect
        }
        ureq::Error::Io(e) if e.kind() == std::io::ErrorKind::TimedOut => HttpErrorKind::Timeout,
        ureq::Error::Io(_) | ureq::Error::Protocol(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_range_is_known() {
        for (range, expected) in [
            (Some("bytes=0-0"), Some(1)),
            (Some("bytes=100-299"), Some(200)),
            (Some("bytes=-500"), Some(500)),
            (Some("bytes=100-"), None),
            (Some("bytes=9-1"), None),
            (Some("lines=1-2"), None),
            (None, None),
        ] {
            let mut request = Request::get("https://localhost/a");
            if let Some(range) = range {
                request = request.header(RANGE, range);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(requested_bytes(&parts), expected, "{range:?}");
        }
    }
}
