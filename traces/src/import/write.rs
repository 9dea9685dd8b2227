//! Writes the samples of imported machines into a dataset, one machine at a time.

use super::{ImportError, ImportSummary, Observation, Source};
use gleaner_dataset::{Compaction, Identity, RowsBuilder, SourceColumn, SourceEntry, Writer};
use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::rows::{GapRow, HostRow, SampleRow};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Time after 1970-01-01 that is later than all imported times. At this time every day of the trace is over,
/// so that the files of each day can be merged.
const AFTER_ALL: Duration = Duration::from_secs(4_200_000_000);
/// Columns that depend on neighbouring samples, and therefore on where the imported trace begins. A repeated
/// record may differ in them without a contradiction.
const OF_NEIGHBOURS: [&str; 4] = [
    "interval_ms",
    "sample_interval_ms",
    "boot_id",
    "boottime_ms",
];

const DAY_MS: i64 = 86_400_000;
/// Number of rows after which the writer seals. In memory, a sample takes about 700 bytes, absent columns
/// included, and more while it is sealed. Each seal looks at all earlier files: few seals are therefore faster.
const ROWS_AT_ONCE: u64 = 500_000;

/// Writes into one dataset, which is opened when the first row arrives.
pub(super) struct ImportWriter {
    dataset: PathBuf,
    writer: Option<Writer>,
    /// Paths of the files that the dataset had before the import.
    before: HashSet<String>,
}

impl ImportWriter {
    pub(super) fn into(dataset: &Path) -> Self {
        Self {
            dataset: dataset.to_owned(),
            writer: None,
            before: HashSet::new(),
        }
    }

    /// Adds a machine's samples. Also adds the machine's inventory, at the start of each UTC day and at each
    /// change. `interval_ms` is the recording interval for the inventory; `None` if it is the median step.
    pub(super) fn add(
        &mut self,
        source: &Source<'_>,
        machine: &str,
        samples: &[Observation<'_>],
        interval_ms: Option<i64>,
        done: &mut ImportSummary,
    ) -> Result<(), ImportError> {
        if samples.is_empty() {
            return Ok(());
        }
        let (host_id, database_id) = (source.host_id(machine), source.database_id(machine));
        let host_name = source.host_name(machine);
        // The sequence number of a record is derived from its time, so that every import gives it the same number.
        let identity = |sample: &Observation<'_>, in_its_ms: i64| Identity {
            host_id: &host_id,
            database_id: &database_id,
            sequence: 2 * sample.time_ms + in_its_ms,
            time_ms: sample.time_ms,
        };
        let mut hosts = RowsBuilder::new(&HostRow::TABLE);
        let mut rows = RowsBuilder::new(&SampleRow::TABLE);
        let mut gaps = RowsBuilder::new(&GapRow::TABLE);
        let mut before: Option<&Observation<'_>> = None;
        for sample in samples {
            let is_as_before = before.is_some_and(|before| {
                let same_day =
                    before.time_ms.div_euclid(DAY_MS) == sample.time_ms.div_euclid(DAY_MS);
                same_day && !sample.differs(before)
            });
            if !is_as_before {
                let mut known = vec![
                    ("host_name", Value::Text(host_name.clone())),
                    ("cpus_count", optional(sample.cpus_count)),
                    ("physical_bytes", Value::Integer(sample.physical_bytes)),
                    ("source", Value::Text(source.name.to_owned())),
                ];
                known.extend(interval_ms.map(|ms| ("sample_interval_ms", Value::Integer(ms))));
                known.extend(sample.facts.iter().cloned());
                hosts.push_known(identity(sample, 0), &known)?;
            }
            if let (Some(cause), Some(before)) = (sample.gap, before) {
                gaps.push_known(
                    identity(sample, 0),
                    &[
                        ("from_time_ms", Value::Integer(before.time_ms)),
                        ("to_time_ms", Value::Integer(sample.time_ms)),
                        ("cause", Value::Text(cause.to_owned())),
                    ],
                )?;
            }
            let mut known = vec![
                ("interval_ms", optional(sample.interval_ms)),
                ("is_complete_state", Value::Flag(false)), // nothing is known of files
                ("physical_bytes", Value::Integer(sample.physical_bytes)),
                ("available_bytes", Value::Integer(sample.available_bytes)),
            ];
            if let Some(booted_ms) = sample.booted_ms {
                let boot_id = source.boot_id(machine, booted_ms);
                known.push(("boot_id", Value::Text(boot_id)));
                known.push(("boottime_ms", Value::Integer(sample.time_ms - booted_ms)));
            }
            known.extend(sample.values.known());
            rows.push_known(identity(sample, 1), &known)?;
            before = Some(sample);
        }
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let mut writer = Writer::open(&self.dataset)?;
                writer.compare_repeats(&OF_NEIGHBOURS);
                let files = writer.manifest().files.iter();
                self.before = files.map(|file| file.path.clone()).collect();
                if self.before.is_empty() {
                    // The dataset did not exist before, so that nobody reads it: files that a merge replaces
                    // need not be kept.
                    writer.keep_retired_for(Duration::ZERO);
                }
                writer
            }
        };
        let writer = self.writer.insert(writer);
        writer.append(&HostRow::TABLE, hosts.finish()?)?;
        writer.append(&SampleRow::TABLE, rows.finish()?)?;
        let gaps = gaps.finish()?;
        if gaps.num_rows() > 0 {
            writer.append(&GapRow::TABLE, gaps)?;
        }
        if writer.pending_rows() >= ROWS_AT_ONCE {
            self.seal(done)?;
        }
        Ok(())
    }

    /// Seals all rows added so far.
    pub(super) fn seal(&mut self, done: &mut ImportSummary) -> Result<(), ImportError> {
        if let Some(writer) = &mut self.writer {
            let sealed = writer.seal()?;
            done.new_rows_count += sealed.rows;
            done.existing_rows_count += sealed.repeated_rows;
            done.contradicting_rows_count += sealed.contradicted_rows;
        }
        Ok(())
    }

    /// Seals the remaining rows, describes the source, and merges the files of each table and day.
    pub(super) fn finish(
        &mut self,
        source: &Source<'_>,
        done: &mut ImportSummary,
    ) -> Result<(), ImportError> {
        self.seal(done)?;
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let columns = source.fills.iter().map(|filled| SourceColumn {
            table: filled.table.to_owned(),
            column: filled.column.to_owned(),
            origin: filled.origin.to_owned(),
        });
        writer.describe(SourceEntry {
            name: source.name.to_owned(),
            available_meaning: source.available_meaning.to_owned(),
            has_invented_sizes: source.has_invented_sizes,
            columns: columns.collect(),
        })?;
        let compaction = Compaction {
            quiet: Duration::ZERO,
            ..Compaction::default()
        };
        while writer
            .compact_step(&compaction, SystemTime::UNIX_EPOCH + AFTER_ALL)?
            .is_some()
        {}
        let files = writer.manifest().files.iter();
        let new = files.filter(|file| !self.before.contains(&file.path));
        for file in new {
            done.files_count += 1;
            done.files_bytes += file.bytes;
        }
        Ok(())
    }
}

fn optional(value: Option<i64>) -> Value {
    value.map_or(Value::Null, Value::Integer)
}
