//! One host's rows of one table as a Polars frame: the only file that knows both Arrow and Polars.
//!
//! The columns are copied: the four kinds that the schema has, plainly. Times become whole numbers
//! (`time_ms`), so that Polars needs no temporal features.

use crate::error::{AnalysisError, Result};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMillisecondType};
use polars::prelude::{
    BooleanChunked, Column, DataFrame, Float64Chunked, GroupsIndicator, Int64Chunked, IntoSeries,
    NamedFrom, PolarsError, Series, SortMultipleOptions, StringChunked,
};

/// The rows, and whose they are (for messages).
#[derive(Debug)]
pub(crate) struct Frame {
    rows: DataFrame,
    table: &'static str,
    host: String,
}

impl Frame {
    /// From what the dataset's reader gave.
    pub(crate) fn new(table: &'static str, host: &str, batch: &RecordBatch) -> Result<Self> {
        let fields = batch.schema();
        let columns = fields
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| {
                series(field.name(), array)
                    .map(Column::from)
                    .ok_or_else(|| AnalysisError::Column {
                        table,
                        host: host.to_owned(),
                        column: field.name().clone(),
                        found: array.data_type().to_string(),
                    })
            })
            .collect::<Result<Vec<_>>>()?;
        let rows = DataFrame::new(batch.num_rows(), columns)
            .map_err(|source| rows_error(table, host, source))?;
        Ok(Self {
            rows,
            table,
            host: host.to_owned(),
        })
    }

    pub(crate) fn rows_count(&self) -> usize {
        self.rows.height()
    }

    /// A column of whole numbers.
    pub(crate) fn integers(&self, column: &str) -> Result<&Int64Chunked> {
        self.column(column)?.i64().map_err(|e| self.error(e))
    }

    /// A column of floats.
    pub(crate) fn reals(&self, column: &str) -> Result<&Float64Chunked> {
        self.column(column)?.f64().map_err(|e| self.error(e))
    }

    /// A column of text.
    pub(crate) fn texts(&self, column: &str) -> Result<&StringChunked> {
        self.column(column)?.str().map_err(|e| self.error(e))
    }

    /// One text; empty where it is absent.
    pub(crate) fn text(&self, column: &str, row: usize) -> Result<String> {
        Ok(self.texts(column)?.get(row).unwrap_or_default().to_owned())
    }

    /// A column of flags.
    pub(crate) fn flags(&self, column: &str) -> Result<&BooleanChunked> {
        self.column(column)?.bool().map_err(|e| self.error(e))
    }

    /// A column of whole numbers that may not be absent.
    pub(crate) fn present(&self, column: &str) -> Result<Vec<i64>> {
        let values = self.integers(column)?;
        if values.null_count() > 0 {
            return Err(AnalysisError::Column {
                table: self.table,
                host: self.host.clone(),
                column: column.to_owned(),
                found: format!("{} absent values", values.null_count()),
            });
        }
        Ok(values.iter().flatten().collect())
    }

    /// Adds a column of whole numbers, or replaces the one of that name.
    pub(crate) fn set(&mut self, column: &str, values: &[i64]) -> Result<()> {
        let series = Series::new(column.into(), values);
        self.rows
            .with_column(series.into())
            .map(|_| ())
            .map_err(|e| rows_error(self.table, &self.host, e))
    }

    /// Sorts by these columns; equal rows keep their order.
    pub(crate) fn sort(&mut self, by: &[&str]) -> Result<()> {
        let options = SortMultipleOptions::default()
            .with_maintain_order(true)
            .with_multithreaded(false);
        self.rows
            .sort_in_place(by.iter().copied(), options)
            .map(|_| ())
            .map_err(|e| rows_error(self.table, &self.host, e))
    }

    /// Row numbers of the groups that `by` makes: groups in order of their first row, rows in order.
    pub(crate) fn groups(&self, by: &[&str]) -> Result<Vec<Vec<usize>>> {
        let keys = by
            .iter()
            .map(|name| self.column(name).cloned())
            .collect::<Result<Vec<_>>>()?;
        let grouped = self
            .rows
            .group_by_with_series(keys, false, true)
            .map_err(|e| self.error(e))?;
        Ok(grouped
            .get_groups()
            .iter()
            .map(|group| match group {
                GroupsIndicator::Idx((_, rows)) => rows.iter().map(|&r| r as usize).collect(),
                GroupsIndicator::Slice([first, len]) => {
                    (first as usize..(first + len) as usize).collect()
                }
            })
            .collect())
    }

    fn column(&self, name: &str) -> Result<&Column> {
        self.rows.column(name).map_err(|e| self.error(e))
    }

    fn error(&self, source: PolarsError) -> AnalysisError {
        rows_error(self.table, &self.host, source)
    }
}

fn rows_error(table: &'static str, host: &str, source: PolarsError) -> AnalysisError {
    AnalysisError::Rows {
        table,
        host: host.to_owned(),
        source,
    }
}

/// `None` for a type that the schema does not have.
fn series(name: &str, array: &dyn Array) -> Option<Series> {
    let series = match array.data_type() {
        DataType::Int64 => {
            let values: Int64Chunked = array.as_primitive::<Int64Type>().iter().collect();
            values.into_series()
        }
        DataType::Float64 => {
            let values: Float64Chunked = array.as_primitive::<Float64Type>().iter().collect();
            values.into_series()
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            let values: Int64Chunked = array
                .as_primitive::<TimestampMillisecondType>()
                .iter()
                .collect();
            return Some(values.into_series().with_name("time_ms".into()));
        }
        DataType::Utf8 => {
            let values: StringChunked = array.as_string::<i32>().iter().collect();
            values.into_series()
        }
        DataType::Boolean => {
            let values: BooleanChunked = array.as_boolean().iter().collect();
            values.into_series()
        }
        _ => return None,
    };
    Some(series.with_name(name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, StringArray,
        TimestampMillisecondArray,
    };
    use std::sync::Arc;

    fn frame(columns: Vec<(&str, ArrayRef)>) -> Result<Frame> {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        Frame::new("samples", "h", &batch)
    }

    #[test]
    fn each_kind_with_its_absent_values() {
        let frame = frame(vec![
            (
                "n",
                Arc::new(Int64Array::from(vec![Some(1), None])) as ArrayRef,
            ),
            ("x", Arc::new(Float64Array::from(vec![None, Some(0.5)]))),
            ("s", Arc::new(StringArray::from(vec![Some("a"), None]))),
            ("f", Arc::new(BooleanArray::from(vec![Some(true), None]))),
            (
                "time",
                Arc::new(TimestampMillisecondArray::from(vec![7, 8]).with_timezone("UTC")),
            ),
        ])
        .unwrap();
        assert_eq!(frame.rows_count(), 2);
        assert!(frame.integers("n").unwrap().iter().eq([Some(1), None]));
        assert!(frame.reals("x").unwrap().iter().eq([None, Some(0.5)]));
        assert!(frame.texts("s").unwrap().iter().eq([Some("a"), None]));
        assert!(frame.flags("f").unwrap().iter().eq([Some(true), None]));
        assert_eq!(frame.present("time_ms").unwrap(), [7, 8]);
        assert!(
            frame
                .present("n")
                .unwrap_err()
                .to_string()
                .contains("1 absent")
        );
    }

    #[test]
    fn a_kind_that_the_schema_lacks_is_refused_by_name() {
        let error =
            frame(vec![("n", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap_err();
        assert!(
            error.to_string().contains("column n of table samples"),
            "{error}"
        );
    }

    #[test]
    fn groups_keep_the_order_of_rows() {
        let frame = frame(vec![
            (
                "s",
                Arc::new(StringArray::from(vec!["b", "a", "b", "a", "c"])) as ArrayRef,
            ),
            ("n", Arc::new(Int64Array::from(vec![1, 1, 1, 2, 1]))),
        ])
        .unwrap();
        assert_eq!(
            frame.groups(&["s"]).unwrap(),
            [vec![0, 2], vec![1, 3], vec![4]]
        );
        assert_eq!(
            frame.groups(&["s", "n"]).unwrap(),
            [vec![0, 2], vec![1], vec![3], vec![4]]
        );
    }
}
