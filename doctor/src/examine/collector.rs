//! Examination of the collector: whether it collects traces.

use super::Patient;
use crate::checks::certificate;
use crate::checks::{collector, disk};
use crate::finding::Finding;
use crate::place::quoted;
use crate::user::{Access, FileUse, access};

const LOCAL: &str = "127.0.0.1:7480";
const RESERVE_BYTES: u64 = 512 << 20;

pub(super) fn examine(patient: &Patient<'_>) -> Option<Vec<Finding>> {
    let (place, settings) = (patient.place, &patient.settings);
    let data = super::state(place, patient.daemon, settings);
    if !patient.is_used(access(&place.me, &data, &[FileUse::Enter]) != Access::Missing) {
        return None;
    }
    let (mut findings, _) = patient.common();
    let local = patient.local(LOCAL);
    let said = local.map(|local| {
        let url = format!("http://{local}");
        (collector::read(&url), url)
    });
    let answers = said.as_ref().is_some_and(|(said, _)| said.is_ok());
    let is_running = answers || patient.process.is_some() || patient.unit.is_active();
    findings.extend(patient.running(is_running));
    if let Some((said, url)) = said.filter(|_| is_running) {
        let look = format!("sudo {}", place.line(patient.daemon, "status"));
        let invite = match settings.path("pki") {
            Some(pki) => format!("sudo {} --pki {}", place.gleaner("pki token"), quoted(&pki)),
            None => format!("sudo {}", place.gleaner("pki token")),
        };
        let remedies = collector::CollectorRemedies {
            look,
            invite,
            start: patient.start(),
        };
        findings.extend(collector::judge(&said, &url, &remedies));
    }
    findings.extend(patient.server_certificate("collector"));
    if let Some(pki) = settings.path("pki") {
        findings.extend(certificate::judge_authority_folder(&pki));
    }
    findings.push(patient.folder(&data));
    let reserve_bytes = settings.bytes("disk_reserve").unwrap_or(RESERVE_BYTES);
    let need = disk::Need {
        least_bytes: reserve_bytes,
        enough_bytes: reserve_bytes.saturating_mul(2),
    };
    findings.extend(disk::judge(disk::read(&data), need, &data));
    findings.extend(patient.descriptors());
    Some(findings)
}
