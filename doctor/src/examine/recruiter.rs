//! Examination of the recruiter: whether hosts offer memory.

use super::Patient;
use crate::checks::recruiter;
use crate::finding::Finding;

const LOCAL: &str = "127.0.0.1:7484";

pub(super) fn examine(patient: &Patient<'_>) -> Option<Vec<Finding>> {
    if !patient.is_used(false) {
        return None;
    }
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
    findings.extend(patient.server_certificate("recruiter"));
    findings.extend(patient.descriptors());
    Some(findings)
}
