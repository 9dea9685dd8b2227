//! Sorts a dataset's rows, and removes repetitions.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::row::{Row, RowConverter, SortField};
use gleaner_schemas::column::Table;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Columns by which the rows of `table` are ordered: host, time, sequence, key, database. Together they
/// identify a row. All rows of a record have the same time, so that repetitions are neighbours.
pub(crate) fn columns(table: &Table) -> Vec<&'static str> {
    let mut columns = vec!["host_id", "time", "sequence"];
    columns.extend(table.key);
    columns.push("database_id");
    columns
}

/// The rows of `batch` sorted and without repetitions. Rows that are also in `held` are left out; of `held`,
/// only the columns of [`columns`] are needed.
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
    kept.sort(); // by row, then by position: the first of repetitions stays
    kept.dedup_by_key(|(row, _)| *row);
    let positions: UInt32Array = kept.into_iter().map(|(_, position)| position).collect();
    take_record_batch(batch, &positions)
}

/// Number of rows of `batch` that repeat a row of `held`, but differ from it in a column that is not in
/// `except`.
pub(crate) fn count_contradictions(
    table: &Table,
    batch: &RecordBatch,
    held: &[RecordBatch],
    except: &[&str],
) -> Result<u64, ArrowError> {
    let fields = |arrays: &[ArrayRef]| -> Vec<SortField> {
        let kinds = arrays.iter().map(|array| array.data_type().clone());
        kinds.map(SortField::new).collect()
    };
    let arrays = name_arrays(table, batch)?;
    let names = RowConverter::new(fields(&arrays))?;
    let compared = |batch: &RecordBatch| -> Vec<ArrayRef> {
        let all = batch.schema_ref().fields().iter().zip(batch.columns());
        let compared = all.filter(|(field, _)| !except.contains(&field.name().as_str()));
        compared.map(|(_, array)| Arc::clone(array)).collect()
    };
    let values = compared(batch);
    let whole = RowConverter::new(fields(&values))?;
    let (named, said) = (
        names.convert_columns(&arrays)?,
        whole.convert_columns(&values)?,
    );
    let by_name: HashMap<Row<'_>, Row<'_>> = named.iter().zip(said.iter()).collect();
    let mut contradicted = 0;
    for held in held {
        let held_names = names.convert_columns(&name_arrays(table, held)?)?;
        let held_said = whole.convert_columns(&compared(held))?;
        for (name, said) in held_names.iter().zip(held_said.iter()) {
            let appended = by_name.get(&name);
            contradicted += u64::from(appended.is_some_and(|appended| *appended != said));
        }
    }
    Ok(contradicted)
}

fn name_arrays(table: &Table, batch: &RecordBatch) -> Result<Vec<ArrayRef>, ArrowError> {
    columns(table)
        .into_iter()
        .map(|name| Ok(batch.column(batch.schema_ref().index_of(name)?).clone()))
        .collect()
}
