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
use ureq::http::request::{Parts, Request};
use ureq::tls::{RootCerts, TlsConfig};

const CONNECT: Duration = Duration::from_secs(10);
/// Time without progress after which a connection is closed.
const STALLED: Duration = Duration::from_secs(60);
/// Maximum size of an answer, which is a list of at most a thousand objects, or an error.
const ANSWER_BYTES: u64 = 16 << 20;

/// Factory of the S3 client's HTTP connections.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp);
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
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_write(Some(STALLED))
            .timeout_recv_response(Some(STALLED))
            .timeout_per_read(Some(STALLED))
            .user_agent(concat!("gleaner-collector/", env!("CARGO_PKG_VERSION")))
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
    let has_body = [Method::POST, Method::PUT].contains(&parts.method);
    let answer = if has_body {
        agent.run(Request::from_parts(parts, body))
    } else {
        agent.run(Request::from_parts(parts, ()))
    };
    let (parts, mut body) = answer.map_err(failure)?.into_parts();
    let body = body.with_config().limit(ANSWER_BYTES).read_to_vec();
    let body = body.map_err(failure)?;
    Ok(HttpResponse::from_parts(parts, body.into()))
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
