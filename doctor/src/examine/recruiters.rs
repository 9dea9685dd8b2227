//! Checks of connections to recruiters, for memory servers and clerks.

use super::Patient;
use crate::checks::certificate::{self, Files};
use crate::checks::network;
use crate::daemon::Daemon;
use crate::finding::Finding;
use std::thread;
use std::time::SystemTime;

/// Checks the connections to all recruiters at the same time, with these certificate files. `certify` is the
/// command that issues a new certificate. `is_issued_so`: that command made the present files.
pub(super) fn ways(
    patient: &Patient<'_>,
    recruiters: &[String],
    files: Option<&Files>,
    certify: &str,
    is_issued_so: bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut config = None;
    let is_far = recruiters.iter().any(|url| url.starts_with("https://"));
    if let Some(files) = files.filter(|_| is_far) {
        let (found, good) = certificate::read(files, &patient.user, &patient.place.me);
        config = good.map(|good| good.config());
        findings.extend(certificate::judge(
            &found,
            files,
            &patient.user,
            is_issued_so.then_some(certify),
            SystemTime::now(),
        ));
    }
    let remedies = || network::NetworkRemedies {
        server: "recruiter",
        start: patient.start_of(Daemon::Recruiter),
        enrol: certify.to_owned(),
        address: patient.edit(),
    };
    let ways = thread::scope(|scope| {
        let each = recruiters.iter().map(|url| {
            let config = config.clone();
            scope.spawn(move || network::read(url, config, "/healthz"))
        });
        let each: Vec<_> = each.collect();
        each.into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect::<Vec<_>>()
    });
    findings.extend(ways.iter().flat_map(|way| network::judge(way, &remedies())));
    findings
}
