//! Hands the trace on to a dataset: the records that it does not have yet.

use crate::Error;
use crate::trace::database::{columns, meta, open_to_read, records_tables};
use gleaner_dataset::{Identity, RowsBuilder, Writer};
use gleaner_schemas::column::{Kind, Table, Value};
use gleaner_schemas::rows::TABLES;
use gleaner_schemas::sql::select_between;
use gleaner_schemas::units::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, named_params};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What an export added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// The dataset's folder.
    pub dataset: PathBuf,
    /// Rows added.
    pub rows_count: u64,
    /// Files added.
    pub files_count: usize,
    /// Their length together.
    pub files_bytes: u64,
    /// The last record that the dataset now has.
    pub last_sequence: i64,
    /// Records of a damaged database that could not be read, or not in all their parts.
    pub unreadable_records_count: usize,
}

/// Records read at once from a damaged database.
const SALVAGED_AT_ONCE: i64 = 4096;

/// Adds the trace at `database` to the dataset at `dataset`, a UTC day at a time: each is durable before
/// the next is read. Of a damaged database all is added that can be read.
///
/// # Errors
/// When the trace cannot be read or the dataset cannot be written; the days added before stay.
pub fn export(database: &Path, dataset: &Path) -> Result<Exported, Error> {
    let trace = Trace::open(database)?;
    let mut exported = Exported {
        dataset: dataset.to_owned(),
        ..Exported::default()
    };
    match by_day(&trace, &mut exported) {
        Err(error) if error.is_damage() => salvage(&trace, &mut exported)?,
        other => other?,
    }
    Ok(exported)
}

fn by_day(trace: &Trace, exported: &mut Exported) -> Result<(), Error> {
    let mut writer = Writer::open(&exported.dataset)?;
    let mut after = trace.exported_to(&mut writer)?;
    for until in trace.day_ends(after)? {
        for table in &TABLES {
            trace.append(table, after, until, &mut writer)?;
        }
        exported.seal(&mut writer, until)?;
        after = until;
    }
    exported.last_sequence = after;
    Ok(())
}

/// Reads around what is damaged: a range of records that cannot be read is halved until one record is
/// left, which is counted.
fn salvage(trace: &Trace, exported: &mut Exported) -> Result<(), Error> {
    let mut writer = Writer::open(&exported.dataset)?;
    let mut after = trace.exported_to(&mut writer)?;
    let last = trace.last_readable()?;
    let mut unreadable = BTreeSet::new();
    while after < last {
        let until = last.min(after + SALVAGED_AT_ONCE);
        for table in &TABLES {
            trace.append_readable(table, after, until, &mut writer, &mut unreadable)?;
        }
        exported.seal(&mut writer, until)?;
        after = until;
    }
    exported.last_sequence = after;
    exported.unreadable_records_count = unreadable.len();
    Ok(())
}

impl Exported {
    fn seal(&mut self, writer: &mut Writer, until: i64) -> Result<(), Error> {
        let summary = writer.seal()?;
        self.rows_count += summary.rows;
        self.files_count += summary.files;
        self.files_bytes += summary.bytes;
        self.last_sequence = until;
        Ok(())
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} rows in {} new files ({}) in {}\n",
            self.rows_count,
            self.files_count,
            Bytes::from(self.files_bytes),
            self.dataset.display(),
        );
        if self.unreadable_records_count > 0 {
            text += &format!(
                "the database is damaged: {} records could not be read, or not in all their parts\n",
                self.unreadable_records_count
            );
        }
        text
    }
}

/// A trace open for reading.
struct Trace {
    path: PathBuf,
    connection: Connection,
    host_id: String,
    database_id: String,
}

impl Trace {
    fn open(path: &Path) -> Result<Self, Error> {
        let connection = open_to_read(path)?;
        // One view of all tables, whatever the agent deletes meanwhile; it ends with the connection.
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

    /// The last record of this trace that the dataset has.
    fn exported_to(&self, writer: &mut Writer) -> Result<i64, Error> {
        let last = writer.last_sequence(&self.host_id, &self.database_id)?;
        Ok(last.unwrap_or(0))
    }

    /// The last record that can be seen in any table.
    fn last_readable(&self) -> Result<i64, Error> {
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

    /// As [`Trace::append`], but for the records that cannot be read.
    fn append_readable(
        &self,
        table: &Table,
        after: i64,
        until: i64,
        writer: &mut Writer,
        unreadable: &mut BTreeSet<i64>,
    ) -> Result<(), Error> {
        match self.append(table, after, until, writer) {
            Err(error) if error.is_damage() || matches!(error, Error::Row { .. }) => {
                if until - after <= 1 {
                    unreadable.insert(until);
                    return Ok(());
                }
                let middle = after + (until - after) / 2;
                self.append_readable(table, after, middle, writer, unreadable)?;
                self.append_readable(table, middle, until, writer, unreadable)
            }
            other => other,
        }
    }

    /// The last records of the UTC days after the record `after`, in order.
    fn day_ends(&self, after: i64) -> Result<Vec<i64>, Error> {
        let tables = records_tables(&self.connection).map_err(Error::database(&self.path))?;
        let records = tables
            .iter()
            .map(|table| format!("SELECT sequence, time_ms FROM {table}"))
            .collect::<Vec<_>>()
            .join(" UNION ALL ");
        let query = format!(
            "SELECT max(sequence) FROM ({records}) WHERE sequence > ? GROUP BY time_ms / 86400000 ORDER BY 1"
        );
        let mut statement = self
            .connection
            .prepare(&query)
            .map_err(Error::database(&self.path))?;
        let ends = statement
            .query_map([after], |row| row.get(0))
            .map_err(Error::database(&self.path))?;
        ends.collect::<rusqlite::Result<_>>()
            .map_err(Error::database(&self.path))
    }

    fn append(
        &self,
        table: &Table,
        after: i64,
        until: i64,
        writer: &mut Writer,
    ) -> Result<(), Error> {
        let wrong = Error::database(&self.path);
        let present = columns(&self.connection, table.name).map_err(&wrong)?;
        if present.is_empty() {
            return Ok(());
        }
        let mut statement = self
            .connection
            .prepare(&select_between(table, &present))
            .map_err(&wrong)?;
        let mut rows = statement
            .query(named_params! { ":after": after, ":until": until })
            .map_err(&wrong)?;
        let mut builder = RowsBuilder::new(table);
        while let Some(row) = rows.next().map_err(&wrong)? {
            let identity = Identity {
                host_id: &self.host_id,
                database_id: &self.database_id,
                sequence: row.get(0).map_err(&wrong)?,
                time_ms: row.get(1).map_err(&wrong)?,
            };
            let value = |(at, column): (usize, &gleaner_schemas::column::Column)| {
                let stored = row.get_ref(at + 2).map_err(&wrong)?;
                value(stored, column.kind).ok_or_else(|| Error::Row {
                    path: self.path.clone(),
                    table: table.name,
                })
            };
            let values = table
                .columns
                .iter()
                .enumerate()
                .map(value)
                .collect::<Result<_, Error>>()?;
            builder.push(identity, values)?;
        }
        if !builder.is_empty() {
            writer.append(table, builder.finish()?)?;
        }
        Ok(())
    }
}

/// A value as read back; `None` when it does not fit the column.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_sees_the_trace_as_it_was_when_it_began() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        let (store, _) = crate::trace::store::Store::open(&path, Some("host-a"), 0).unwrap();
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch("INSERT INTO gaps VALUES (1, 0, 0, 0, 'boot')")
            .unwrap();
        let trace = Trace::open(&path).unwrap();
        writer.execute_batch("DELETE FROM gaps").unwrap();
        assert_eq!(trace.day_ends(0).unwrap(), [1]);
        assert!(Trace::open(&path).unwrap().day_ends(0).unwrap().is_empty());
        drop(store);
    }
}
