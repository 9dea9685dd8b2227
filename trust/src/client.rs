//! Certificates and TLS settings of a client.

use crate::server::{dates_of_first, mismatch, parse_key, roots};
use crate::watched_files::{WatchedFiles, read_pem};
use crate::{Dates, Result, TrustError, certificate, files, provider, token};
use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Paths of a client's files, all in PEM form.
#[derive(Debug, Clone)]
pub struct ClientPaths {
    /// File of the client's certificate. If intermediate authorities issued it, their certificates follow it
    /// in the file.
    pub certificate: PathBuf,
    /// File of the client's private key.
    pub key: PathBuf,
    /// File with one or more authorities. The server's certificate must be issued by one of them, directly or
    /// through intermediate authorities.
    pub authority: PathBuf,
}

/// Certificates that a client shows, and authorities that it trusts, in the forms that HTTP clients need.
///
/// ureq uses them through [`crate::http::tls`]. Key and certificate were checked to match: ureq would panic
/// if they did not.
pub struct Credentials {
    certificates: Vec<CertificateDer<'static>>,
    key_pem: Option<Vec<u8>>,
    authorities: Vec<CertificateDer<'static>>,
    config: Arc<ClientConfig>,
    dates: Option<Dates>,
}

impl Credentials {
    /// Makes credentials for enrolment: they trust one authority and contain no certificate of the client.
    /// `authority_pem` may come from any source, since the token contains the authority's fingerprint.
    ///
    /// # Errors
    /// [`TrustError::ForeignAuthority`] if the token names another authority.
    pub fn for_enrolment(authority_pem: &str, token: &str) -> Result<Self> {
        if certificate::fingerprint(authority_pem)? != token::fingerprint(token)? {
            return Err(TrustError::ForeignAuthority);
        }
        let authorities = vec![certificate::from_pem(authority_pem)?];
        Self::new(None, authorities, Path::new("the authority's certificate"))
    }

    fn read(paths: &ClientPaths) -> Result<Self> {
        let authorities = read_pem(&paths.authority, "the authority's certificate")?;
        let chain = read_pem(&paths.certificate, "a certificate")?;
        let key_pem = files::read(&paths.key)?;
        let key = parse_key(&paths.key, &key_pem)?;
        let dates = dates_of_first(&paths.certificate, &chain)?;
        let mut made =
            Self::new(Some((chain, key)), authorities, &paths.authority).map_err(|e| match e {
                TrustError::Tls(e) => mismatch(e, &paths.certificate, &paths.key),
                other => other,
            })?;
        made.dates = Some(dates);
        made.key_pem = Some(key_pem);
        Ok(made)
    }

    fn new(
        own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
        authorities: Vec<CertificateDer<'static>>,
        authority_path: &Path,
    ) -> Result<Self> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots(authority_path, &authorities)?);
        let (certificates, mut config) = match own {
            Some((chain, key)) => {
                let config = builder.with_client_auth_cert(chain.clone(), key)?;
                (chain, config)
            }
            None => (Vec::new(), builder.with_no_client_auth()),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            certificates,
            key_pem: None,
            authorities,
            config: Arc::new(config),
            dates: None,
        })
    }

    /// The client's certificate, followed by those of intermediate authorities; empty for enrolment.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// The client's private key in the PEM form of its file; `None` for enrolment.
    pub fn key_pem(&self) -> Option<&[u8]> {
        self.key_pem.as_deref()
    }

    /// Authorities that the client trusts.
    pub fn authorities(&self) -> &[CertificateDer<'static>] {
        &self.authorities
    }

    /// TLS configuration for callers that use rustls themselves.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// Returns the settings of [`Self::config`], except that servers are rejected if one of these lists
    /// revokes their certificate. A list is ignored if no authority in [`Self::authorities`] signed it.
    ///
    /// # Errors
    /// [`TrustError::ReceivedList`] if rustls cannot use a list.
    pub fn config_by_lists(
        &self,
        lists: Vec<CertificateRevocationListDer<'static>>,
    ) -> Result<Arc<ClientConfig>> {
        if lists.is_empty() {
            return Ok(self.config());
        }
        let mut config = ClientConfig::clone(&self.config);
        let verifier = self.verifier(lists)?;
        config.dangerous().set_certificate_verifier(verifier); // stricter than the verifier that it replaces
        Ok(Arc::new(config))
    }

    /// Verifies a server's certificates again in the same way as the handshake, but with these lists and the
    /// present time. Long-lived connections need this.
    ///
    /// # Errors
    /// [`TrustError::Refused`] with the reason; [`TrustError::ReceivedList`] if rustls cannot use a list.
    pub fn recheck_server(
        &self,
        certificates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        lists: Vec<CertificateRevocationListDer<'static>>,
        now: SystemTime,
    ) -> Result<()> {
        let Some((end_entity, intermediates)) = certificates.split_first() else {
            return Err(TrustError::Refused(rustls::Error::NoCertificatesPresented));
        };
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(since_1970);
        self.verifier(lists)?
            .verify_server_cert(end_entity, intermediates, name, &[], now)
            .map(|_| ())
            .map_err(TrustError::Refused)
    }

    fn verifier(
        &self,
        lists: Vec<CertificateRevocationListDer<'static>>,
    ) -> Result<Arc<WebPkiServerVerifier>> {
        let authorities = Path::new("the authority's certificate");
        let roots = roots(authorities, &self.authorities)?;
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .with_crls(lists)
            .only_check_end_entity_revocation()
            .allow_unknown_revocation_status()
            .build()
            .map_err(|e| crate::received_lists::rejected(e.to_string()))
    }

    /// Validity of the client's own certificate; `None` for enrolment.
    pub fn dates(&self) -> Option<Dates> {
        self.dates
    }
}

/// A client's credentials. When their files are replaced, they are loaded again without a restart.
pub struct ClientTrust {
    paths: ClientPaths,
    watched: WatchedFiles<Credentials>,
}

impl ClientTrust {
    /// Loads the credentials from the files.
    pub fn load(paths: &ClientPaths) -> Result<Arc<Self>> {
        let files = vec![
            paths.certificate.clone(),
            paths.key.clone(),
            paths.authority.clone(),
        ];
        Ok(Arc::new(Self {
            watched: WatchedFiles::load(files, || Credentials::read(paths))?,
            paths: paths.clone(),
        }))
    }

    /// Credentials for connecting. If a client keeps settings made from them (like a `ureq::Agent`), it must
    /// make new settings when [`Self::generation`] changes.
    pub fn credentials(&self) -> Arc<Credentials> {
        self.watched.get()
    }

    /// Reads the files again if one of them has changed, and returns true in this case; see
    /// [`ServerTrust::reload_if_changed`](crate::ServerTrust::reload_if_changed).
    pub fn reload_if_changed(&self) -> Result<bool> {
        self.watched
            .reload_if_changed(|| Credentials::read(&self.paths))
    }

    /// Number of reloads so far.
    pub fn generation(&self) -> u64 {
        self.watched.generation()
    }

    /// Paths of the files.
    pub fn paths(&self) -> &ClientPaths {
        &self.paths
    }
}
