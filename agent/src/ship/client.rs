//! Client of the collector: one connection, kept open between intervals.

use crate::Error;
use crate::clock::Moment;
use crate::config::ShipSettings;
use crate::ship::answer::{Answer, Reply, Trouble};
use gleaner_dataset::batch::MEDIA_TYPE;
use gleaner_trust::http::{HttpClient, Limits};
use gleaner_trust::{Address, ClientPaths, ClientTrust, Credentials};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use ureq::Body;
use ureq::http::Response;

/// Maximum length of an answer that is read.
const LONGEST_ANSWER_BYTES: u64 = 64 << 10;

/// Timeout of name resolution and connecting, within the timeout of the answer.
const CONNECT: Duration = Duration::from_secs(10);

/// Timeout of a whole exchange, as a multiple of the answer's timeout: a batch may be sent over a slow link.
const WHOLE_EXCHANGE: u32 = 5;

/// Time after which an unused connection is closed.
const LONGEST_IDLE: Duration = Duration::from_secs(900);

/// Name in `User-Agent`.
const PROGRAM: &str = "gleaner-agent";

pub(crate) struct Client {
    http: HttpClient,
    address: Address,
}

impl Client {
    /// Makes a client with the certificates of `trust`; `None` means no TLS. `patience` is the timeout of an
    /// answer once a request is sent.
    ///
    /// # Errors
    /// [`Error::Trust`].
    pub(crate) fn new(
        address: Address,
        trust: Option<Arc<ClientTrust>>,
        patience: Duration,
    ) -> Result<Self, Error> {
        Ok(Self {
            http: HttpClient::new(PROGRAM, trust, limits(patience))?,
            address,
        })
    }

    /// Makes a client with these credentials.
    ///
    /// # Errors
    /// [`Error::Trust`].
    pub(crate) fn with_credentials(
        address: Address,
        credentials: &Credentials,
        patience: Duration,
    ) -> Result<Self, Error> {
        Ok(Self {
            http: HttpClient::with_credentials(PROGRAM, credentials, limits(patience))?,
            address,
        })
    }

    /// Makes a client that accepts any server. The caller checks the server's answer against a token's
    /// fingerprint.
    pub(crate) fn unverified(address: Address, patience: Duration) -> Self {
        Self {
            http: HttpClient::unverified(PROGRAM, limits(patience)),
            address,
        }
    }

    /// Loads the certificates again if their files were replaced.
    ///
    /// # Errors
    /// [`Error::Trust`], once, if they are unusable; the old ones stay in use.
    pub(crate) fn follow_files(&mut self) -> Result<(), Error> {
        Ok(self.http.follow_files()?)
    }

    /// Credentials in use: this host's certificate and the trusted authorities.
    pub(crate) fn credentials(&self) -> Option<Arc<Credentials>> {
        self.http.credentials()
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the highest sequence number of this database that is durable at the collector.
    pub(crate) fn mark(&self, host_id: &str, database_id: &str) -> Result<Option<i64>, Trouble> {
        let reply = self.get(&format!("/v1/mark?host={host_id}&database={database_id}"))?;
        reply.to_mark(&self.address.to_string())
    }

    /// Sends a batch whose last record is `last_sequence`.
    pub(crate) fn send(&self, batch: &[u8], last_sequence: i64) -> Result<Answer, Trouble> {
        let request = self
            .http
            .agent()
            .post(self.address.url("/v1/batches"))
            .content_type(MEDIA_TYPE)
            .header("Content-Encoding", "zstd")
            .header("Gleaner-Sent-Ms", Moment::now().time_ms.to_string());
        let reply = self.reply(request.send(batch))?;
        reply.to_batch(&self.address.to_string(), last_sequence)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Reply, Trouble> {
        self.reply(self.http.agent().get(self.address.url(path)).call())
    }

    pub(crate) fn post(&self, path: &str, document: &impl Serialize) -> Result<Reply, Trouble> {
        self.reply(
            self.http
                .agent()
                .post(self.address.url(path))
                .send_json(document),
        )
    }

    fn reply(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Reply, Trouble> {
        let failed = |error: ureq::Error| failure(&self.address, &error);
        let mut answer = answer.map_err(failed)?;
        let retry_after = answer.headers().get("retry-after");
        let retry_after = retry_after.and_then(|value| Some(value.to_str().ok()?.to_owned()));
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config();
        let body = body.limit(LONGEST_ANSWER_BYTES).lossy_utf8(true);
        Ok(Reply {
            status,
            retry_after,
            body: body.read_to_string().map_err(failed)?,
        })
    }
}

/// Loads the configured files, and loads them again whenever they change.
///
/// # Errors
/// [`Error::Trust`]; [`Error::Collector`] without a certificate.
pub(crate) fn trust(settings: &ShipSettings) -> Result<Arc<ClientTrust>, Error> {
    if !settings.certificate.exists() {
        return Err(Error::Collector {
            what: format!("{} is not there", settings.certificate.display()),
        });
    }
    let paths = ClientPaths {
        certificate: settings.certificate.clone(),
        key: settings.key.clone(),
        authority: settings.authority.clone(),
    };
    Ok(ClientTrust::load(&paths)?)
}

fn limits(patience: Duration) -> Limits {
    Limits {
        connect: Some(CONNECT.min(patience)),
        answer: Some(patience),
        body: Some(patience),
        whole: Some(patience * WHOLE_EXCHANGE),
        idle: Some(LONGEST_IDLE),
    }
}

/// Interprets a failed exchange. If the server rejects our certificate, it sends an alert; if we reject its
/// certificate, rustls returns an error. ureq passes on both only as text.
fn failure(address: &Address, error: &ureq::Error) -> Trouble {
    let (address, why) = (address.to_string(), error.to_string());
    if why.contains("received fatal alert") {
        Trouble::NotAdmitted { address, why }
    } else if why.contains("invalid peer certificate") {
        Trouble::Stranger { address, why }
    } else {
        Trouble::Unreachable { address, why }
    }
}
