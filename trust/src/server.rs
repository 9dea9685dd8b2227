//! Certificates and TLS settings of a server.

use crate::received_lists::{self, ReceivedLists, RevocationSummary};
use crate::watched_files::{WatchedFiles, parse_pem, read_pem};
use crate::{Dates, Result, TrustError, certificate, files, provider};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

/// Paths of a server's files, all in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPaths {
    /// File of the server's certificate. If intermediate authorities issued it, their certificates follow it
    /// in the file.
    pub certificate: PathBuf,
    /// File of the server's private key: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub key: PathBuf,
    /// File with one or more authorities. A client's certificate must be issued by one of them, directly or
    /// through intermediate authorities.
    pub authority: PathBuf,
    /// File with the authority's revocation list, or with several lists. One of the authorities in
    /// `authority` must have signed each list. Each authority that signs clients' certificates needs a list:
    /// without one, its clients are rejected.
    pub revocation_list: Option<PathBuf>,
}

/// Settings made from the files at the last reload.
struct LoadedSettings {
    config: Arc<ServerConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    dates: Dates,
}

/// Kinds of clients that a server admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clients {
    /// Clients with a certificate, checked with the revocation lists of a file.
    Certified,
    /// Clients with a valid certificate, and clients without any certificate.
    Anonymous,
    /// Clients with a certificate, checked with received revocation lists. If no list of an authority was
    /// received, none of its certificates counts as revoked.
    ByReceivedLists,
}

/// A server's certificate, and the authorities whose clients it accepts. When their files are replaced, they
/// are loaded again without a restart.
pub struct ServerTrust {
    paths: ServerPaths,
    clients: Clients,
    received: Mutex<ReceivedLists>,
    watched: WatchedFiles<LoadedSettings>,
}

impl ServerTrust {
    /// Loads the files. Clients without a certificate are rejected in the handshake.
    pub fn load(paths: &ServerPaths) -> Result<Arc<Self>> {
        Self::load_as(paths, Clients::Certified)
    }

    /// Loads like [`Self::load`], but also accepts clients without a certificate, such as hosts before
    /// enrolment. The server must check the identity of each caller. If a client shows a certificate, the
    /// certificate must be valid.
    pub fn load_allowing_anonymous(paths: &ServerPaths) -> Result<Arc<Self>> {
        Self::load_as(paths, Clients::Anonymous)
    }

    /// Loads like [`Self::load`], but takes revocation lists from [`Self::receive`] instead of a file.
    /// [`ServerPaths::revocation_list`] is not read.
    pub fn load_receiving(paths: &ServerPaths) -> Result<Arc<Self>> {
        let revocation_list = None;
        let paths = ServerPaths {
            revocation_list,
            ..paths.clone()
        };
        Self::load_as(&paths, Clients::ByReceivedLists)
    }

    fn load_as(paths: &ServerPaths, clients: Clients) -> Result<Arc<Self>> {
        let mut files = vec![
            paths.certificate.clone(),
            paths.key.clone(),
            paths.authority.clone(),
        ];
        files.extend(paths.revocation_list.clone());
        Ok(Arc::new(Self {
            watched: WatchedFiles::load(files, || read(paths, clients, &ReceivedLists::default()))?,
            paths: paths.clone(),
            clients,
            received: Mutex::default(),
        }))
    }

    /// Takes in revocation lists in PEM form, which any sender may have sent. A list is accepted if an
    /// authority of this server signed it and it is newer than the present list. Returns true if a list was
    /// accepted; it then applies to new connections and to [`Self::recheck`].
    ///
    /// # Errors
    /// [`TrustError::ReceivedList`]: the lists are rejected, and nothing changes. [`TrustError::Io`] and
    /// others: the server's own files are unusable now. The lists are stored in this case, and apply once the
    /// files have changed.
    pub fn receive(&self, pem: &str) -> Result<bool> {
        let authorities = read_pem(&self.paths.authority, "the authority's certificate")?;
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = received.with(pem, &authorities)? else {
            return Ok(false);
        };
        // rustls cannot use every list, for instance one with unknown critical extensions. Such a list is
        // rejected here, since it would make every later reload fail.
        let lists = next.of(&authorities);
        verifier(&self.paths, self.clients, &authorities, lists)
            .map_err(|e| received_lists::rejected(e.to_string()))?;
        *received = next;
        self.watched
            .remake(|| read(&self.paths, self.clients, &received))?;
        Ok(true)
    }

    /// PEM text of the revocation lists in force; empty if there are none.
    pub fn revocations_pem(&self) -> String {
        received_lists::to_pem(&self.watched.get().lists)
    }

    /// Revocation lists in force.
    pub fn revocations(&self) -> Vec<CertificateRevocationListDer<'static>> {
        self.watched.get().lists.clone()
    }

    /// Summary of the revocation lists in force; `None` if there are none.
    pub fn revocation_summary(&self) -> Option<RevocationSummary> {
        received_lists::summary(&self.watched.get().lists)
    }

    /// Settings for the next connection. Call this for each connection, since a reload changes the settings.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.watched.get().config.clone()
    }

    /// Reads the files again if one of them has changed, and returns true in this case. Otherwise it only
    /// costs four calls of stat(2).
    ///
    /// # Errors
    /// The new files cannot be used: the old settings stay in use. The error is not repeated until the files
    /// change again.
    pub fn reload_if_changed(&self) -> Result<bool> {
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        self.watched
            .reload_if_changed(|| read(&self.paths, self.clients, &received))
    }

    /// Number of reloads so far. If you store it with a connection, read it before [`Self::config`].
    /// Otherwise a reload between the two calls would seem to be the one with whose settings the connection
    /// was checked.
    pub fn generation(&self) -> u64 {
        self.watched.generation()
    }

    /// Validity of the server's own certificate.
    pub fn dates(&self) -> Dates {
        self.watched.get().dates
    }

    /// Verifies a client's certificates again in the same way as the handshake, but with the present
    /// revocation lists and the present time. Long-lived connections need this.
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

fn read(paths: &ServerPaths, clients: Clients, received: &ReceivedLists) -> Result<LoadedSettings> {
    let chain: Vec<CertificateDer<'static>> = read_pem(&paths.certificate, "a certificate")?;
    let key = parse_key(&paths.key, &files::read(&paths.key)?)?;
    let authorities = read_pem(&paths.authority, "the authority's certificate")?;
    let lists = match &paths.revocation_list {
        Some(path) => {
            let lists = read_pem(path, "the authority's revocation list")?;
            check_lists(path, &lists, &authorities)?;
            lists
        }
        None => received.of(&authorities),
    };
    let verifier = verifier(paths, clients, &authorities, lists.clone())?;
    let dates = dates_of_first(&paths.certificate, &chain)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier.clone())
        .with_single_cert(chain, key)
        .map_err(|e| mismatch(e, &paths.certificate, &paths.key))?;
    // Sessions are not resumed, since the certificate would not be verified again. A full handshake costs a
    // millisecond.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(LoadedSettings {
        config: Arc::new(config),
        verifier,
        lists,
        dates,
    })
}

fn verifier(
    paths: &ServerPaths,
    clients: Clients,
    authorities: &[CertificateDer<'static>],
    lists: Vec<CertificateRevocationListDer<'static>>,
) -> Result<Arc<dyn ClientCertVerifier>> {
    let mut builder = WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots(&paths.authority, authorities)?),
        provider(),
    );
    if !lists.is_empty() {
        // Only the clients' own certificates are looked up in the lists: a foreign authority may have no list
        // for its intermediate authorities. An outdated list still counts, which is the default of rustls. It
        // would do more harm if a collector locked out its whole fleet because nobody renewed a file.
        builder = builder.with_crls(lists).only_check_end_entity_revocation();
    }
    match clients {
        Clients::Certified => {}
        Clients::Anonymous => builder = builder.allow_unauthenticated(),
        Clients::ByReceivedLists => builder = builder.allow_unknown_revocation_status(),
    }
    builder.build().map_err(|e| TrustError::Content {
        path: paths.revocation_list.clone().unwrap_or_default(),
        wanted: "the authority's revocation list",
        reason: e.to_string(),
    })
}

/// Checks that an authority of this server signed each list. Any other list would make every client's
/// certificate fail.
fn check_lists(
    path: &Path,
    lists: &[CertificateRevocationListDer<'_>],
    authorities: &[CertificateDer<'_>],
) -> Result<()> {
    for list in lists {
        let (_, list) =
            CertificateRevocationList::from_der(list).map_err(|e| TrustError::Content {
                path: path.to_owned(),
                wanted: "the authority's revocation list",
                reason: e.to_string(),
            })?;
        if received_lists::signer(&list, authorities)?.is_none() {
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
    Ok(keys.swap_remove(0)) // a parsed file has at least one key
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
