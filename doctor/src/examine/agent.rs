//! Examination of the agent: whether it records a trace.

use super::{Patient, database};
use crate::checks::{disk, socket, trace};
use crate::finding::Finding;
use crate::user::{Access, FileUse, Node, access};

/// Maximum size of the database, unless the configuration sets another.
const DATABASE_LIMIT_BYTES: u64 = 512 << 20;
/// Maximum space that one transaction needs.
const LEAST_BYTES: u64 = 8 << 20;

pub(super) fn examine(patient: &Patient<'_>) -> Option<Vec<Finding>> {
    let (place, settings) = (patient.place, &patient.settings);
    let database = database(place, settings);
    let readable = access(&place.me, &database, &[FileUse::Read]);
    if !patient.is_used(readable != Access::Missing) {
        return None;
    }
    let (mut findings, is_sound) = patient.common();
    let start = patient.start();
    let told = patient
        .program_path()
        .filter(|_| is_sound)
        .map(|program| trace::read(program, &database));
    let is_running = match &told {
        Some(Ok(trace)) => trace.is_running,
        _ => patient.process.is_some() || patient.unit.is_active(),
    };
    findings.extend(patient.running(is_running));
    if let Some(told) = &told {
        let (may_read, is_there) = (
            readable == Access::Yes || readable == Access::ReadOnly,
            readable != Access::Missing,
        );
        findings.extend(trace::judge(
            told,
            &database,
            may_read || !is_there,
            is_there,
            &start,
        ));
        let grant = patient.restore().unwrap_or_else(|| start.clone());
        findings.extend(
            told.iter()
                .flat_map(|trace| trace::judge_missing_values(trace, &grant)),
        );
    }
    findings.extend(trace::judge_mode(
        &database,
        Node::of(&database).ok().map(|node| node.mode),
    ));
    let listens_at = match settings.text("socket").as_deref() {
        Some("none") => None,
        Some(path) => Some(path.into()),
        None => Some(place.runtime("agent.sock")),
    };
    if let Some(path) = listens_at.filter(|_| is_running) {
        findings.push(socket::judge(
            &socket::read(&path),
            &path,
            &place.me,
            &start,
        ));
    }
    let folder = super::folder_of(&database);
    findings.push(patient.folder(&folder));
    let limit_bytes = settings
        .bytes("database_limit")
        .unwrap_or(DATABASE_LIMIT_BYTES);
    let has_bytes = told
        .and_then(Result::ok)
        .map_or(0, |trace| trace.database_bytes);
    let need = disk::Need {
        least_bytes: LEAST_BYTES,
        enough_bytes: limit_bytes.saturating_sub(has_bytes).max(LEAST_BYTES),
    };
    findings.extend(disk::judge(disk::read(&folder), need, &folder));
    Some(findings)
}
