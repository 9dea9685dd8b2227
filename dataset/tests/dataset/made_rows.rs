//! Rows for the tests. All values of a row are derived from its identity, so that the rows read can be checked.

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, TimestampMillisecondType};
use arrow::record_batch::RecordBatch;
use gleaner_dataset::{Dataset, Identity, RowsBuilder};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{FileRow, SampleRow};
use std::path::Path;

/// 2026-11-20 23:59:00 UTC; rows a minute later belong to the next day.
pub(crate) const START_MS: i64 = 1_795_219_140_000;

/// Identity of a row of `samples` (`key` is 0) or of `files`. Identities are ordered as a host's rows in a dataset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) host: String,
    pub(crate) time_ms: i64,
    pub(crate) sequence: i64,
    pub(crate) key: i64,
    pub(crate) database: String,
}

impl Name {
    /// Identity with a time that depends on the database and the sequence, as with a host's clock.
    pub(crate) fn new(host: u8, database: u8, sequence: i64, key: i64) -> Self {
        Self {
            host: format!("host-{host}"),
            database: format!("database-{database}"),
            time_ms: START_MS + sequence * 20_000 + i64::from(database) * 40_000_000,
            sequence,
            key,
        }
    }
}

/// A batch of `samples` or `files` with one row for each of `names`, in their order.
pub(crate) fn batch(table: &Table, names: &[Name]) -> RecordBatch {
    let mut rows = RowsBuilder::new(table);
    for name in names {
        let identity = Identity {
            host_id: &name.host,
            database_id: &name.database,
            sequence: name.sequence,
            time_ms: name.time_ms,
        };
        let values = if table.name == SampleRow::TABLE.name {
            SampleRow {
                mem_free_bytes: fingerprint(name),
                load5: Some(0.25),
                ..SampleRow::default()
            }
            .to_values()
        } else {
            FileRow {
                file_id: name.key,
                size_bytes: Some(fingerprint(name)),
                ..FileRow::default()
            }
            .to_values()
        };
        rows.push(identity, values).unwrap();
    }
    rows.finish().unwrap()
}

/// Identities of a host's rows, in the order in which the dataset returns them. Panics if a row has the value
/// of another row.
pub(crate) fn read_names(dataset: &Dataset, table: &Table, host: &str) -> Vec<Name> {
    let (key, value) = if table.key.is_empty() {
        ("sequence", "mem_free_bytes")
    } else {
        ("file_id", "size_bytes")
    };
    let columns = ["database_id", value, "time", "sequence", key];
    let rows = dataset.read_host(table, host, &columns).unwrap();
    let integers = |i: usize| rows.column(i).as_primitive::<Int64Type>();
    let times = rows.column(2).as_primitive::<TimestampMillisecondType>();
    (0..rows.num_rows())
        .map(|row| {
            let name = Name {
                host: host.to_owned(),
                time_ms: times.value(row),
                sequence: integers(3).value(row),
                key: if table.key.is_empty() {
                    0
                } else {
                    integers(4).value(row)
                },
                database: rows.column(0).as_string::<i32>().value(row).to_owned(),
            };
            assert_eq!(integers(1).value(row), fingerprint(&name), "{name:?}");
            name
        })
        .collect()
}

/// Copies a folder recursively.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).unwrap();
        }
    }
}

fn fingerprint(name: &Name) -> i64 {
    let hash = blake3::hash(format!("{name:?}").as_bytes());
    i64::from(hash.as_bytes()[0]) << 32 | name.sequence << 8 | name.key
}
