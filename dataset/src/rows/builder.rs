//! Collects single rows into a record batch of a table.

use crate::{DatasetError, Result};
use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder,
    TimestampMillisecondBuilder,
};
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::{Kind, Table, Value};
use std::sync::Arc;

/// Columns that identify a record, and its time.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Id of the host: a keyed hash of its machine id.
    pub host_id: &'a str,
    /// Id of the database that recorded the row.
    pub database_id: &'a str,
    /// Sequence number of the record within the database.
    pub sequence: i64,
    /// Time of the record, ms since 1970-01-01 UTC.
    pub time_ms: i64,
}

/// Collects rows of one table.
#[derive(Debug)]
pub struct RowsBuilder {
    table: Table,
    host_id: StringBuilder,
    database_id: StringBuilder,
    sequence: Int64Builder,
    time: TimestampMillisecondBuilder,
    columns: Vec<ColumnBuilder>,
}

#[derive(Debug)]
enum ColumnBuilder {
    Integer(Int64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
    Flag(BooleanBuilder),
}

impl RowsBuilder {
    /// Builder for rows of `table`.
    #[must_use]
    pub fn new(table: &Table) -> Self {
        Self {
            table: *table,
            host_id: StringBuilder::with_capacity(0, 0),
            database_id: StringBuilder::with_capacity(0, 0),
            sequence: Int64Builder::with_capacity(0),
            time: TimestampMillisecondBuilder::with_capacity(0).with_timezone("UTC"),
            columns: table
                .columns
                .iter()
                .map(|c| ColumnBuilder::new(c.kind))
                .collect(),
        }
    }

    /// Number of rows collected so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sequence.values_slice().len()
    }

    /// Returns true if there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a row; `values` are in the order of the table's columns
    /// ([`gleaner_schemas::column::Row::to_values`]).
    ///
    /// # Errors
    /// [`DatasetError::WrongSchema`] if the number of values or the kind of a value does not match. The row
    /// is then only partly added, and the builder must not be used any more.
    pub fn push(&mut self, identity: Identity<'_>, values: Vec<Value>) -> Result<()> {
        if values.len() != self.columns.len() {
            return Err(DatasetError::WrongSchema {
                table: self.table.name.to_owned(),
                detail: format!("{} values for {} columns", values.len(), self.columns.len()),
            });
        }
        self.host_id.append_value(identity.host_id);
        self.database_id.append_value(identity.database_id);
        self.sequence.append_value(identity.sequence);
        self.time.append_value(identity.time_ms);
        for ((builder, column), value) in
            self.columns.iter_mut().zip(self.table.columns).zip(values)
        {
            builder
                .push(value)
                .map_err(|value| DatasetError::WrongSchema {
                    table: self.table.name.to_owned(),
                    detail: format!("column {} cannot hold {value:?}", column.name),
                })?;
        }
        Ok(())
    }

    /// Adds a row that has values only for the columns in `known`; the others are absent.
    ///
    /// # Errors
    /// As [`RowsBuilder::push`]; [`DatasetError::UnknownColumn`].
    pub fn push_known(&mut self, identity: Identity<'_>, known: &[(&str, Value)]) -> Result<()> {
        let mut values = vec![Value::Null; self.columns.len()];
        for (name, value) in known {
            let at = self.table.columns.iter().position(|c| c.name == *name);
            let place = at.and_then(|at| values.get_mut(at));
            let place = place.ok_or_else(|| DatasetError::UnknownColumn {
                table: self.table.name.to_owned(),
                column: (*name).to_owned(),
            })?;
            *place = value.clone();
        }
        self.push(identity, values)
    }

    /// Returns the collected rows as a record batch.
    ///
    /// # Errors
    /// [`DatasetError::WrongSchema`] if a required value is absent.
    pub fn finish(mut self) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(self.host_id.finish()),
            Arc::new(self.database_id.finish()),
            Arc::new(self.sequence.finish()),
            Arc::new(self.time.finish()),
        ];
        arrays.extend(self.columns.into_iter().map(ColumnBuilder::finish));
        RecordBatch::try_new(Arc::new(schema(&self.table)), arrays).map_err(|e| {
            DatasetError::WrongSchema {
                table: self.table.name.to_owned(),
                detail: e.to_string(),
            }
        })
    }
}

impl ColumnBuilder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integer(Int64Builder::with_capacity(0)),
            Kind::Real => Self::Real(Float64Builder::with_capacity(0)),
            Kind::Text => Self::Text(StringBuilder::with_capacity(0, 0)),
            Kind::Flag => Self::Flag(BooleanBuilder::with_capacity(0)),
        }
    }

    /// Appends a value. If it is of another kind than the column, returns it as an error.
    fn push(&mut self, value: Value) -> Result<(), Value> {
        match (self, value) {
            (Self::Integer(b), Value::Null) => b.append_null(),
            (Self::Real(b), Value::Null) => b.append_null(),
            (Self::Text(b), Value::Null) => b.append_null(),
            (Self::Flag(b), Value::Null) => b.append_null(),
            (Self::Integer(b), Value::Integer(v)) => b.append_value(v),
            (Self::Real(b), Value::Real(v)) => b.append_value(v),
            (Self::Text(b), Value::Text(v)) => b.append_value(v),
            (Self::Flag(b), Value::Flag(v)) => b.append_value(v),
            (Self::Flag(b), Value::Integer(v @ 0..=1)) => b.append_value(v == 1), // from SQLite
            (_, value) => return Err(value),
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Integer(mut b) => Arc::new(b.finish()),
            Self::Real(mut b) => Arc::new(b.finish()),
            Self::Text(mut b) => Arc::new(b.finish()),
            Self::Flag(mut b) => Arc::new(b.finish()),
        }
    }
}
