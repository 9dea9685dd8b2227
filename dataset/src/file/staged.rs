//! An Arrow file that is written host by host to the staging folder, and its manifest entry.

use crate::file::arrow_file::footer_bytes;
use crate::file::hashing::HashingWriter;
use crate::file::index::{DatabaseRows, INDEX_KEY, IndexText, THINNED_KEY};
use crate::layout;
use crate::layout::names::WriterName;
use crate::manifest::FileEntry;
use crate::rows::identity::Identities;
use crate::{DatasetError, Result};
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::ipc::{CompressionType, MetadataVersion};
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

/// Maximum number of rows in a record batch; a batch is decompressed as a whole.
pub(crate) const BATCH_ROWS: usize = 64 * 1024;
/// Number of rows from which a batch ends with its host. In smaller batches, headers would be larger than the rows.
const SHARED_ROWS: usize = 1024;
/// Number of digits of the hash in a file's name; with so many, no two names are ever equal.
const NAME_DIGITS: usize = 32;
/// Alignment of buffers, sufficient for every type here. Arrow's default of 64 would be a tenth of a small file.
const ALIGNMENT_BYTES: usize = 8;

/// A file in the staging folder that is being written.
pub(crate) struct StagedFile {
    path: PathBuf,
    name: WriterName,
    table: Table,
    date: String,
    writer: FileWriter<HashingWriter<BufWriter<File>>>,
    /// Rows that are not yet written as a batch.
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    index: IndexText,
    bounds: Option<Bounds>,
    thinned_to_ms: Option<i64>,
}

/// Earliest and latest time, and first and last host, of a file's rows.
struct Bounds {
    times_ms: (i64, i64),
    hosts: (String, String),
}

impl StagedFile {
    /// Begins a file for one table and day at `path`, written by the writer called `name`.
    pub(crate) fn create(
        path: PathBuf,
        name: &WriterName,
        table: &Table,
        date: String,
    ) -> Result<Self> {
        let begin = || -> io::Result<_> {
            let file = HashingWriter::new(BufWriter::new(File::create(&path)?));
            let options = IpcWriteOptions::try_new(ALIGNMENT_BYTES, false, MetadataVersion::V5)
                .and_then(|options| options.try_with_compression(Some(CompressionType::ZSTD)))
                .map_err(to_io)?;
            let mut writer =
                FileWriter::try_new_with_options(file, &schema(table), options).map_err(to_io)?;
            writer.get_mut().part(); // a batch's bytes begin after the magic and the schema
            Ok(writer)
        };
        let writer = begin().map_err(DatasetError::io("write", &path))?;
        Ok(Self {
            path,
            name: name.clone(),
            table: *table,
            date,
            writer,
            pending: Vec::new(),
            pending_rows: 0,
            index: IndexText::default(),
            bounds: None,
            thinned_to_ms: None,
        })
    }

    /// Marks the file's samples as thinned to one every `to_ms`.
    pub(crate) fn thinned_to(mut self, to_ms: impl Into<Option<i64>>) -> Self {
        self.thinned_to_ms = to_ms.into();
        self
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.get_ref().bytes
    }

    /// Adds all rows of the next host. They must be sorted, and hosts must come in the order of their ids.
    pub(crate) fn add_host(&mut self, rows: &RecordBatch) -> Result<()> {
        let identities = Identities::of(rows).map_err(DatasetError::rows(self.table.name))?;
        let Some(times_ms) = bounds(identities.times_ms) else {
            return Ok(()); // no rows
        };
        let host = identities.hosts.value(0);
        self.index
            .add_host(host, rows.num_rows() as u64, &databases(&identities))
            .map_err(|e| DatasetError::io("write", &self.path)(e.into()))?;
        self.bounds = Some(match self.bounds.take() {
            None => Bounds {
                times_ms,
                hosts: (host.to_owned(), host.to_owned()),
            },
            Some(b) => Bounds {
                times_ms: (b.times_ms.0.min(times_ms.0), b.times_ms.1.max(times_ms.1)),
                hosts: (b.hosts.0, host.to_owned()),
            },
        });
        if self.pending_rows + rows.num_rows() > BATCH_ROWS {
            self.flush()?;
        }
        for start in (0..rows.num_rows()).step_by(BATCH_ROWS) {
            let length = BATCH_ROWS.min(rows.num_rows() - start);
            self.pending.push(rows.slice(start, length));
            self.pending_rows += length;
            if self.pending_rows >= SHARED_ROWS {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the pending rows as one batch.
    fn flush(&mut self) -> Result<()> {
        let Some(first) = self.pending.first() else {
            return Ok(());
        };
        let batch = concat_batches(first.schema_ref(), &self.pending)
            .map_err(DatasetError::rows(self.table.name))?;
        self.writer
            .write(&batch)
            .map_err(|e| DatasetError::io("write", &self.path)(to_io(e)))?;
        let hash = self.writer.get_mut().part();
        self.index.add_batch(hash, batch.num_rows() as u64);
        self.pending.clear();
        self.pending_rows = 0;
        Ok(())
    }

    /// Makes the file durable, and returns its path and entry. A file without rows is removed; the result is
    /// then `None`.
    pub(crate) fn finish(mut self) -> Result<Option<(PathBuf, FileEntry)>> {
        self.flush()?;
        let Some(bounds) = self.bounds.take() else {
            layout::remove(&self.path)?;
            return Ok(None);
        };
        let (rows, hosts_count) = (self.index.rows, self.index.hosts_count);
        let end = || -> io::Result<_> {
            let mut writer = self.writer;
            writer.write_metadata(INDEX_KEY, self.index.finish()?);
            if let Some(ms) = self.thinned_to_ms {
                writer.write_metadata(THINNED_KEY, ms.to_string());
            }
            writer.get_mut().keep();
            let file = writer.into_inner().map_err(to_io)?;
            let bytes = file.bytes;
            let (file, hash, tail) = file.finish();
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            let footer = footer_bytes(&tail).map_err(to_io)?;
            Ok((bytes, hash, blake3::hash(footer).to_string()))
        };
        let (bytes, blake3, footer_blake3) =
            end().map_err(DatasetError::io("write", &self.path))?;
        let entry = FileEntry {
            path: format!(
                "{}/{}",
                layout::folder(self.table.name, &self.date),
                self.name.file(&blake3[..NAME_DIGITS])
            ),
            table: self.table.name.to_owned(),
            date: self.date,
            rows,
            bytes,
            blake3,
            footer_blake3,
            first_time_ms: bounds.times_ms.0,
            last_time_ms: bounds.times_ms.1,
            hosts_count,
            first_host_id: bounds.hosts.0,
            last_host_id: bounds.hosts.1,
            thinned_to_ms: self.thinned_to_ms,
            hosts: Vec::new(),
        };
        Ok(Some((self.path, entry)))
    }
}

impl StagedFile {
    /// Adds sorted rows of one host or of several hosts.
    pub(crate) fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let identities = Identities::of(rows).map_err(DatasetError::rows(self.table.name))?;
        for run in identities.host_runs() {
            self.add_host(&rows.slice(run.start, run.len()))?;
        }
        Ok(())
    }
}

fn to_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

fn bounds(times_ms: &[i64]) -> Option<(i64, i64)> {
    let times = times_ms.iter().copied();
    times.clone().min().zip(times.max())
}

/// Bounds of the records of each database, from the rows of one host.
fn databases(part: &Identities<'_>) -> Vec<DatabaseRows> {
    let ranges = part.sequence_ranges().into_iter();
    let entries = ranges.map(|((_, database), (first, last))| DatabaseRows {
        database_id: database.to_owned(),
        first_sequence: first,
        last_sequence: last,
    });
    entries.collect()
}
