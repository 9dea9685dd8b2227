//! A batch: some records of one database, as they travel from a host to the collector and lie in its
//! journal.
//!
//! An Arrow IPC stream for each table, one after another, compressed with zstd as a whole. Every stream
//! ends with its end-of-stream marker and names its table in the schema's metadata (`gleaner.table`), so
//! that any Arrow library reads a batch in a few lines:
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

/// Media type of a batch's content, as registered with IANA; the content is then compressed with zstd.
pub const MEDIA_TYPE: &str = "application/vnd.apache.arrow.stream";

/// Most files of a dataset that one batch may need: a table's rows of one UTC day are a file. An agent's 512 records
/// need some 20 at a sample every 90 s, and 250 at one an hour.
pub const MOST_FILES: usize = 512;
const DAY_MS: i64 = 86_400_000;

/// Table and UTC day (since 1970-01-01) of rows: where they lie in a dataset.
pub type TableDay = (&'static str, i64);

/// Rows of one host's database, under the tables' own schemas.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The host: 32 hexadecimal digits.
    pub host_id: String,
    /// The database: 32 hexadecimal digits.
    pub database_id: String,
    /// Lowest sequence of its records.
    pub first_sequence: i64,
    /// Highest sequence of its records.
    pub last_sequence: i64,
    /// Time of its oldest row, ms since 1970-01-01 UTC.
    pub first_time_ms: i64,
    /// Time of its newest row, ms since 1970-01-01 UTC.
    pub last_time_ms: i64,
    /// Tables and days of its rows; [`MOST_FILES`] at most.
    pub table_days: BTreeSet<TableDay>,
    /// Rows by table; none is empty.
    pub tables: Vec<(Table, RecordBatch)>,
}

impl Batch {
    /// Rows in all its tables.
    #[must_use]
    pub fn rows_count(&self) -> u64 {
        let rows = self.tables.iter().map(|(_, rows)| rows.num_rows() as u64);
        rows.sum()
    }

    /// Memory that its rows take, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let rows = self.tables.iter();
        rows.map(|(_, rows)| rows.get_array_memory_size()).sum()
    }

    /// From rows that were checked to be under their table's schema; what is wrong with them otherwise.
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
                    "its rows are of more than {MOST_FILES} days and tables; send fewer records at once"
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

/// The last millisecond of 9999: later days have no place among a dataset's folders.
const LAST_TIME_MS: i64 = 253_402_300_799_999;

/// Returns true if `text` can be the id of a host or a database: 32 lower-case hexadecimal digits.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
