//! The trace's rows for export and shipping: read between two records, if need be around damage.

use crate::Error;
use crate::trace::database::{columns, meta, open_to_read, records_tables};
use gleaner_dataset::{Identity, RowsBuilder};
use gleaner_schemas::column::{Kind, Table, Value};
use gleaner_schemas::rows::TABLES;
use gleaner_schemas::sql::select_between;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, named_params};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Number of sequence numbers that are examined together in a damaged database.
pub(crate) const SALVAGED_AT_ONCE: i64 = 4096;

/// Last millisecond of the year 9999: a later time is damaged, and cannot be stored in a dataset.
const LAST_TIME_MS: i64 = 253_402_300_799_999;

/// A trace open for reading.
pub(crate) struct Trace {
    path: PathBuf,
    pub(crate) connection: Connection,
    pub(crate) host_id: String,
    pub(crate) database_id: String,
}

impl Trace {
    /// Opens the trace at `path` as one view of all tables, which the agent's later writes and deletions do
    /// not change. While the view exists, the agent's log cannot wrap around: drop it soon.
    ///
    /// # Errors
    /// Errors of [`open_to_read`]; [`Error::Row`] if the trace lacks its host or database id.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let connection = open_to_read(path)?;
        let begun = connection.execute_batch("BEGIN");
        begun.map_err(Error::database(path))?;
        let get = |key| {
            meta(&connection, key)
                .map_err(Error::database(path))?
                .ok_or_else(|| Error::Row {
                    path: path.to_owned(),
                    table: "meta",
                })
        };
        let (host_id, database_id) = (get("host_id")?, get("database_id")?);
        Ok(Self {
            path: path.to_owned(),
            connection,
            host_id,
            database_id,
        })
    }

    /// Rows of `table` in the records after `after` up to `until`; `None` if they take more than
    /// `most_bytes`.
    ///
    /// # Errors
    /// [`Error::Database`]; [`Error::Row`] if a row does not fit the table.
    pub(crate) fn rows(
        &self,
        table: &Table,
        (after, until): (i64, i64),
        most_bytes: usize,
    ) -> Result<Option<Rows>, Error> {
        let wrong = Error::database(&self.path);
        let present = columns(&self.connection, table.name).map_err(&wrong)?;
        let mut found = Rows {
            builder: RowsBuilder::new(table),
            content_bytes: 0,
            last_sequence: 0,
        };
        if present.is_empty() {
            return Ok(Some(found));
        }
        let mut statement = self
            .connection
            .prepare(&select_between(table, &present))
            .map_err(&wrong)?;
        let mut rows = statement
            .query(named_params! { ":after": after, ":until": until })
            .map_err(&wrong)?;
        while let Some(row) = rows.next().map_err(&wrong)? {
            let misfit = || Error::Row {
                path: self.path.clone(),
                table: table.name,
            };
            let identity = Identity {
                host_id: &self.host_id,
                database_id: &self.database_id,
                sequence: row.get(0).map_err(&wrong)?,
                time_ms: row.get(1).map_err(&wrong)?,
            };
            if !(0..=LAST_TIME_MS).contains(&identity.time_ms) {
                return Err(misfit());
            }
            let value = |(at, column): (usize, &gleaner_schemas::column::Column)| {
                let stored = row.get_ref(at + 2).map_err(&wrong)?;
                value(stored, column.kind).ok_or_else(misfit)
            };
            let values = table
                .columns
                .iter()
                .enumerate()
                .map(value)
                .collect::<Result<Vec<_>, Error>>()?;
            found.content_bytes += values.iter().map(value_bytes).sum::<usize>();
            if found.content_bytes > most_bytes {
                return Ok(None);
            }
            found.last_sequence = identity.sequence; // rows are in the order of their records
            found.builder.push(identity, values)?;
        }
        Ok(Some(found))
    }

    /// Reads like [`Trace::rows`], but without a limit, and skips unreadable records. An unreadable range is
    /// halved until one record remains; its number is added to `unreadable`.
    ///
    /// # Errors
    /// Errors other than damage.
    pub(crate) fn readable_rows(
        &self,
        table: &Table,
        (after, until): (i64, i64),
        unreadable: &mut BTreeSet<i64>,
    ) -> Result<Vec<Rows>, Error> {
        match self.rows(table, (after, until), usize::MAX) {
            Err(error) if can_be_read_around(&error) => {
                if until - after <= 1 {
                    if !self.is_no_sample(until) {
                        unreadable.insert(until);
                    }
                    return Ok(Vec::new());
                }
                let middle = after + (until - after) / 2;
                let mut rows = self.readable_rows(table, (after, middle), unreadable)?;
                rows.extend(self.readable_rows(table, (middle, until), unreadable)?);
                Ok(rows)
            }
            other => Ok(other?.into_iter().collect()),
        }
    }

    /// Returns true if this number is known to belong to a record of one row, such as an event: then no
    /// unreadable sample has the number.
    fn is_no_sample(&self, sequence: i64) -> bool {
        let is_in = |table: &Table| {
            let query = format!("SELECT sequence FROM {} WHERE sequence = ?", table.name);
            let found = self
                .connection
                .query_row(&query, [sequence], |row| row.get::<_, i64>(0));
            found.is_ok()
        };
        let mut others = TABLES
            .iter()
            .filter(|t| t.has_own_time() && t.name != "samples");
        others.any(is_in)
    }

    /// Sequence number of the last record found in any table.
    ///
    /// # Errors
    /// [`Error::Damaged`] if no table can be read.
    pub(crate) fn last_readable(&self) -> Result<i64, Error> {
        let mut last = Err(Error::Damaged {
            path: self.path.clone(),
            what: "no table can be read".to_owned(),
        });
        for table in &TABLES {
            let query = format!("SELECT coalesce(max(sequence), 0) FROM {}", table.name);
            if let Ok(found) = self.connection.query_row(&query, [], |row| row.get(0)) {
                last = Ok(last.unwrap_or(0).max(found));
            }
        }
        last
    }

    /// Returns `after`, or the number before the next record in any table if that record is far away: numbers
    /// are skipped at every boot, and a damaged number may be anything.
    pub(crate) fn before_next_readable(&self, mut after: i64, last: i64) -> i64 {
        let mut width = SALVAGED_AT_ONCE;
        while after < last && !self.has_records_between(after, after.saturating_add(width)) {
            after = after.saturating_add(width);
            width = width.saturating_mul(2);
        }
        while width > SALVAGED_AT_ONCE {
            width /= 2;
            if !self.has_records_between(after, after.saturating_add(width)) {
                after = after.saturating_add(width);
            }
        }
        after.min(last)
    }

    /// Returns true if any table has a record in this range, searched from both ends.
    fn has_records_between(&self, after: i64, until: i64) -> bool {
        let knows = |table: &Table, end: &str| {
            let name = table.name;
            let query =
                format!("SELECT {end}(sequence) FROM {name} WHERE sequence > ? AND sequence <= ?");
            let found = self
                .connection
                .query_row(&query, [after, until], |row| row.get(0));
            matches!(found, Ok(Some::<i64>(_)))
        };
        TABLES
            .iter()
            .any(|table| knows(table, "min") || knows(table, "max"))
    }

    /// Sequence numbers of the first `count` records after `after`, in order.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub(crate) fn records_after(&self, after: i64, count: usize) -> Result<Vec<i64>, Error> {
        let wrong = Error::database(&self.path);
        let mut found = Vec::new();
        for table in records_tables(&self.connection).map_err(&wrong)? {
            let query = format!(
                "SELECT sequence FROM {table} WHERE sequence > ? ORDER BY sequence LIMIT ?"
            );
            let mut statement = self.connection.prepare(&query).map_err(&wrong)?;
            let limit = i64::try_from(count).unwrap_or(i64::MAX);
            let rows = statement.query_map([after, limit], |row| row.get(0));
            let rows: rusqlite::Result<Vec<i64>> = rows.map_err(&wrong)?.collect();
            found.extend(rows.map_err(&wrong)?);
        }
        found.sort_unstable();
        found.truncate(count);
        Ok(found)
    }
}

/// Rows of one table.
pub(crate) struct Rows {
    /// Values of the rows.
    pub(crate) builder: RowsBuilder,
    /// Approximate size of the rows in memory, in bytes, without the identity of their records.
    pub(crate) content_bytes: usize,
    /// Last record of the rows; 0 without rows.
    pub(crate) last_sequence: i64,
}

/// Returns true if the requested records are damaged but others may still be readable.
pub(crate) fn can_be_read_around(error: &Error) -> bool {
    error.is_damage() || matches!(error, Error::Row { .. })
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => 4 + text.len(),
        _ => 8,
    }
}

/// Converts a value read from SQLite; `None` if it does not fit the column.
fn value(stored: ValueRef<'_>, kind: Kind) -> Option<Value> {
    Some(match (kind, stored) {
        (_, ValueRef::Null) => Value::Null,
        (Kind::Flag, ValueRef::Integer(v @ 0..=1)) => Value::Flag(v == 1), // SQLite has no booleans
        (Kind::Integer, ValueRef::Integer(v)) => Value::Integer(v),
        (Kind::Real, ValueRef::Real(v)) => Value::Real(v),
        (Kind::Text, ValueRef::Text(v)) => Value::Text(String::from_utf8(v.to_vec()).ok()?),
        _ => return None,
    })
}
