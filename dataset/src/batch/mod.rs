//! A batch: records of one database, as a host sends them to the collector and as the collector's journal
//! stores them.
//!
//! A batch contains an Arrow IPC stream for each table, one after another; all are compressed together with
//! zstd. Every stream ends with its end-of-stream marker and names its table in the schema's metadata
//! (`gleaner.table`). Any Arrow library therefore reads a batch in a few lines:
//!
//! ```text
//! data = io.BytesIO(zstandard.decompress(body))
//! while data.tell() < length: table = pyarrow.ipc.open_stream(data).read_all()
//! ```

mod decode;
mod encode;
mod frames;

pub use decode::{BatchError, Limits};

use crate::rows::identity::Identities;
use arrow::record_batch::RecordBatch;
use gleaner_schemas::column::Table;
use std::collections::BTreeSet;

/// Media type of a batch's content, as registered with IANA; the content is sent compressed with zstd.
pub const MEDIA_TYPE: &str = "application/vnd.apache.arrow.stream";

/// Maximum number of a dataset's files that one batch may touch; a file holds one table's rows of one UTC
/// day. A batch of 512 records, as agents send it, needs about 20 with a sample every 90 s, and 250 with one per hour.
pub const MOST_FILES: usize = 512;
const DAY_MS: i64 = 86_400_000;

/// Table and UTC day (counted from 1970-01-01) of rows; the two determine the rows' file in a dataset.
pub type TableDay = (&'static str, i64);

/// Rows of one host's database, under the tables' own schemas.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Id of the host: 32 hexadecimal digits.
    pub host_id: String,
    /// Id of the database: 32 hexadecimal digits.
    pub database_id: String,
    /// Lowest sequence number of the batch's records.
    pub first_sequence: i64,
    /// Highest sequence number of the batch's records.
    pub last_sequence: i64,
    /// Time of the oldest row, ms since 1970-01-01 UTC.
    pub first_time_ms: i64,
    /// Time of the newest row, ms since 1970-01-01 UTC.
    pub last_time_ms: i64,
    /// Tables and days of the rows; at most [`MOST_FILES`].
    pub table_days: BTreeSet<TableDay>,
    /// Tables with their rows; only tables that have rows.
    pub tables: Vec<(Table, RecordBatch)>,
}

impl Batch {
    /// Number of rows in all tables.
    #[must_use]
    pub fn rows_count(&self) -> u64 {
        let rows = self.tables.iter().map(|(_, rows)| rows.num_rows() as u64);
        rows.sum()
    }

    /// Memory of the rows, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let rows = self.tables.iter();
        rows.map(|(_, rows)| rows.get_array_memory_size()).sum()
    }

    /// Batch of rows that already have their tables' schemas. An error describes a fault in their content.
    pub(crate) fn new(tables: Vec<(Table, RecordBatch)>) -> Result<Self, String> {
        let tables: Vec<_> = tables
            .into_iter()
            .filter(|(_, rows)| rows.num_rows() > 0)
            .collect();
        let (_, first) = tables.first().ok_or("it has no rows")?;
        let named = |rows| Identities::of(rows).map_err(|e| e.to_string());
        let identities = named(first)?;
        let mut batch = Self {
            host_id: identities.hosts.value(0).to_owned(),
            database_id: identities.databases.value(0).to_owned(),
            first_sequence: i64::MAX,
            last_sequence: i64::MIN,
            first_time_ms: i64::MAX,
            last_time_ms: i64::MIN,
            table_days: BTreeSet::new(),
            tables: Vec::new(),
        };
        for (what, id) in [("host", &batch.host_id), ("database", &batch.database_id)] {
            if !is_id(id) {
                return Err(format!("its {what} id is not 32 hexadecimal digits"));
            }
        }
        for (table, rows) in &tables {
            batch.admit(table, &named(rows)?)?;
        }
        batch.tables = tables;
        Ok(batch)
    }

    fn admit(&mut self, table: &Table, rows: &Identities<'_>) -> Result<(), String> {
        let of_another = |detail| Err(format!("table {} has rows of {detail}", table.name));
        if rows.hosts.iter().any(|id| id != Some(&self.host_id)) {
            return of_another("several hosts");
        }
        if rows
            .databases
            .iter()
            .any(|id| id != Some(&self.database_id))
        {
            return of_another("several databases");
        }
        if !rows.times_ms.iter().all(|t| (0..=LAST_TIME_MS).contains(t)) {
            return of_another("a time outside 1970 to 9999");
        }
        for &time_ms in rows.times_ms {
            self.first_time_ms = self.first_time_ms.min(time_ms);
            self.last_time_ms = self.last_time_ms.max(time_ms);
            self.table_days.insert((table.name, time_ms / DAY_MS));
            if self.table_days.len() > MOST_FILES {
                return Err(format!(
                    "its rows are of more than {MOST_FILES} days and tables; send fewer records per batch"
                ));
            }
        }
        for &sequence in rows.sequences {
            if sequence < 1 {
                return of_another("a sequence below 1");
            }
            self.first_sequence = self.first_sequence.min(sequence);
            self.last_sequence = self.last_sequence.max(sequence);
        }
        Ok(())
    }
}

/// Last millisecond of the year 9999; a dataset has no folders for later days.
const LAST_TIME_MS: i64 = 253_402_300_799_999;

/// Returns true if `text` is a valid id of a host or database: 32 lower-case hexadecimal digits.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
