//! One Arrow file, written aside, and its entry in the manifest.

use crate::identity::Identities;
use crate::layout;
use crate::manifest::{DatabaseEntry, FileEntry, HostEntry};
use crate::mapped::Mapped;
use crate::{DatasetError, Result};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::record_batch::RecordBatch;
use gleaner_schemas::column::Table;
use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::Range;
use std::path::Path;

/// Rows in a record batch at most: what is decompressed at once.
const BATCH_ROWS: usize = 64 * 1024;
/// Digits of a file's hash in its name: names never repeat.
const NAME_DIGITS: usize = 32;

/// Writes sorted rows of one table and day to `path`, durably.
pub(crate) fn write(
    path: &Path,
    table: &Table,
    date: String,
    rows: &RecordBatch,
) -> Result<FileEntry> {
    let identities = Identities::of(rows).map_err(DatasetError::rows(table.name))?;
    let runs = identities.host_runs();
    write_arrow(path, rows, &runs).map_err(DatasetError::io("write", path))?;

    let written = Mapped::open_staged(path.to_owned())?;
    let mut hosts = Vec::new();
    let mut first_batch = 0;
    for run in runs {
        let batches = run.len().div_ceil(BATCH_ROWS);
        let part = rows.slice(run.start, run.len());
        let part = Identities::of(&part).map_err(DatasetError::rows(table.name))?;
        hosts.push(HostEntry {
            host_id: part.hosts.value(0).to_owned(),
            first_batch,
            batches,
            rows: run.len() as u64,
            blake3: written.part_hash(first_batch, batches)?,
            databases: databases(&part),
        });
        first_batch += batches;
    }
    let hash = written.file_hash();
    let times_ms = identities.times_ms.iter().copied();
    Ok(FileEntry {
        path: format!(
            "{}/{}.arrow",
            layout::folder(table.name, &date),
            &hash[..NAME_DIGITS]
        ),
        table: table.name.to_owned(),
        date,
        rows: rows.num_rows() as u64,
        bytes: written.bytes(),
        blake3: hash,
        footer_blake3: written.footer_hash()?,
        first_time_ms: times_ms.clone().min().unwrap_or_default(),
        last_time_ms: times_ms.max().unwrap_or_default(),
        hosts,
    })
}

/// Record batches cut at the ends of `runs`, each the rows of one host.
fn write_arrow(path: &Path, rows: &RecordBatch, runs: &[Range<usize>]) -> io::Result<()> {
    let file = BufWriter::new(File::create(path)?);
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD));
    let mut writer = options
        .and_then(|options| FileWriter::try_new_with_options(file, rows.schema_ref(), options))
        .map_err(to_io)?;
    for run in runs {
        for start in run.clone().step_by(BATCH_ROWS) {
            let length = BATCH_ROWS.min(run.end - start);
            writer.write(&rows.slice(start, length)).map_err(to_io)?;
        }
    }
    let file = writer.into_inner().map_err(to_io)?.into_inner();
    file.map_err(io::IntoInnerError::into_error)?.sync_all()
}

fn to_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

/// Bounds of the records of each database in a host's rows.
fn databases(part: &Identities<'_>) -> Vec<DatabaseEntry> {
    let ranges = part.sequence_ranges().into_iter();
    let entries = ranges.map(|((_, database), (first, last))| DatabaseEntry {
        database_id: database.to_owned(),
        first_sequence: first,
        last_sequence: last,
    });
    entries.collect()
}
