//! A cluster as a dataset, streamed: memory is bounded by the hosts that are made at once and by the rows that
//! wait to be sealed, whatever the cluster's size.

use super::{Cluster, HostTrace, Record, SynthError};
use gleaner_dataset::{DatasetError, Identity, RowsBuilder, Writer};
use gleaner_schemas::rows::TABLES;
use std::io;
use std::path::{Path, PathBuf};

const DAY_MS: i64 = 86_400_000;
/// Hosts whose state is kept at once: some tens of KiB each.
const HOSTS_AT_ONCE: usize = 256;
/// Rows that are sealed at once: some 200 bytes each, and as much again while they are sorted.
const ROWS_AT_ONCE: usize = 1_000_000;

/// How far the writing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Days of hosts done.
    pub host_days: u64,
    /// Days of hosts in all.
    pub host_days_in_all: u64,
    /// Rows made.
    pub rows: u64,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The dataset's folder.
    pub dataset: PathBuf,
    /// Records.
    pub records: u64,
    /// Rows.
    pub rows: u64,
    /// Files.
    pub files: usize,
    /// Their length together.
    pub bytes: u64,
}

/// Writes the cluster as a dataset into `folder`, which is made, or is empty. `progress` is called after each day of
/// each host.
///
/// # Errors
/// [`SynthError::NotEmpty`]; or what could not be written: the days sealed before stay.
pub fn write(
    cluster: &Cluster,
    folder: &Path,
    mut progress: impl FnMut(&Progress),
) -> Result<Written, SynthError> {
    refuse_in_use(folder)?;
    let parameters = cluster.parameters();
    let days = i64::from(parameters.days);
    let mut done = Progress {
        host_days: 0,
        host_days_in_all: parameters.hosts as u64 * u64::from(parameters.days),
        rows: 0,
    };
    let mut sealing = Sealing::begin(folder)?;
    // By id, as a collector's compaction leaves them: a reader of hosts in that order meets each file once.
    let mut order: Vec<(String, usize)> = (0..parameters.hosts)
        .map(|index| (cluster.host(index).host_id().to_owned(), index))
        .collect();
    order.sort_unstable();
    for together in order.chunks(HOSTS_AT_ONCE) {
        let mut hosts: Vec<HostTrace> = together
            .iter()
            .map(|(_, index)| cluster.host(*index))
            .collect();
        for day in 1..=days {
            let until_ms = parameters.start_ms + day * DAY_MS;
            for host in &mut hosts {
                while host.peek_ms().is_some_and(|time_ms| time_ms < until_ms) {
                    let Some(record) = host.next() else { break };
                    sealing.add(host, &record)?;
                }
                done.host_days += 1;
                done.rows = sealing.written.rows + sealing.waiting as u64;
                progress(&done);
            }
        }
    }
    sealing.seal()?;
    Ok(sealing.written)
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

/// Rows on their way into the dataset.
struct Sealing {
    writer: Writer,
    builders: Vec<RowsBuilder>,
    waiting: usize,
    written: Written,
}

impl Sealing {
    fn begin(folder: &Path) -> Result<Self, SynthError> {
        Ok(Self {
            writer: Writer::open(folder)?,
            builders: TABLES.iter().map(RowsBuilder::new).collect(),
            waiting: 0,
            written: Written {
                dataset: folder.to_owned(),
                ..Written::default()
            },
        })
    }

    fn add(&mut self, host: &HostTrace, record: &Record) -> Result<(), SynthError> {
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
        self.written.records += 1;
        self.waiting += record.rows_count();
        if self.waiting >= ROWS_AT_ONCE {
            self.seal()?;
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), SynthError> {
        for (table, builder) in TABLES.iter().zip(&mut self.builders) {
            let rows = std::mem::replace(builder, RowsBuilder::new(table));
            if !rows.is_empty() {
                self.writer.append(table, rows.finish()?)?;
            }
        }
        let summary = self.writer.seal()?;
        self.written.rows += summary.rows;
        self.written.files += summary.files;
        self.written.bytes += summary.bytes;
        self.waiting = 0;
        Ok(())
    }
}
