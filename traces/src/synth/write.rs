//! Writes a cluster as a dataset while it is generated. Memory depends only on the number of hosts generated
//! together and on the rows that are not sealed yet, not on the cluster's size.

use super::{Cluster, Record, SynthError, SyntheticHost};
use arrow::record_batch::RecordBatch;
use gleaner_dataset::{DatasetError, Identity, RowsBuilder, Writer};
use gleaner_schemas::column::Table;
use gleaner_schemas::rows::TABLES;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

const DAY_MS: i64 = 86_400_000;
/// Number of hosts generated together; each takes some tens of KiB.
const HOSTS_AT_ONCE: usize = 256;
/// Number of rows after which the writer seals. A row takes about 200 bytes, and three times as much while
/// rows are sorted; the next rows are generated at the same time.
const ROWS_AT_ONCE: usize = 600_000;

/// Progress of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of host-days (days of one host) written so far.
    pub host_days: u64,
    /// Total number of host-days.
    pub host_days_in_all: u64,
    /// Number of rows generated so far.
    pub rows: u64,
}

/// Folder and counts of a written dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SynthSummary {
    /// The dataset's folder.
    pub dataset: PathBuf,
    /// Number of records.
    pub records: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of files.
    pub files: usize,
    /// Total length of the files, in bytes.
    pub bytes: u64,
}

/// Writes the cluster as a dataset into `folder`, which is created or must be empty. `progress` is called
/// after each day of each host.
///
/// # Errors
/// [`SynthError::NotEmpty`], or an error of writing. After such an error, the days already sealed stay.
pub fn write(
    cluster: &Cluster,
    folder: &Path,
    mut progress: impl FnMut(&Progress),
) -> Result<SynthSummary, SynthError> {
    refuse_in_use(folder)?;
    let mut writer = Writer::open(folder)?;
    let mut written = SynthSummary {
        dataset: folder.to_owned(),
        ..SynthSummary::default()
    };
    // Generating rows takes about as long as sealing them: each has its own thread.
    thread::scope(|scope| {
        let (parts, made) = sync_channel(1);
        let making = scope.spawn(move || make(cluster, &parts));
        for Part { done, tables } in made {
            progress(&done);
            if tables.is_empty() {
                continue;
            }
            for (table, rows) in tables {
                writer.append(&table, rows)?;
            }
            let summary = writer.seal()?;
            written.rows += summary.rows;
            written.files += summary.files;
            written.bytes += summary.bytes;
        }
        match making.join() {
            Ok(records) => written.records = records?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(written)
    })
}

/// Progress after a host's day or a part of it, and the tables to seal now, often none.
struct Part {
    done: Progress,
    tables: Vec<(Table, RecordBatch)>,
}

/// Generates the cluster's rows day by day for groups of hosts, until the receiver closes. Returns the number
/// of records.
fn make(cluster: &Cluster, parts: &SyncSender<Part>) -> Result<u64, SynthError> {
    let parameters = cluster.parameters();
    let mut done = Progress {
        host_days: 0,
        host_days_in_all: parameters.hosts as u64 * u64::from(parameters.days),
        rows: 0,
    };
    let mut making = RowBuffer::default();
    // Hosts are ordered by id, as after a collector's compaction. A reader that uses the same order opens
    // each file only once.
    let mut order: Vec<(String, usize)> = (0..parameters.hosts)
        .map(|index| (cluster.host(index).host_id().to_owned(), index))
        .collect();
    order.sort_unstable();
    for together in order.chunks(HOSTS_AT_ONCE) {
        let hosts = together.iter().map(|(_, index)| cluster.host(*index));
        let mut hosts: Vec<SyntheticHost> = hosts.collect();
        for day in 1..=i64::from(parameters.days) {
            let until_ms = parameters.start_ms + day * DAY_MS;
            for host in &mut hosts {
                while host.peek_ms().is_some_and(|time_ms| time_ms < until_ms) {
                    let Some(record) = host.next() else { break };
                    done.rows += making.add(host, &record)?;
                    if making.waiting >= ROWS_AT_ONCE {
                        let tables = making.take()?;
                        if parts.send(Part { done, tables }).is_err() {
                            return Ok(making.records);
                        }
                    }
                }
                done.host_days += 1;
                let is_last = done.host_days == done.host_days_in_all;
                let tables = if is_last { making.take()? } else { Vec::new() };
                if parts.send(Part { done, tables }).is_err() {
                    return Ok(making.records);
                }
            }
        }
    }
    Ok(making.records)
}

fn refuse_in_use(folder: &Path) -> Result<(), SynthError> {
    let in_use = || SynthError::NotEmpty {
        folder: folder.to_owned(),
    };
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(in_use()),
        Ok(false) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(SynthError::Folder {
            folder: folder.to_owned(),
            source,
        }),
    }
}

/// Rows that are not sealed yet.
struct RowBuffer {
    builders: Vec<RowsBuilder>,
    waiting: usize,
    records: u64,
}

impl Default for RowBuffer {
    fn default() -> Self {
        Self {
            builders: TABLES.iter().map(RowsBuilder::new).collect(),
            waiting: 0,
            records: 0,
        }
    }
}

impl RowBuffer {
    /// Adds the rows of a record; returns their number.
    fn add(&mut self, host: &SyntheticHost, record: &Record) -> Result<u64, SynthError> {
        let identity = Identity {
            host_id: host.host_id(),
            database_id: host.database_id(),
            sequence: record.sequence,
            time_ms: record.time_ms,
        };
        record.try_each(|name, values| -> Result<(), DatasetError> {
            let tables = TABLES.iter().zip(&mut self.builders);
            let mut builders = tables.filter(|(table, _)| table.name == name);
            builders
                .next()
                .map_or(Ok(()), |(_, builder)| builder.push(identity, values))
        })?;
        self.records += 1;
        self.waiting += record.rows_count();
        Ok(record.rows_count() as u64)
    }

    /// Takes all waiting rows, as record batches.
    fn take(&mut self) -> Result<Vec<(Table, RecordBatch)>, SynthError> {
        self.waiting = 0;
        let mut taken = Vec::new();
        for (table, builder) in TABLES.iter().zip(&mut self.builders) {
            let rows = std::mem::replace(builder, RowsBuilder::new(table));
            if !rows.is_empty() {
                taken.push((*table, rows.finish()?));
            }
        }
        Ok(taken)
    }
}
