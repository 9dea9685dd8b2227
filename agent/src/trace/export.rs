//! Exports the trace to a dataset: records that the dataset does not have yet.

use crate::Error;
use crate::trace::database::records_tables;
use crate::trace::rows::{SALVAGED_AT_ONCE, Trace, can_be_read_around};
use gleaner_dataset::{RowsBuilder, Writer};
use gleaner_schemas::column::Table;
use gleaner_schemas::rows::TABLES;
use gleaner_schemas::units::Bytes;
use rusqlite::Connection;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Data added by an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportResult {
    /// The dataset's folder.
    pub dataset: PathBuf,
    /// Number of rows added.
    pub rows_count: u64,
    /// Number of files added.
    pub files_count: usize,
    /// Total length of the files, in bytes.
    pub files_bytes: u64,
    /// Last record that the dataset now has.
    pub last_sequence: i64,
    /// Number of records of a damaged database that could not be read completely.
    pub unreadable_records_count: usize,
}

/// Adds the trace at `database` to the dataset at `dataset`, one UTC day at a time: each day is durable
/// before the next is read. Of a damaged database, all readable records are added.
///
/// # Errors
/// The trace cannot be read or the dataset cannot be written; days added before that stay.
pub fn export(database: &Path, dataset: &Path) -> Result<ExportResult, Error> {
    let trace = Trace::open(database)?;
    let mut exported = ExportResult {
        dataset: dataset.to_owned(),
        ..ExportResult::default()
    };
    match by_day(&trace, database, &mut exported) {
        Err(error) if can_be_read_around(&error) => salvage(&trace, &mut exported)?,
        other => other?,
    }
    Ok(exported)
}

fn by_day(trace: &Trace, path: &Path, exported: &mut ExportResult) -> Result<(), Error> {
    let mut writer = Writer::open(&exported.dataset)?;
    let mut after = exported_to(trace, &mut writer)?;
    for until in day_ends(&trace.connection, after).map_err(Error::database(path))? {
        for table in &TABLES {
            if let Some(rows) = trace.rows(table, (after, until), usize::MAX)? {
                append(table, rows.builder, &mut writer)?;
            }
        }
        exported.seal(&mut writer, until)?;
        after = until;
    }
    exported.last_sequence = after;
    Ok(())
}

/// Exports readable records around damage.
fn salvage(trace: &Trace, exported: &mut ExportResult) -> Result<(), Error> {
    let mut writer = Writer::open(&exported.dataset)?;
    let mut after = exported_to(trace, &mut writer)?;
    let last = trace.last_readable()?;
    let mut unreadable = BTreeSet::new();
    while after < last {
        after = trace.before_next_readable(after, last);
        let until = last.min(after.saturating_add(SALVAGED_AT_ONCE));
        for table in &TABLES {
            for rows in trace.readable_rows(table, (after, until), &mut unreadable)? {
                append(table, rows.builder, &mut writer)?;
            }
        }
        exported.seal(&mut writer, until)?;
        after = until;
    }
    exported.last_sequence = after;
    exported.unreadable_records_count = unreadable.len();
    Ok(())
}

impl ExportResult {
    fn seal(&mut self, writer: &mut Writer, until: i64) -> Result<(), Error> {
        let summary = writer.seal()?;
        self.rows_count += summary.rows;
        self.files_count += summary.files;
        self.files_bytes += summary.bytes;
        self.last_sequence = until;
        Ok(())
    }

    /// Renders the result as text.
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

/// Returns the last record of this trace that the dataset has.
fn exported_to(trace: &Trace, writer: &mut Writer) -> Result<i64, Error> {
    let last = writer.last_sequence(&trace.host_id, &trace.database_id)?;
    Ok(last.unwrap_or(0))
}

fn append(table: &Table, rows: RowsBuilder, writer: &mut Writer) -> Result<(), Error> {
    if !rows.is_empty() {
        writer.append(table, rows.finish()?)?;
    }
    Ok(())
}

/// Last record of each UTC day after the record `after`, in order.
fn day_ends(connection: &Connection, after: i64) -> rusqlite::Result<Vec<i64>> {
    let tables = records_tables(connection)?;
    let records = tables
        .iter()
        .map(|table| format!("SELECT sequence, time_ms FROM {table}"))
        .collect::<Vec<_>>()
        .join(" UNION ALL ");
    let query = format!(
        "SELECT max(sequence) FROM ({records}) WHERE sequence > ? GROUP BY time_ms / 86400000 ORDER BY 1"
    );
    let mut statement = connection.prepare(&query)?;
    let ends = statement.query_map([after], |row| row.get(0))?;
    ends.collect()
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
        assert_eq!(day_ends(&trace.connection, 0).unwrap(), [1]);
        let trace = Trace::open(&path).unwrap();
        assert!(day_ends(&trace.connection, 0).unwrap().is_empty());
        drop(store);
    }
}
