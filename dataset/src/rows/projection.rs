//! A table's schema, reduced to some of its columns.

use crate::{DatasetError, Result};
use arrow::datatypes::{Schema, SchemaRef};
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use std::sync::Arc;

/// The table's schema with only `columns`.
pub(crate) fn projected(table: &Table, columns: &[&str]) -> Result<SchemaRef> {
    let whole = schema(table);
    let fields = columns
        .iter()
        .map(|name| match whole.field_with_name(name) {
            Ok(field) => Ok(field.clone()),
            Err(_) => Err(DatasetError::UnknownColumn {
                table: table.name.to_owned(),
                column: (*name).to_owned(),
            }),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Schema::new_with_metadata(fields, whole.metadata)))
}
