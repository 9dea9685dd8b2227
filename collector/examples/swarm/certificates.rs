//! TLS settings with the hosts' certificates, which are made once and stored beside the authority.

use crate::host_id;
use gleaner_trust::{AUTHORITY_DAYS, Authority, ClientPaths, ClientTrust, Role};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Certificates of the hosts, which lie in files beside the authority.
pub(crate) struct Certificates {
    folder: PathBuf,
    /// Settings of a connection, except for the host's certificate.
    base: ClientConfig,
}

impl Certificates {
    /// Makes the certificates that are missing, with an authority if there is none.
    pub(crate) fn open(pki: &Path, numbers: Range<usize>) -> Self {
        if !pki.join("authority.crt").exists() {
            let authority = Authority::init(pki, "swarm", AUTHORITY_DAYS).unwrap();
            let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
            let issued = authority.issue(&Role::Collector { names }, 365).unwrap();
            let path = |ending: &str| pki.join(format!("collector.{ending}"));
            issued.write(&path("crt"), &path("key")).unwrap();
        }
        let authority = Authority::open(pki).unwrap();
        if !pki.join("peers.crt").exists() {
            let name = "peers".to_owned();
            let issued = authority.issue(&Role::Reader { name }, 365).unwrap();
            let path = |ending: &str| pki.join(format!("peers.{ending}"));
            issued.write(&path("crt"), &path("key")).unwrap();
        }
        let folder = pki.join("swarm");
        std::fs::create_dir_all(&folder).unwrap();
        for n in numbers.clone() {
            if n % 1000 == 0 {
                eprintln!("certificates: {n} of {}", numbers.end);
            }
            if !file(&folder, n, "crt").exists() {
                let role = Role::Host {
                    host_id: host_id(n),
                };
                let issued = authority.issue(&role, 90).unwrap();
                std::fs::write(file(&folder, n, "key"), issued.key_pem).unwrap();
                std::fs::write(file(&folder, n, "crt"), issued.certificate_pem).unwrap();
            }
        }
        let paths = ClientPaths {
            certificate: file(&folder, numbers.start, "crt"),
            key: file(&folder, numbers.start, "key"),
            authority: pki.join("authority.crt"),
        };
        let first = ClientTrust::load(&paths).unwrap().credentials().config();
        let mut base = ClientConfig::clone(&first);
        base.resumption = Resumption::disabled();
        Self { folder, base }
    }

    /// TLS settings of host number `n`. Hosts share the rest of the settings, but no sessions.
    pub(crate) fn config(&self, n: usize) -> Arc<ClientConfig> {
        let certificate = CertificateDer::from_pem_file(file(&self.folder, n, "crt")).unwrap();
        let key = PrivateKeyDer::from_pem_file(file(&self.folder, n, "key")).unwrap();
        let provider = gleaner_trust::provider();
        let own = CertifiedKey::from_der(vec![certificate], key, &provider).unwrap();
        let mut config = self.base.clone();
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(own));
        Arc::new(config)
    }
}

fn file(folder: &Path, n: usize, ending: &str) -> PathBuf {
    folder.join(format!("{n}.{ending}"))
}
