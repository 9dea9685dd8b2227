//! The processes and files behind one sample.

use super::categories::{FileMemory, ProcessMemory};
use crate::consumers::processes::sum;
use crate::error::Result;
use crate::trace::HostTrace;
use crate::trace::standing::StandingTime;
use gleaner_schemas::findings::ExplainedConsumer;

/// Number of processes, and of files, that are listed.
const MOST_LISTED: usize = 15;

/// The active processes of a sample, and the sum of their memory.
pub(super) fn processes(
    trace: &HostTrace<'_>,
    at: usize,
) -> Result<(Vec<ExplainedConsumer>, ProcessMemory)> {
    let rows = &trace.processes.rows;
    let (names, pids) = (rows.texts("name")?, rows.integers("pid")?);
    let columns = ["anon_bytes", "shmem_bytes", "file_bytes"];
    let [anon, shmem, file] = columns.map(|column| rows.integers(column));
    let (anon, shmem, file) = (anon?, shmem?, file?);
    let mut held = ProcessMemory::default();
    let mut found = Vec::new();
    for (row, sample) in trace.processes.sample_of.iter().enumerate() {
        if *sample != Some(at) {
            continue;
        }
        held.anon_bytes = sum(held.anon_bytes, anon.get(row));
        held.shmem_bytes = sum(held.shmem_bytes, shmem.get(row));
        let parts = [anon, shmem, file].map(|column| column.get(row));
        found.push(ExplainedConsumer {
            name: names.get(row).unwrap_or_default().to_owned(),
            pid: pids.get(row),
            bytes: parts.into_iter().fold(None, sum),
        });
    }
    Ok((largest(found), held))
}

/// The files in use at a sample, and the sum of their cached bytes.
pub(super) fn files(
    trace: &HostTrace<'_>,
    at: usize,
) -> Result<(Vec<ExplainedConsumer>, FileMemory)> {
    let rows = &trace.files.rows;
    let standing = StandingTime::new(trace, trace.files.sample_of.clone());
    let (ids, paths) = (rows.present("file_id")?, rows.texts("path")?);
    let (open, mapped) = (
        rows.integers("open_processes_count")?,
        rows.integers("mapping_processes_count")?,
    );
    let cached = rows.integers("cached_bytes")?;
    let mapped_cached = rows.integers("mapped_cached_bytes")?;
    let mut held = FileMemory::default();
    let mut found = Vec::new();
    for group in rows.groups(&["file_id"])? {
        let mut stands = standing.spans(&group).into_iter();
        let Some((row, _)) = stands.rfind(|(_, span)| span.contains(&at)) else {
            continue;
        };
        if open.get(row).unwrap_or(0) + mapped.get(row).unwrap_or(0) == 0 {
            continue; // no longer in use
        }
        held.cached_bytes = sum(held.cached_bytes, cached.get(row));
        held.mapped_cached_bytes = sum(held.mapped_cached_bytes, mapped_cached.get(row));
        let path = group.iter().rev().find_map(|&row| paths.get(row));
        found.push(ExplainedConsumer {
            name: path.map_or_else(|| ids[row].to_string(), str::to_owned),
            pid: None,
            bytes: cached.get(row),
        });
    }
    Ok((largest(found), held))
}

fn largest(mut found: Vec<ExplainedConsumer>) -> Vec<ExplainedConsumer> {
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    found.truncate(MOST_LISTED);
    found
}
