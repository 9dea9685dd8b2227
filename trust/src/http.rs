//! An HTTP client (ureq) for Gleaner's own servers. It follows no redirects to other servers, and takes its
//! TLS settings from the files of certificates.

use crate::{ClientTrust, Credentials, Result, TrustError, provider};
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig, TlsConfigBuilder};

/// Time limits of a client; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Time limit for resolving the name, and the same limit again for connecting.
    pub connect: Option<Duration>,
    /// Time limit from the end of a request to the head of its answer.
    pub answer: Option<Duration>,
    /// Time limit for the body of the answer.
    pub body: Option<Duration>,
    /// Time limit for a request and its answer together.
    pub whole: Option<Duration>,
    /// Time for which an idle connection is kept for further requests; `None`: ureq's default, 15 s.
    pub idle: Option<Duration>,
}

/// A client of one server, or of several servers of one deployment.
pub struct HttpClient {
    agent: Agent,
    program: &'static str,
    limits: Limits,
    trust: Option<TrustGeneration>,
}

/// Certificates, and their generation when the agent was made.
struct TrustGeneration {
    trust: Arc<ClientTrust>,
    generation: u64,
}

impl HttpClient {
    /// Makes a client with the certificates of `trust`. If `trust` is `None`, the client uses no TLS.
    /// `program` is sent as `User-Agent`.
    ///
    /// # Errors
    /// [`TrustError::Key`] if TLS cannot use the private key.
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

    /// Makes a client for plain HTTP, which is used only for servers on this machine.
    #[must_use]
    pub fn plain(program: &'static str, limits: Limits) -> Self {
        Self::of(program, TlsConfig::default(), limits)
    }

    /// Makes a client with these credentials, for enrolment.
    ///
    /// # Errors
    /// [`TrustError::Key`] if TLS cannot use the private key.
    pub fn with_credentials(
        program: &'static str,
        credentials: &Credentials,
        limits: Limits,
    ) -> Result<Self> {
        Ok(Self::of(program, tls(credentials)?, limits))
    }

    /// Makes a client that trusts every server and shows no certificate. It is only for a request whose
    /// answer is checked against the fingerprint in a token.
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

    /// Uses the new certificates if files were replaced. They may have been loaded already by another client
    /// of the same [`ClientTrust`].
    ///
    /// # Errors
    /// Errors of [`ClientTrust::reload_if_changed`]: the new files are unusable, and the old certificates
    /// stay in use.
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

    /// Returns the credentials in use.
    #[must_use]
    pub fn credentials(&self) -> Option<Arc<Credentials>> {
        self.trust.as_ref().map(|f| f.trust.credentials())
    }

    /// Agent that sends requests. It treats an answer with a failure status as an answer, not as an error.
    #[must_use]
    pub const fn agent(&self) -> &Agent {
        &self.agent
    }
}

/// TLS settings for ureq: they show the certificates in `credentials`, and trust its authorities.
///
/// # Errors
/// [`TrustError::Key`] if TLS cannot use the private key.
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
        .max_redirects(0) // requests go only to the named server
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
