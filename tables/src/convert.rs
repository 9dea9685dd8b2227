//! Arrow rows as Parquet with the field ids that Iceberg needs.

use crate::iceberg::schema::Schema;
use crate::{Result, TableError};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use gleaner_dataset::DatasetError;
use gleaner_schemas::arrow as stored;
use gleaner_schemas::column::Table;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Rows after which a row group ends, with the last rows of the present batch. A group of wide rows takes some 60 MB
/// of memory while it is written.
const GROUP_ROWS: usize = 65_536;

/// Arrow schema of the Parquet files of `table`: the dataset's columns, with ids, and times in microseconds, which
/// is Iceberg's unit.
pub(crate) fn arrow_schema(table: &Table, schema: &Schema) -> SchemaRef {
    let stored = stored::schema(table);
    let fields = stored.fields().iter().map(|field| {
        let mut field = Field::clone(field);
        if matches!(field.data_type(), DataType::Timestamp(..)) {
            field = field.with_data_type(DataType::Timestamp(
                TimeUnit::Microsecond,
                Some("UTC".into()),
            ));
        }
        let id = schema.id_of(field.name());
        let id = id.map(|id| (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string()));
        field.with_metadata(id.into_iter().collect::<HashMap<_, _>>())
    });
    Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()))
}

/// Writes `rows`, which are sorted by host and time, to `file` as Parquet; returns their number. `path` is the file's,
/// for errors.
pub(crate) fn write(
    rows: impl Iterator<Item = Result<RecordBatch, DatasetError>>,
    schema: &SchemaRef,
    file: &File,
    path: &Path,
) -> Result<u64> {
    let options = ArrowWriterOptions::new()
        .with_properties(properties(schema)?)
        .with_skip_arrow_metadata(true); // it takes some KB in each file, and says nothing new
    let writer = ArrowWriter::try_new_with_options(file, Arc::clone(schema), options);
    let mut writer = writer.map_err(TableError::io("write", path))?;
    let mut count = 0;
    for batch in rows {
        let batch = conform(&batch?, schema).map_err(TableError::io("write", path))?;
        count += batch.num_rows() as u64;
        writer
            .write(&batch)
            .map_err(TableError::io("write", path))?;
        if writer.in_progress_rows() >= GROUP_ROWS {
            writer.flush().map_err(TableError::io("write", path))?;
        }
    }
    writer.close().map_err(TableError::io("write", path))?;
    Ok(count)
}

fn properties(schema: &SchemaRef) -> Result<WriterProperties> {
    let level = ZstdLevel::try_new(1).map_err(TableError::io("configure", "zstd"))?;
    // Dictionaries shorten columns of texts alone; with columns of numbers they cost half of the time and space.
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(None)
        .set_dictionary_enabled(false);
    for field in schema
        .fields()
        .iter()
        .filter(|f| f.data_type() == &DataType::Utf8)
    {
        let column = ColumnPath::from(field.name().as_str());
        properties = properties.set_column_dictionary_enabled(column, true);
    }
    let sorted = ["host_id", "time"].iter().filter_map(|name| {
        Some(SortingColumn {
            column_idx: i32::try_from(schema.index_of(name).ok()?).ok()?,
            descending: false,
            nulls_first: true,
        })
    });
    Ok(properties
        .set_sorting_columns(Some(sorted.collect()))
        .build())
}

/// The rows with the column types of `schema`. It is an error if a time does not fit.
fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        cast_with_options(column, field.data_type(), &options)
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}
