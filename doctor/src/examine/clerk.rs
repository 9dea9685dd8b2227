//! Examination of the clerk: its device, and whether this host may use the device as swap.

use super::{Patient, recruiters};
use crate::checks::certificate::Files;
use crate::checks::clerk as device;
use crate::checks::{disk, socket};
use crate::finding::Finding;
use crate::message::Message;
use crate::place::quoted;
use gleaner_paging::ask;
use gleaner_trust::ClientPaths;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for the clerk's answer. Only a slow disk delays the answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Default size of the device.
const SIZE_BYTES: u64 = 1 << 30;

pub(super) fn examine(patient: &Patient<'_>) -> Option<Vec<Finding>> {
    let (place, settings) = (patient.place, &patient.settings);
    let at = |key: &str, name: &str| settings.path(key).unwrap_or_else(|| place.runtime(name));
    let sockets = [
        at("listen", "clerk.sock"),
        at("status_socket", "clerk-status.sock"),
    ];
    if !is_used(patient, &sockets) {
        return None;
    }
    let (mut findings, _) = patient.common();
    let attachments = patient.program_path().map(device::attachments);
    let attachments = attachments.unwrap_or_default();
    // `gleaner-clerk attach` starts its own clerk. The service need not run for it.
    let is_optional =
        !patient.unit.is_wanted() && (patient.unit.is_loaded() || !attachments.is_empty());
    if is_optional {
        findings.retain(|finding| finding.message != Some(Message::UnitStopped));
    }
    let calls = [socket::read(&sockets[0]), socket::read(&sockets[1])];
    let answers = calls.contains(&socket::Call::Answered);
    let is_running = answers || patient.process.is_some() || patient.unit.is_active();
    findings.extend(patient.running(is_running || is_optional));
    let said = ask::device(&sockets[1], PATIENCE).ok();
    let said = said.map(|(device, _)| device);
    if is_running {
        for (call, path) in calls.into_iter().zip(&sockets) {
            // Only the clerk's user may connect to the socket: no group would give access.
            let call = match call {
                socket::Call::Denied(_) => socket::Call::Denied(None),
                call => call,
            };
            findings.push(socket::judge(&call, path, &place.me, &patient.start()));
        }
        findings.extend(said.iter().flat_map(device::judge));
    }
    findings.extend(room(patient, is_running));
    if let Some(process) = &patient.process {
        let is_locked = settings.text("lock_memory").as_deref() != Some("false");
        let program = patient
            .program_path()
            .map_or_else(|| patient.daemon.program().to_owned(), quoted);
        let by_hand = format!("sudo setcap cap_ipc_lock,cap_sys_resource+ep {program}");
        let grant = patient.restore().unwrap_or(by_hand);
        findings.extend(device::judge_process(
            process,
            is_locked,
            &patient.edit(),
            &grant,
        ));
    }
    findings.push(device::judge_methods(device::methods(place)));
    let name = patient.daemon.program();
    for attachment in &attachments {
        let device = said.as_ref();
        findings.push(device::judge_attachment(
            attachment,
            &sockets[0],
            device,
            name,
        ));
    }
    findings.extend(sources(patient));
    Some(findings)
}

/// Returns true if the clerk is used on this host. Its installed package alone does not count: it contains an
/// empty configuration and does not start the clerk.
fn is_used(patient: &Patient<'_>, sockets: &[PathBuf]) -> bool {
    patient.is_asked
        || patient.unit.is_wanted()
        || patient.process.is_some()
        || !patient.settings.table.is_empty()
        || sockets.iter().any(|socket| socket.exists())
        || std::fs::read_dir(patient.place.runtime("clerk"))
            .is_ok_and(|mut attachments| attachments.next().is_some())
}

/// Findings on disk space. The clerk allocates the device's copy on disk when it starts.
fn room(patient: &Patient<'_>, is_running: bool) -> Vec<Finding> {
    let settings = &patient.settings;
    let folder = super::state(patient.place, patient.daemon, settings);
    if folder == Path::new("none") {
        return Vec::new();
    }
    let mut findings = vec![patient.folder(&folder)];
    if !is_running {
        let bytes = settings.bytes("size").unwrap_or(SIZE_BYTES);
        let need = disk::Need {
            least_bytes: bytes,
            enough_bytes: bytes,
        };
        findings.extend(disk::judge(disk::read(&folder), need, &folder));
    }
    findings
}

/// Findings on the recruiters from which the clerk borrows.
fn sources(patient: &Patient<'_>) -> Vec<Finding> {
    let settings = &patient.settings;
    let (urls, servers) = (settings.list("recruiters"), settings.list("servers"));
    if urls.is_empty() && servers.is_empty() {
        let found = "neither a recruiter nor a server is configured";
        let finding = Finding::of(Message::NoSource, "recruiters", found);
        return vec![finding.remedy(patient.edit())];
    }
    let files = settings
        .path("certificate")
        .zip(settings.path("authority"))
        .map(|(certificate, authority)| {
            Files::Host(ClientPaths {
                key: settings.path("key").unwrap_or_else(|| certificate.clone()),
                certificate,
                authority,
            })
        });
    // This command is for the authority's machine. Its files must then be copied to this host.
    let issue = format!(
        "sudo {}",
        patient.place.gleaner("pki issue --client NAME -o NAME")
    );
    recruiters::ways(patient, &urls, files.as_ref(), &issue, true)
}
