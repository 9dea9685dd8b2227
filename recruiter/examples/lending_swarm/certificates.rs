//! TLS configurations with the hosts' certificates, which are made once and stored beside the authority.

use crate::host_id;
use gleaner_trust::{AUTHORITY_DAYS, Authority, ClientPaths, ClientTrust, Role};
use rustls::ClientConfig;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn of_hosts(pki: &Path, count: usize) -> Vec<Arc<ClientConfig>> {
    if !pki.join("authority.crt").exists() {
        let authority = Authority::init(pki, "swarm", AUTHORITY_DAYS).unwrap();
        let names = vec!["localhost".to_owned()];
        let issued = authority.issue(&Role::Recruiter { names }, 365).unwrap();
        let path = |ending: &str| pki.join(format!("recruiter.{ending}"));
        issued.write(&path("crt"), &path("key")).unwrap();
    }
    let authority = Authority::open(pki).unwrap();
    let folder = pki.join("swarm");
    std::fs::create_dir_all(&folder).unwrap();
    let path = |n: usize, ending: &str| folder.join(format!("{n}.{ending}"));
    (0..count)
        .map(|n| {
            if n % 1000 == 0 {
                eprintln!("certificates: {n} of {count}");
            }
            if !path(n, "crt").exists() {
                let host_id = host_id(n);
                let issued = authority.issue(&Role::Host { host_id }, 90).unwrap();
                std::fs::write(path(n, "key"), issued.key_pem).unwrap();
                std::fs::write(path(n, "crt"), issued.certificate_pem).unwrap();
            }
            let paths = ClientPaths {
                certificate: path(n, "crt"),
                key: path(n, "key"),
                authority: pki.join("authority.crt"),
            };
            ClientTrust::load(&paths).unwrap().credentials().config()
        })
        .collect()
}
