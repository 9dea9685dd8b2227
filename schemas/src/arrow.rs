//! Arrow: the schema of each table of a dataset, made from [`crate::rows`].
//!
//! Every table begins with the record's identity and time: `host_id`, `database_id`, `sequence`, `time`. A
//! field's metadata has its unit (`unit`), but not its meaning: meanings would take most of the space of a
//! small file. They are in `schemas/SCHEMA.md`.

use crate::SCHEMA_VERSION;
use crate::column::{Kind, Table};
use crate::renames;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::collections::HashMap;
use std::sync::Arc;

/// Metadata key under which an Arrow schema has the name of its table.
const TABLE_KEY: &str = "gleaner.table";
/// Metadata key under which an Arrow schema has its schema version.
const VERSION_KEY: &str = "gleaner.schema_version";

/// Names, in order, of the columns with which every table begins; the table's own columns follow.
pub const IDENTITY: [&str; 4] = ["host_id", "database_id", "sequence", "time"];

/// Returns the Arrow type of a column of `kind`.
#[must_use]
pub fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Integer => DataType::Int64,
        Kind::Real => DataType::Float64,
        Kind::Text => DataType::Utf8,
        Kind::Flag => DataType::Boolean,
    }
}

/// Type of the `time` column: milliseconds since 1970-01-01 UTC.
#[must_use]
pub fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

/// Returns the schema of `table` in a dataset, with the schema version in its metadata.
#[must_use]
pub fn schema(table: &Table) -> Schema {
    let types = [DataType::Utf8, DataType::Utf8, DataType::Int64, time_type()];
    let identity = IDENTITY
        .into_iter()
        .zip(types)
        .map(|(name, data_type)| Field::new(name, data_type, false));
    let own = table.columns.iter().map(|c| {
        Field::new(c.name, data_type(c.kind), !table.is_required(c))
            .with_metadata(metadata(c.unit()))
    });
    Schema::new_with_metadata(
        identity.into_iter().chain(own).collect::<Vec<_>>(),
        HashMap::from([
            (VERSION_KEY.to_owned(), SCHEMA_VERSION.to_string()),
            (TABLE_KEY.to_owned(), table.name.to_owned()),
        ]),
    )
}

/// Returns `schema`, which may come from a file of any version, with the present names of its table and
/// columns. Types, order and the recorded schema version are unchanged. A schema of the present version, as most
/// files have, is returned without a copy.
#[must_use]
pub fn with_present_names(schema: SchemaRef) -> SchemaRef {
    let is_present = |version: &String| *version == SCHEMA_VERSION.to_string();
    if schema.metadata.get(VERSION_KEY).is_some_and(is_present) {
        return schema;
    }
    let Some(table) = schema.metadata.get(TABLE_KEY) else {
        return schema; // without a table name, no column was renamed
    };
    let table = renames::table_name(table);
    let fields = schema.fields().iter().map(|field| {
        let name = renames::column_name(table, field.name());
        field.as_ref().clone().with_name(name)
    });
    let fields = fields.collect::<Vec<_>>();
    let metadata = schema.metadata.clone().with(TABLE_KEY, table);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

fn metadata(unit: Option<&str>) -> HashMap<String, String> {
    let unit = unit.map(|u| ("unit".to_owned(), u.to_owned()));
    unit.into_iter().collect()
}

/// Returns the schemas of all tables as JSON: names, types, units, and whether values may be absent.
/// `schemas/golden/` has this JSON of each version.
#[must_use]
pub fn golden_json() -> String {
    let tables: serde_json::Map<String, serde_json::Value> = crate::rows::DATASET_TABLES
        .iter()
        .map(|table| {
            let fields = schema(table)
                .fields()
                .iter()
                .map(|f| {
                    serde_json::json!({
                        "name": f.name(),
                        "type": f.data_type().to_string(),
                        "nullable": f.is_nullable(),
                        "unit": f.metadata().get("unit"),
                    })
                })
                .collect();
            (table.name.to_owned(), serde_json::Value::Array(fields))
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Object(tables))
}
