//! Examination of the shipper: whether the collector receives the trace.

use super::{Patient, database, enrolled};
use crate::checks::certificate::{self, Files};
use crate::checks::{network, trace};
use crate::daemon::Daemon;
use crate::finding::Finding;
use crate::user::{Access, FileUse, access};
use gleaner_trust::ClientPaths;
use std::path::Path;
use std::time::SystemTime;

/// Default interval between batches, in ms.
const INTERVAL_MS: i64 = 90_000;

pub(super) fn examine(patient: &Patient<'_>) -> Option<Vec<Finding>> {
    let (place, settings) = (patient.place, &patient.settings);
    let folder = enrolled(place, settings);
    let configured = settings.text("ship.collector");
    let url_file = folder.join("collector.url");
    let is_hidden = !matches!(
        access(&place.me, &url_file, &[FileUse::Read]),
        Access::Yes | Access::Missing
    );
    let told = std::fs::read_to_string(&url_file)
        .ok()
        .map(|text| text.trim().to_owned());
    let Some(url) = configured.clone().or(told) else {
        return is_hidden.then(|| vec![unseen(&folder)]);
    };
    let (mut findings, is_sound) = patient.common();
    // The configuration is that of the agent, and the agent's examination reports it.
    findings.retain(|finding| finding.subject != "configuration");
    let is_running = patient.process.is_some() || patient.unit.is_active();
    findings.extend(patient.running(is_running));
    let file = |key: &str, name: &str| settings.path(key).unwrap_or_else(|| folder.join(name));
    let files = Files::Host(ClientPaths {
        certificate: file("ship.certificate", "host.pem"),
        key: file("ship.key", "host.pem"),
        authority: file("ship.authority", "authority.crt"),
    });
    let database = database(place, settings);
    let trace = patient
        .program_path()
        .filter(|_| is_sound)
        .and_then(|program| trace::read(program, &database).ok());
    let mut credentials = None;
    if url.starts_with("https://") {
        let (found, good) = certificate::read(&files, &patient.user, &place.me);
        credentials = good;
        let enrol = patient.enrol(&url);
        let renew = settings
            .text("ship.certificate")
            .is_none()
            .then_some(enrol.as_str());
        findings.extend(certificate::judge(
            &found,
            &files,
            &patient.user,
            renew,
            SystemTime::now(),
        ));
    }
    findings.extend(reach(
        patient,
        &url,
        credentials.map(|good| good.config()),
        trace.as_ref(),
    ));
    if let Some(trace) = &trace {
        let interval_ms = settings.length("ship.batch_interval");
        let interval_ms = interval_ms.map_or(INTERVAL_MS, |length| {
            i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
        });
        let try_now = format!("sudo {} --once", patient.start_by_hand());
        findings.push(trace::judge_shipping(trace, interval_ms, &try_now));
    }
    Some(findings)
}

/// Requests the collector's mark of this host's trace. A collector answers this request only for hosts that
/// it admits.
fn reach(
    patient: &Patient<'_>,
    url: &str,
    config: Option<std::sync::Arc<rustls::ClientConfig>>,
    trace: Option<&trace::Trace>,
) -> Vec<Finding> {
    let nobody = || "0".repeat(32);
    let host_id = trace
        .and_then(|trace| trace.host_id.clone())
        .or_else(gleaner_trust::this_host_id);
    let database_id = trace.and_then(|trace| trace.database_id.clone());
    let path = format!(
        "/v1/mark?host={}&database={}",
        host_id.unwrap_or_else(nobody),
        database_id.unwrap_or_else(nobody)
    );
    let way = network::read(url, config, &path);
    network::judge(
        &way,
        &network::NetworkRemedies {
            server: "collector",
            start: patient.start_of(Daemon::Collector),
            enrol: patient.enrol(url),
            address: patient.edit(),
        },
    )
}

fn unseen(folder: &Path) -> Finding {
    let found = format!("this user may not look into {}", folder.display());
    Finding::of(crate::message::Message::CertificateUnseen, "ship", found)
        .remedy("sudo gleaner doctor ship")
}
