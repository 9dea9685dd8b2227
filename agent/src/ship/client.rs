//! The collector, spoken to: one connection, kept open from one interval to the next.

use crate::Error;
use crate::clock::Moment;
use crate::ship::address::Address;
use crate::ship::answer::{Answer, Reply, Trouble};
use crate::ship::tls;
use gleaner_dataset::batch::MEDIA_TYPE;
use gleaner_trust::{ClientTrust, Credentials};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use ureq::config::Config;
use ureq::http::Response;
use ureq::tls::TlsConfig;
use ureq::{Agent, Body};

/// Longest answer that is read.
const LONGEST_ANSWER_BYTES: u64 = 64 << 10;

/// Of the time for an answer, so much is for the name, and for the connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A whole exchange may take so many times what its answer may: a batch goes through a slow link.
const WHOLE_EXCHANGE: u32 = 5;

/// A connection idle for longer is not used again.
const LONGEST_IDLE: Duration = Duration::from_secs(900);

pub(crate) struct Client {
    agent: Agent,
    address: Address,
    patience: Duration,
    trust: Option<Followed>,
}

/// Certificates, and which of their states the agent was made with.
struct Followed {
    trust: Arc<ClientTrust>,
    generation: u64,
}

impl Client {
    /// Speaks as `trust` says, which is left out where there is no TLS. `patience`: how long an answer may
    /// take to come once a request was sent.
    ///
    /// # Errors
    /// [`Error::Key`].
    pub(crate) fn new(
        address: Address,
        trust: Option<Arc<ClientTrust>>,
        patience: Duration,
    ) -> Result<Self, Error> {
        let trust = trust.map(|trust| Followed {
            generation: trust.generation(),
            trust,
        });
        let tls = match &trust {
            Some(followed) => tls::config(&followed.trust.credentials())?,
            None => TlsConfig::default(),
        };
        Ok(Self {
            agent: agent(tls, patience),
            address,
            patience,
            trust,
        })
    }

    /// Speaks with these settings for TLS.
    pub(crate) fn with_tls(address: Address, tls: TlsConfig, patience: Duration) -> Self {
        Self {
            agent: agent(tls, patience),
            address,
            patience,
            trust: None,
        }
    }

    /// Takes up certificates that were replaced.
    ///
    /// # Errors
    /// [`Error::Trust`] once, when they are of no use: the old ones are gone on with.
    pub(crate) fn follow_files(&mut self) -> Result<(), Error> {
        let Some(followed) = &mut self.trust else {
            return Ok(());
        };
        followed.trust.reload_if_changed()?;
        let generation = followed.trust.generation();
        if std::mem::replace(&mut followed.generation, generation) != generation {
            let tls = tls::config(&followed.trust.credentials())?;
            self.agent = agent(tls, self.patience);
        }
        Ok(())
    }

    /// What it shows and trusts now.
    pub(crate) fn credentials(&self) -> Option<Arc<Credentials>> {
        self.trust.as_ref().map(|f| f.trust.credentials())
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// The highest sequence of this database that is durable there.
    pub(crate) fn mark(&self, host_id: &str, database_id: &str) -> Result<Option<i64>, Trouble> {
        let reply = self.get(&format!("/v1/mark?host={host_id}&database={database_id}"))?;
        reply.to_mark(&self.address.to_string())
    }

    /// Sends a batch whose last record is `last_sequence`.
    pub(crate) fn send(&self, batch: &[u8], last_sequence: i64) -> Result<Answer, Trouble> {
        let request = self
            .agent
            .post(self.address.of("/v1/batches"))
            .content_type(MEDIA_TYPE)
            .header("Content-Encoding", "zstd")
            .header("Gleaner-Sent-Ms", Moment::now().time_ms.to_string());
        let reply = self.reply(request.send(batch))?;
        reply.to_batch(&self.address.to_string(), last_sequence)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Reply, Trouble> {
        self.reply(self.agent.get(self.address.of(path)).call())
    }

    pub(crate) fn post(&self, path: &str, document: &impl Serialize) -> Result<Reply, Trouble> {
        self.reply(self.agent.post(self.address.of(path)).send_json(document))
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

fn agent(tls: TlsConfig, patience: Duration) -> Agent {
    let config = Config::builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(0) // nobody else is to hear of the trace
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("gleaner-agent/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(CONNECT.min(patience)))
        .timeout_connect(Some(CONNECT.min(patience)))
        .timeout_recv_response(Some(patience))
        .timeout_recv_body(Some(patience))
        .timeout_global(Some(patience * WHOLE_EXCHANGE))
        .max_idle_connections(1)
        .max_idle_age(LONGEST_IDLE)
        .build();
    config.new_agent()
}

/// The other side's verdict on our certificate comes as an alert, ours on its certificate as an error of
/// rustls'; both only as text through ureq.
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
