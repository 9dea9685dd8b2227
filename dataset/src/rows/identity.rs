//! The columns that come first in every table, with their types.

use arrow::array::{Array, AsArray, StringArray};
use arrow::datatypes::{Int64Type, TimestampMillisecondType};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use std::collections::BTreeMap;
use std::ops::Range;

/// Identity columns of a batch; each has one value per row.
pub(crate) struct Identities<'a> {
    pub(crate) hosts: &'a StringArray,
    pub(crate) databases: &'a StringArray,
    pub(crate) sequences: &'a [i64],
    pub(crate) times_ms: &'a [i64],
}

impl<'a> Identities<'a> {
    pub(crate) fn of(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| ArrowError::SchemaError(format!("no column {name}")))
        };
        let wrong = || ArrowError::SchemaError("an identity column of another type".to_owned());
        let text = |name| column(name)?.as_string_opt::<i32>().ok_or_else(wrong);
        Ok(Self {
            hosts: text("host_id")?,
            databases: text("database_id")?,
            sequences: column("sequence")?
                .as_primitive_opt::<Int64Type>()
                .ok_or_else(wrong)?
                .values(),
            times_ms: column("time")?
                .as_primitive_opt::<TimestampMillisecondType>()
                .ok_or_else(wrong)?
                .values(),
        })
    }

    /// Ranges of consecutive rows of the same host. If the rows are sorted, each host occurs once.
    pub(crate) fn host_runs(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for row in 0..self.hosts.len() {
            match runs.last_mut() {
                Some(run) if self.hosts.value(run.start) == self.hosts.value(row) => {
                    run.end = row + 1;
                }
                _ => runs.push(row..row + 1),
            }
        }
        runs
    }

    /// Lowest and highest record sequence of each host's databases.
    pub(crate) fn sequence_ranges(&self) -> BTreeMap<(&'a str, &'a str), (i64, i64)> {
        let mut ranges = BTreeMap::new();
        for (row, &sequence) in self.sequences.iter().enumerate() {
            let database = (self.hosts.value(row), self.databases.value(row));
            let (first, last) = ranges.entry(database).or_insert((sequence, sequence));
            *first = sequence.min(*first);
            *last = sequence.max(*last);
        }
        ranges
    }
}
