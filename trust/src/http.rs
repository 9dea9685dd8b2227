//! A client of HTTP for Gleaner's own servers, by ureq: nobody but the named server is asked, by TLS as the
//! certificates' files have it.

use crate::{ClientTrust, Credentials, Result, TrustError, provider};
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig, TlsConfigBuilder};

/// Longest times of a client; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// For the server's name, and again for the connection.
    pub connect: Option<Duration>,
    /// Between a request and the head of its answer.
    pub answer: Option<Duration>,
    /// For the body of the answer.
    pub body: Option<Duration>,
    /// For a whole exchange.
    pub whole: Option<Duration>,
    /// Age of an idle connection that is still used again; `None`: as ureq has it, 15 s.
    pub idle: Option<Duration>,
}

/// A client of one server, or of several of one deployment.
pub struct HttpClient {
    agent: Agent,
    program: &'static str,
    limits: Limits,
    trust: Option<TrustGeneration>,
}

/// Certificates, and the generation of them that the agent was made with.
struct TrustGeneration {
    trust: Arc<ClientTrust>,
    generation: u64,
}

impl HttpClient {
    /// Shows and trusts what `trust` says, which is left out where there is no TLS. `program` is sent as `User-Agent`.
    ///
    /// # Errors
    /// Fails with [`TrustError::Key`].
    pub fn new(
        program: &'static str,
        trust: Option<Arc<ClientTrust>>,
        limits: Limits,
    ) -> Result<Self> {
        let trust = trust.map(|trust| TrustGeneration {
            generation: trust.generation(),
            trust,
        });
        let tls = match &trust {
            Some(followed) => tls(&followed.trust.credentials())?,
            None => TlsConfig::default(),
        };
        Ok(Self {
            agent: agent(program, tls, &limits),
            program,
            limits,
            trust,
        })
    }

    /// Speaks plain HTTP, to this machine.
    #[must_use]
    pub fn plain(program: &'static str, limits: Limits) -> Self {
        Self::of(program, TlsConfig::default(), limits)
    }

    /// Shows and trusts what these credentials say, for enrolment.
    ///
    /// # Errors
    /// Fails with [`TrustError::Key`].
    pub fn with_credentials(
        program: &'static str,
        credentials: &Credentials,
        limits: Limits,
    ) -> Result<Self> {
        Ok(Self::of(program, tls(credentials)?, limits))
    }

    /// Trusts anybody and shows nothing: for a question whose answer is then held against a token's fingerprint.
    #[must_use]
    pub fn unverified(program: &'static str, limits: Limits) -> Self {
        let tls = builder().disable_verification(true).build();
        Self::of(program, tls, limits)
    }

    fn of(program: &'static str, tls: TlsConfig, limits: Limits) -> Self {
        Self {
            agent: agent(program, tls, &limits),
            program,
            limits,
            trust: None,
        }
    }

    /// Takes up certificates that were replaced, here or by another client of the same [`ClientTrust`].
    ///
    /// # Errors
    /// As [`ClientTrust::reload_if_changed`], where new files are of no use: the old ones stay in force.
    pub fn follow_files(&mut self) -> Result<()> {
        let Some(followed) = &mut self.trust else {
            return Ok(());
        };
        let reloaded = followed.trust.reload_if_changed();
        let generation = followed.trust.generation();
        if followed.generation != generation {
            let tls = tls(&followed.trust.credentials())?;
            self.agent = agent(self.program, tls, &self.limits);
            followed.generation = generation;
        }
        reloaded.map(drop)
    }

    /// Credentials that are shown and trusted now.
    #[must_use]
    pub fn credentials(&self) -> Option<Arc<Credentials>> {
        self.trust.as_ref().map(|f| f.trust.credentials())
    }

    /// Makes requests; a status of failure is an answer, no error.
    #[must_use]
    pub const fn agent(&self) -> &Agent {
        &self.agent
    }
}

/// Settings of TLS by which ureq shows and trusts what `credentials` say.
///
/// # Errors
/// Fails with [`TrustError::Key`].
pub fn tls(credentials: &Credentials) -> Result<TlsConfig> {
    let owned = |der: &[u8]| Certificate::from_der(der).to_owned();
    let authorities: Vec<_> = credentials.authorities().iter().map(|c| owned(c)).collect();
    let own: Vec<_> = credentials
        .certificates()
        .iter()
        .map(|c| owned(c))
        .collect();
    let key = credentials.key_pem().map(PrivateKey::from_pem).transpose();
    let key = key.map_err(|e| TrustError::Key(e.to_string()))?;
    Ok(builder()
        .root_certs(RootCerts::new_with_certs(&authorities))
        .client_cert(key.map(|key| ClientCert::new_with_certs(&own, key)))
        .build())
}

fn builder() -> TlsConfigBuilder {
    TlsConfig::builder().unversioned_rustls_crypto_provider(provider())
}

fn agent(program: &str, tls: TlsConfig, limits: &Limits) -> Agent {
    let mut config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(0) // nobody else is asked
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(format!("{program}/{}", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(limits.connect)
        .timeout_connect(limits.connect)
        .timeout_recv_response(limits.answer)
        .timeout_recv_body(limits.body)
        .timeout_global(limits.whole);
    if let Some(idle) = limits.idle {
        config = config.max_idle_age(idle);
    }
    config.build().new_agent()
}
