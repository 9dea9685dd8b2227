//! Checks that a dataset has exactly the rows of the agents' databases.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use gleaner_dataset::Dataset;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use gleaner_schemas::rows::TABLES;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Compares the dataset in the folder `dataset` with these databases, table by table. The dataset must have
/// as many rows as SQLite counts. Its values must equal those that the program `agent` exports from the
/// databases into the folder `scratch`. Returns the number of rows.
///
/// # Errors
/// Description of the difference, or an error of reading.
pub fn same_rows(
    agent: &Path,
    dataset: &Path,
    databases: &[PathBuf],
    scratch: &Path,
) -> Result<u64, String> {
    for database in databases {
        let mut export = Command::new(agent);
        export.arg("export").arg("--database").arg(database);
        let done = export.arg(scratch).output().map_err(said)?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
    }
    let found = Dataset::open(dataset).map_err(said)?;
    if let Some(problem) = found.verify().problems.first() {
        return Err(problem.to_string());
    }
    let expected = Dataset::open(scratch).map_err(said)?;
    let mut rows_count = 0;
    for table in TABLES {
        let mut stored = 0;
        for database in databases {
            stored += count(database, &table)?;
        }
        // Rows are counted in the manifest, since a reader of the files would hide repeated rows.
        let there = found.rows(&table);
        if there != stored {
            let name = table.name;
            return Err(format!(
                "{name}: {there} rows in the dataset, {stored} in SQLite"
            ));
        }
        differ(&table, &rows(&found, &table)?, &rows(&expected, &table)?)?;
        rows_count += stored;
    }
    Ok(rows_count)
}

fn count(database: &Path, table: &Table) -> Result<u64, String> {
    let connection = Connection::open(database).map_err(said)?;
    let query = format!("SELECT count(*) FROM {}", table.name);
    let counted = connection.query_row(&query, [], |row| row.get::<_, i64>(0));
    counted.map(i64::unsigned_abs).map_err(said)
}

fn rows(dataset: &Dataset, table: &Table) -> Result<RecordBatch, String> {
    let batches = dataset.scan(table).collect::<Result<Vec<_>, _>>();
    concat_batches(&Arc::new(schema(table)), &batches.map_err(said)?).map_err(said)
}

fn differ(table: &Table, found: &RecordBatch, expected: &RecordBatch) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let columns = found.schema();
    let same = |row: usize| found.slice(row, 1) == expected.slice(row, 1);
    let rows = 0..found.num_rows().min(expected.num_rows());
    let first = rows.into_iter().find(|row| !same(*row));
    let (found, expected) = first.map_or_else(
        || (format!("{found:?}"), format!("{expected:?}")),
        |row| {
            (
                format!("{:?}", found.slice(row, 1)),
                format!("{:?}", expected.slice(row, 1)),
            )
        },
    );
    Err(format!(
        "{} ({} columns) differs at row {first:?}: {found} instead of {expected}",
        table.name,
        columns.fields().len()
    ))
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
