//! A host's rows of one table. This is the only file that knows both Arrow and Polars.
//!
//! Columns stay the Arrow arrays that the dataset returned, uncopied; Polars groups rows by a few key
//! columns.

use crate::error::{AnalysisError, Result};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    UInt64Array, new_empty_array,
};
use arrow::compute::{filter, nullif, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMillisecondType};
use arrow::error::ArrowError;
use gleaner_schemas::arrow::data_type;
use gleaner_schemas::column::{Kind, Table};
use polars::prelude::{
    Column, DataFrame, GroupsIndicator, Int64Chunked, IntoSeries, NewChunkedArray, PolarsError,
    StringChunked,
};
use std::sync::Arc;

/// Key columns of a row: number of the database, sequence number in it, time.
pub(crate) const DATABASE: &str = "database";
pub(crate) const SEQUENCE: &str = "sequence";
pub(crate) const TIME: &str = "time_ms";

/// The rows, and their host's id (for messages).
#[derive(Debug)]
pub(crate) struct Frame {
    columns: Vec<(String, ArrayRef)>,
    rows_count: usize,
    table: &'static str,
    host: String,
}

/// A column whose values may be absent.
macro_rules! column {
    ($(#[doc = $doc:literal])+ $name:ident, $array:ty, $value:ty) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name<'a>(&'a $array);

        impl<'a> $name<'a> {
            /// Value in a row; `None` if it is absent, or the row is beyond the last.
            pub(crate) fn get(self, row: usize) -> Option<$value> {
                (row < self.0.len() && self.0.is_valid(row)).then(|| self.0.value(row))
            }

            pub(crate) fn iter(self) -> impl Iterator<Item = Option<$value>> + use<'a> {
                self.0.iter()
            }
        }
    };
}
column! {
    /// Column of integers.
    Integers, Int64Array, i64
}
column! {
    /// Column of floats.
    Reals, Float64Array, f64
}
column! {
    /// Column of text.
    Texts, StringArray, &'a str
}

impl<'a> Integers<'a> {
    /// All values; `None` if any is absent.
    fn all(self) -> Option<&'a [i64]> {
        (self.0.null_count() == 0).then(|| &self.0.values()[..])
    }
}

impl Frame {
    /// Frame of the record batches that the dataset's reader returned.
    pub(crate) fn new(table: &'static str, host: &str, batch: &RecordBatch) -> Result<Self> {
        let fields = batch.schema();
        let columns = fields.fields().iter().zip(batch.columns());
        let columns = columns.map(|(field, array)| match array.data_type() {
            DataType::Int64 | DataType::Float64 | DataType::Utf8 | DataType::Boolean => {
                Ok((field.name().clone(), Arc::clone(array)))
            }
            // Times are represented here as integers, in milliseconds.
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                let times = array.as_primitive::<TimestampMillisecondType>();
                let times = Int64Array::new(times.values().clone(), times.nulls().cloned());
                Ok((TIME.to_owned(), Arc::new(times) as ArrayRef))
            }
            other => Err(AnalysisError::Column {
                table,
                host: host.to_owned(),
                column: field.name().clone(),
                found: other.to_string(),
            }),
        });
        Ok(Self {
            columns: columns.collect::<Result<_>>()?,
            rows_count: batch.num_rows(),
            table,
            host: host.to_owned(),
        })
    }

    /// Frame of `table` without rows, with these columns; columns that the table lacks are integers.
    pub(crate) fn empty(table: &Table, host: &str, columns: &[&str]) -> Self {
        let array = |name: &str| {
            let column = table.columns.iter().find(|c| c.name == name);
            new_empty_array(&data_type(column.map_or(Kind::Integer, |c| c.kind)))
        };
        Self {
            columns: columns
                .iter()
                .map(|name| ((*name).to_owned(), array(name)))
                .collect(),
            rows_count: 0,
            table: table.name,
            host: host.to_owned(),
        }
    }

    pub(crate) fn rows_count(&self) -> usize {
        self.rows_count
    }

    /// Returns a column of integers.
    pub(crate) fn integers(&self, column: &str) -> Result<Integers<'_>> {
        let array = self.column(column)?.as_primitive_opt::<Int64Type>();
        array.map(Integers).ok_or_else(|| self.other_kind(column))
    }

    /// Returns a column of floats.
    pub(crate) fn reals(&self, column: &str) -> Result<Reals<'_>> {
        let array = self.column(column)?.as_primitive_opt::<Float64Type>();
        array.map(Reals).ok_or_else(|| self.other_kind(column))
    }

    /// Returns a column of text.
    pub(crate) fn texts(&self, column: &str) -> Result<Texts<'_>> {
        let array = self.column(column)?.as_string_opt::<i32>();
        array.map(Texts).ok_or_else(|| self.other_kind(column))
    }

    /// Returns one text; empty if it is absent.
    pub(crate) fn text(&self, column: &str, row: usize) -> Result<String> {
        Ok(self.texts(column)?.get(row).unwrap_or_default().to_owned())
    }

    /// Returns a column of flags.
    pub(crate) fn flags(&self, column: &str) -> Result<&BooleanArray> {
        let array = self.column(column)?.as_boolean_opt();
        array.ok_or_else(|| self.other_kind(column))
    }

    /// Returns a column of integers, none of which may be absent.
    pub(crate) fn present(&self, column: &str) -> Result<&[i64]> {
        let values = self.integers(column)?;
        values
            .all()
            .ok_or_else(|| self.unfit(column, format!("{} absent values", values.0.null_count())))
    }

    /// Adds a column of integers, or replaces the one of that name.
    pub(crate) fn set(&mut self, column: &str, values: Vec<i64>) {
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        match self.columns.iter_mut().find(|(name, _)| name == column) {
            Some((_, old)) => *old = values,
            None => self.columns.push((column.to_owned(), values)),
        }
    }

    /// Rows for which `is_kept` is true.
    pub(crate) fn filter_rows(&self, is_kept: &[bool]) -> Result<Self> {
        let is_kept = BooleanArray::from(is_kept.to_vec());
        let mut kept = Self {
            columns: self.columns.clone(),
            rows_count: is_kept.true_count(),
            table: self.table,
            host: self.host.clone(),
        };
        kept.change(|_, array| filter(array, &is_kept))?;
        Ok(kept)
    }

    /// Makes the values of one column absent in the rows where `rows` is true.
    pub(crate) fn forget(&mut self, column: &str, rows: Vec<bool>) -> Result<()> {
        let rows = BooleanArray::from(rows);
        self.change(|name, array| {
            if name == column {
                nullif(array, &rows)
            } else {
                Ok(Arc::clone(array))
            }
        })
    }

    /// Replaces each column by the result of `new` on it.
    fn change(
        &mut self,
        new: impl Fn(&str, &ArrayRef) -> Result<ArrayRef, ArrowError>,
    ) -> Result<()> {
        for (name, array) in &mut self.columns {
            *array = new(name, array).map_err(|e| AnalysisError::Column {
                table: self.table,
                host: self.host.clone(),
                column: name.clone(),
                found: e.to_string(),
            })?;
        }
        Ok(())
    }

    /// Reorders the rows; `order` are row numbers.
    pub(crate) fn reorder(&mut self, order: &[usize]) -> Result<()> {
        let order = UInt64Array::from_iter_values(order.iter().map(|&row| row as u64));
        self.change(|_, array| take(array, &order, None))
    }

    /// Row numbers grouped by the columns `by`: groups in the order of their first row, rows in order.
    pub(crate) fn groups(&self, by: &[&str]) -> Result<Vec<Vec<usize>>> {
        let keys = DataFrame::new(self.rows_count, self.keys(by)?).map_err(|e| self.error(e))?;
        let columns = keys.columns().to_vec();
        let grouped = keys.group_by_with_series(columns, false, true);
        let grouped = grouped.map_err(|e| self.error(e))?;
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

    /// Columns of integers or text, as Polars columns.
    fn keys(&self, by: &[&str]) -> Result<Vec<Column>> {
        let key = |name: &&str| {
            let array = self.column(name)?;
            let series = if let Some(text) = array.as_string_opt::<i32>() {
                StringChunked::from_iter(text.iter()).into_series()
            } else {
                let numbers = self.integers(name)?;
                match numbers.all() {
                    Some(values) => Int64Chunked::from_slice("".into(), values).into_series(),
                    None => numbers.iter().collect::<Int64Chunked>().into_series(),
                }
            };
            Ok(series.with_name((*name).into()).into())
        };
        by.iter().map(key).collect()
    }

    fn column(&self, name: &str) -> Result<&ArrayRef> {
        let found = self.columns.iter().find(|(known, _)| known == name);
        let found = found.map(|(_, array)| array);
        found.ok_or_else(|| self.unfit(name, "nothing".to_owned()))
    }

    fn other_kind(&self, column: &str) -> AnalysisError {
        let found = self
            .column(column)
            .map(|array| array.data_type().to_string());
        self.unfit(column, found.unwrap_or_default())
    }

    fn unfit(&self, column: &str, found: String) -> AnalysisError {
        AnalysisError::Column {
            table: self.table,
            host: self.host.clone(),
            column: column.to_owned(),
            found,
        }
    }

    fn error(&self, source: PolarsError) -> AnalysisError {
        AnalysisError::Rows {
            table: self.table,
            host: self.host.clone(),
            source,
        }
    }
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
