//! The collector's side of a connection.

use crate::watched::{Watched, parse_pem, read_pem};
use crate::{Dates, Result, TrustError, certificate, files, provider};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

/// The files of a server, all in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPaths {
    /// Its certificate, followed by those between it and the authority, if any.
    pub certificate: PathBuf,
    /// Its private key: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub key: PathBuf,
    /// The authority that clients' certificates lead to; several, one after another.
    pub authority: PathBuf,
    /// The authority's revocation list; several, one after another. Each must be signed by one of
    /// `authority`, and each authority that signs clients' certificates must have one: without, they
    /// are refused.
    pub revoked: Option<PathBuf>,
}

/// What is made of the files at one time.
struct Loaded {
    config: Arc<ServerConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
    dates: Dates,
}

/// The server's certificate, and whom it trusts: follows its files without a restart.
pub struct ServerTrust {
    paths: ServerPaths,
    anonymous: bool,
    watched: Watched<Loaded>,
}

impl ServerTrust {
    /// Reads the files. Clients without a certificate are refused in the handshake.
    pub fn load(paths: &ServerPaths) -> Result<Arc<Self>> {
        Self::load_as(paths, false)
    }

    /// As [`Self::load`], but clients may come without a certificate, as those do that have yet to
    /// enrol: whoever serves must look at who is there. A certificate that is shown must be good.
    pub fn load_allowing_anonymous(paths: &ServerPaths) -> Result<Arc<Self>> {
        Self::load_as(paths, true)
    }

    fn load_as(paths: &ServerPaths, anonymous: bool) -> Result<Arc<Self>> {
        let mut files = vec![
            paths.certificate.clone(),
            paths.key.clone(),
            paths.authority.clone(),
        ];
        files.extend(paths.revoked.clone());
        Ok(Arc::new(Self {
            watched: Watched::load(files, || read(paths, anonymous))?,
            paths: paths.clone(),
            anonymous,
        }))
    }

    /// The settings for the next connection. Ask for each anew: a reload changes them.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.watched.get().config.clone()
    }

    /// Reads the files again if one has changed; whether it did. Costs four calls of stat(2) otherwise.
    ///
    /// # Errors
    /// Where the new files cannot be used: the old ones stay in use, and nothing more is said until
    /// the files change again.
    pub fn reload_if_changed(&self) -> Result<bool> {
        self.watched
            .reload_if_changed(|| read(&self.paths, self.anonymous))
    }

    /// Goes up by one with each reload. Who keeps it with a connection reads it before
    /// [`Self::config`], lest a reload in between pass for one that the connection was checked by.
    pub fn generation(&self) -> u64 {
        self.watched.generation()
    }

    /// From when until when the server's own certificate is valid.
    pub fn dates(&self) -> Dates {
        self.watched.get().dates
    }

    /// Verifies a client's certificates again, as the handshake did, but with what is revoked and
    /// the time now: for connections that last.
    ///
    /// # Errors
    /// [`TrustError::Refused`] with the reason.
    pub fn recheck(&self, certificates: &[CertificateDer<'_>], now: SystemTime) -> Result<()> {
        let Some((end_entity, intermediates)) = certificates.split_first() else {
            return Err(TrustError::Refused(rustls::Error::NoCertificatesPresented));
        };
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.watched
            .get()
            .verifier
            .verify_client_cert(
                end_entity,
                intermediates,
                UnixTime::since_unix_epoch(since_1970),
            )
            .map(|_| ())
            .map_err(TrustError::Refused)
    }
}

fn read(paths: &ServerPaths, anonymous: bool) -> Result<Loaded> {
    let chain: Vec<CertificateDer<'static>> = read_pem(&paths.certificate, "a certificate")?;
    let key = parse_key(&paths.key, &files::read(&paths.key)?)?;
    let authorities = read_pem(&paths.authority, "the authority's certificate")?;
    let mut builder = WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots(&paths.authority, &authorities)?),
        provider(),
    );
    if let Some(path) = &paths.revoked {
        let lists = read_pem(path, "the authority's revocation list")?;
        check_lists(path, &lists, &authorities)?;
        // Only the clients' own certificates are looked up: somebody else's authority may keep no
        // list of its intermediates. A list out of date still counts (rustls' default): a collector
        // that locks its fleet out because nobody renewed a file loses more than it protects.
        builder = builder.with_crls(lists).only_check_end_entity_revocation();
    }
    if anonymous {
        builder = builder.allow_unauthenticated();
    }
    let verifier = builder.build().map_err(|e| TrustError::Content {
        path: paths.revoked.clone().unwrap_or_default(),
        wanted: "the authority's revocation list",
        reason: e.to_string(),
    })?;
    let dates = dates_of_first(&paths.certificate, &chain)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier.clone())
        .with_single_cert(chain, key)
        .map_err(|e| mismatch(e, &paths.certificate, &paths.key))?;
    // A resumed session would not be verified anew; a full handshake costs a millisecond.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Loaded {
        config: Arc::new(config),
        verifier,
        dates,
    })
}

/// A list that no authority here has signed would make every client's certificate fail.
fn check_lists(
    path: &Path,
    lists: &[CertificateRevocationListDer<'_>],
    authorities: &[CertificateDer<'_>],
) -> Result<()> {
    let authorities = authorities
        .iter()
        .map(certificate::parse)
        .collect::<Result<Vec<_>>>()?;
    for list in lists {
        let (_, list) =
            CertificateRevocationList::from_der(list).map_err(|e| TrustError::Content {
                path: path.to_owned(),
                wanted: "the authority's revocation list",
                reason: e.to_string(),
            })?;
        let signed = |authority: &X509Certificate<'_>| {
            authority.subject() == list.issuer()
                && list.verify_signature(authority.public_key()).is_ok()
        };
        if !authorities.iter().any(signed) {
            return Err(TrustError::ForeignRevocations(path.to_owned()));
        }
    }
    Ok(())
}

pub(crate) fn roots(path: &Path, authorities: &[CertificateDer<'static>]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots
            .add(authority.clone())
            .map_err(|e| TrustError::Content {
                path: path.to_owned(),
                wanted: "the authority's certificate",
                reason: e.to_string(),
            })?;
    }
    Ok(roots)
}

pub(crate) fn parse_key(path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>> {
    let mut keys = parse_pem(path, bytes, "a private key that is not encrypted")?;
    Ok(keys.swap_remove(0)) // at least one is there
}

pub(crate) fn dates_of_first(path: &Path, chain: &[CertificateDer<'_>]) -> Result<Dates> {
    let dates = chain
        .first()
        .ok_or_else(|| TrustError::Certificate("there is none".to_owned()))
        .and_then(|c| Ok(certificate::dates_of(&certificate::parse(c)?)));
    dates.map_err(|e| TrustError::Content {
        path: path.to_owned(),
        wanted: "a certificate",
        reason: e.to_string(),
    })
}

pub(crate) fn mismatch(error: rustls::Error, certificate: &Path, key: &Path) -> TrustError {
    match error {
        rustls::Error::InconsistentKeys(_) => TrustError::Mismatch {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        },
        other => TrustError::Tls(other),
    }
}
