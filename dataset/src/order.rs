//! The order of a dataset's rows, and each row once.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::row::{Row, RowConverter, SortField};
use gleaner_schemas::column::Table;
use std::collections::HashSet;

/// Columns that order the rows of `table` and together name one: host, time, sequence, key, database.
/// A record has one time, so that its repeats are neighbours.
pub(crate) fn columns(table: &Table) -> Vec<&'static str> {
    let mut columns = vec!["host_id", "time", "sequence"];
    columns.extend(table.key);
    columns.push("database_id");
    columns
}

/// The rows of `batch` in order, each once, without those in `held` (which needs the columns of
/// [`columns`] only).
pub(crate) fn sorted_once(
    table: &Table,
    batch: &RecordBatch,
    held: &[RecordBatch],
) -> Result<RecordBatch, ArrowError> {
    let arrays = name_arrays(table, batch)?;
    let fields = arrays
        .iter()
        .map(|a| SortField::new(a.data_type().clone()))
        .collect();
    let converter = RowConverter::new(fields)?;
    let rows = converter.convert_columns(&arrays)?;
    let held = held
        .iter()
        .map(|batch| converter.convert_columns(&name_arrays(table, batch)?))
        .collect::<Result<Vec<_>, _>>()?;
    let held: HashSet<Row<'_>> = held.iter().flat_map(|rows| rows.iter()).collect();

    let mut kept: Vec<(Row<'_>, u32)> = rows.iter().zip(0..).collect();
    kept.retain(|(row, _)| !held.contains(row));
    kept.sort(); // by row, then by position: of repeats, the first stays
    kept.dedup_by_key(|(row, _)| *row);
    let positions: UInt32Array = kept.into_iter().map(|(_, position)| position).collect();
    take_record_batch(batch, &positions)
}

fn name_arrays(table: &Table, batch: &RecordBatch) -> Result<Vec<ArrayRef>, ArrowError> {
    columns(table)
        .into_iter()
        .map(|name| Ok(batch.column(batch.schema_ref().index_of(name)?).clone()))
        .collect()
}
