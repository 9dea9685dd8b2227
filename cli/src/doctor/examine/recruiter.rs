//! The recruiter: do hosts offer memory?

use super::Patient;
use crate::doctor::checks::certificate::{self, Files};
use crate::doctor::checks::{limits, recruiter};
use crate::doctor::finding::Finding;
use std::time::SystemTime;

const LOCAL: &str = "127.0.0.1:7484";
const CONNECTIONS_LIMIT: u64 = 20_000;

pub(super) fn examine(patient: &Patient<'_>) -> Option<Vec<Finding>> {
    if !patient.is_used(false) {
        return None;
    }
    let settings = &patient.settings;
    let (mut findings, _) = patient.common();
    let health = patient
        .local(LOCAL)
        .map(|local| (recruiter::read(&local), local));
    let answers = health.as_ref().is_some_and(|(health, _)| health.is_ok());
    let is_running = answers || patient.process.is_some() || patient.unit.is_active();
    findings.extend(patient.running(is_running));
    if let Some((health, local)) = health.filter(|_| is_running) {
        findings.push(recruiter::judge(&health, &local, &patient.start()));
    }
    if let Some(paths) = patient.server_files("recruiter") {
        let files = Files::Server(paths);
        let (found, _) = certificate::read(&files, &patient.user, &patient.place.me);
        let issue = patient.issue(&found.names);
        findings.extend(certificate::judge(
            &found,
            &files,
            &patient.user,
            issue.as_deref(),
            SystemTime::now(),
        ));
    }
    if let Some(process) = &patient.process {
        let connections_limit = settings
            .number("connections_limit")
            .unwrap_or(CONNECTIONS_LIMIT);
        findings.push(limits::judge_server(
            process,
            connections_limit,
            patient.restore().as_deref(),
        ));
    }
    Some(findings)
}
