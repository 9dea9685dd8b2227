//! Examination of the memory server: whether it can lend.

use super::{Patient, recruiters};
use crate::checks::certificate::Files;
use crate::checks::{lending, limits, socket};
use crate::command::within;
use crate::daemon::Daemon;
use crate::finding::Finding;
use crate::place::quoted;
use gleaner_paging::ask;
use gleaner_schemas::lending::{OwnerCommand, OwnerReply};
use gleaner_trust::ClientPaths;
use std::path::PathBuf;
use std::time::Duration;

/// Time limit for the memory server's answer. Only a reclaim in progress delays the answer.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn examine(patient: &Patient<'_>) -> Option<Vec<Finding>> {
    let (place, settings) = (patient.place, &patient.settings);
    let path = settings
        .path("socket")
        .unwrap_or_else(|| place.runtime("memoryd.sock"));
    let state = super::state(place, patient.daemon, settings);
    if !patient.is_used(path.exists() || state.exists()) {
        return None;
    }
    let (mut findings, _) = patient.common();
    let call = socket::read(&path);
    let is_running =
        call == socket::Call::Answered || patient.process.is_some() || patient.unit.is_active();
    findings.extend(patient.running(is_running));
    let recruiters = settings.list("recruiters");
    if is_running {
        findings.push(socket::judge(&call, &path, &place.me, &patient.start()));
        findings.extend(lends(patient, &path, &recruiters));
    }
    findings.push(patient.folder(&state));
    if let Some(process) = &patient.process {
        let program = patient
            .program_path()
            .map_or_else(|| patient.daemon.program().to_owned(), quoted);
        let by_hand = format!("sudo setcap cap_ipc_lock,cap_sys_nice+ep {program}");
        findings.extend(limits::judge_memoryd(
            process,
            &patient.restore().unwrap_or(by_hand),
        ));
    }
    findings.extend(ways(patient, &recruiters));
    Some(findings)
}

fn lends(patient: &Patient<'_>, socket: &std::path::Path, recruiters: &[String]) -> Vec<Finding> {
    let path = socket.to_owned();
    match within(PATIENCE, move || ask::memoryd(&path, OwnerCommand::Status)) {
        Some(Ok(OwnerReply::Lending(lending))) => {
            let remedies = lending::LendingRemedies {
                agent: patient.start_of(Daemon::Agent),
                memoryd: patient.start(),
                pages: serve_pages(patient, recruiters),
            };
            let grants_leases = patient.settings.text("grants_leases").as_deref() != Some("false");
            lending::judge(&lending, recruiters, grants_leases, &remedies)
        }
        _ => Vec::new(), // another finding says why the socket does not answer
    }
}

/// Command that writes a drop-in with which pages are served; its name sorts after all other drop-ins. If a
/// recruiter is on another machine, pages are served on every address, otherwise only to clients on this
/// machine.
fn serve_pages(patient: &Patient<'_>, recruiters: &[String]) -> String {
    let is_far = recruiters.iter().any(|url| url.starts_with("https://"));
    let address = if is_far { "0.0.0.0" } else { "127.0.0.1" };
    let file = patient.place.configuration_of(Daemon::Memoryd);
    let folder = file.with_extension("d");
    format!(
        "sudo mkdir -p {} && echo 'listen = \"{address}:10809\"' | sudo tee {} && {}",
        quoted(&folder),
        quoted(&folder.join("zz-pages.toml")),
        patient.start()
    )
}

/// Findings on the connection to each recruiter. The certificate is the configured one, or else the one from
/// this host's enrolment.
fn ways(patient: &Patient<'_>, recruiters: &[String]) -> Vec<Finding> {
    let (place, settings) = (patient.place, &patient.settings);
    let enrolled = |name: &str| place.state("ship").join(name);
    let named = |key: &str| settings.path(key);
    let certificate = named("certificate").unwrap_or_else(|| enrolled("host.pem"));
    let files = Files::Host(ClientPaths {
        key: named("key").unwrap_or_else(|| certificate.clone()),
        certificate,
        authority: named("authority").unwrap_or_else(|| enrolled("authority.crt")),
    });
    let enrol = patient.enrol(&collector(&enrolled("collector.url")));
    let is_own = named("certificate").is_none();
    recruiters::ways(patient, recruiters, Some(&files), &enrol, is_own)
}

/// URL of the collector with which this host is enrolled, from the file that the enrolment wrote.
fn collector(file: &PathBuf) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    match text.trim() {
        "" => "https://COLLECTOR:7443".to_owned(),
        url => url.to_owned(),
    }
}
