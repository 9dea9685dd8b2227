//! Examination of the commons: FUSE, its catalogs and its mounts.

use super::Patient;
use crate::checks::commons;
use crate::finding::Finding;
use crate::message::Message;
use crate::user::User;
use std::path::Path;

pub(super) fn examine(patient: &Patient<'_>) -> Option<Vec<Finding>> {
    // The installed package alone does not count: it has an empty configuration and does not start the daemon.
    let is_used = patient.is_asked
        || patient.unit.is_wanted()
        || patient.process.is_some()
        || !patient.settings.table.is_empty();
    if !is_used {
        return None;
    }
    let (mut findings, _) = patient.common();
    let is_running = patient.process.is_some() || patient.unit.is_active();
    findings.extend(patient.running(is_running));
    findings.push(commons::judge_fuse(Path::new("/dev/fuse").exists()));
    // Root starts the daemon, which becomes this user.
    let configured = patient.settings.text("user");
    let user = configured.and_then(|name| User::named(&name));
    let user = user.unwrap_or_else(|| patient.user.clone());
    let mut unseen = 0;
    for mount in commons::configured(&patient.settings.table) {
        match commons::judge_catalog(&user, &mount.catalog) {
            Some(finding) => findings.push(finding),
            None => unseen += 1,
        }
        let state = commons::read(&mount.folder);
        findings.push(commons::judge_mount(
            &state,
            &mount.folder,
            &patient.start(),
        ));
    }
    if unseen > 0 {
        let text = format!("this user may not look at {unseen} catalogs");
        let finding = Finding::of(Message::FolderUnseen, "catalog", text);
        findings.push(finding.remedy("sudo gleaner doctor commons"));
    }
    Some(findings)
}
