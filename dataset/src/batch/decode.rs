//! Decodes batches from untrusted senders: everything that a batch claims is checked before use.

use super::{Batch, frames};
use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Schema};
use arrow::ipc::reader::StreamDecoder;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use gleaner_schemas::SCHEMA_VERSION;
use gleaner_schemas::arrow::{IDENTITY, schema, with_present_names};
use gleaner_schemas::column::Table;
use gleaner_schemas::renames::table_name;
use gleaner_schemas::rows::TABLES;
use std::io::{self, Read};
use std::panic;
use std::sync::Arc;

/// Maximum zstd window allocated for a sender: 8 MiB, as RFC 8878 recommends.
const WINDOW_LOG_MAX: u32 = 23;
/// Maximum bytes of absent columns that are filled in per byte of content. Later versions may have several
/// times as many columns as an old agent sends.
const FILLED_IN_PER_BYTE: usize = 4;
/// Memory of an Arrow array in addition to its values.
const ARRAY_BYTES: usize = 256;
/// Maximum length of a text, in bytes. A path has up to 4,096 bytes, and takes three times as many if it is not UTF-8.
const TEXT_BYTES: usize = 16 << 10;

/// Maximum size of a batch that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the compressed batch as sent, in bytes.
    pub compressed_bytes: usize,
    /// Maximum uncompressed size, in bytes.
    pub content_bytes: usize,
}

impl Default for Limits {
    /// Returns 8 MiB compressed and 64 MiB uncompressed; a sample with 20,000 processes takes a twentieth of that.
    fn default() -> Self {
        Self {
            compressed_bytes: 8 << 20,
            content_bytes: 64 << 20,
        }
    }
}

/// Reason why a batch was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The batch exceeds a limit.
    #[error("the batch is larger than {limit_bytes} bytes; send fewer records per batch")]
    TooLarge {
        /// The exceeded limit.
        limit_bytes: usize,
    },
    /// The batch is from a newer Gleaner.
    #[error(
        "the batch has schema version {found}, and this program knows up to {SCHEMA_VERSION}; upgrade the collector before the agents"
    )]
    Newer {
        /// Schema version of the batch.
        found: u32,
    },
    /// The bytes are not a batch.
    #[error("not a batch of records: {detail}")]
    Malformed {
        /// Description of the fault.
        detail: String,
    },
}

impl Batch {
    /// Decodes the batch in `body`. The result has the tables and columns of this program's schema version.
    /// Tables and columns that an older version named differently get their present names; columns that it
    /// did not record are absent.
    ///
    /// # Errors
    /// [`BatchError`]. Whatever `body` contains, `limits` bounds the memory and time used.
    pub fn decode(body: &[u8], limits: &Limits) -> Result<Self, BatchError> {
        if body.len() > limits.compressed_bytes {
            return Err(BatchError::TooLarge {
                limit_bytes: limits.compressed_bytes,
            });
        }
        let content = Buffer::from_vec(decompress(body, limits.content_bytes)?);
        let mut fill = content.len().saturating_mul(FILLED_IN_PER_BYTE);
        let streams = frames::streams(&content).map_err(malformed)?;
        let mut tables = Vec::new();
        for place in streams {
            let stream = content.slice_with_length(place.start, place.len());
            // Arrow's decoder slices some buffers without checking their length; a short buffer makes it panic.
            let read = panic::catch_unwind(|| read_stream(stream, fill));
            let (read, left) =
                read.map_err(|_| malformed("a column that contradicts itself"))??;
            tables.extend(read);
            fill = left;
        }
        Self::new(tables).map_err(malformed)
    }
}

fn decompress(body: &[u8], limit_bytes: usize) -> Result<Vec<u8>, BatchError> {
    let read = || -> io::Result<Vec<u8>> {
        let mut decoder = zstd::Decoder::with_buffer(body)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        let mut content = Vec::new();
        let limit = (limit_bytes as u64).saturating_add(1);
        decoder.take(limit).read_to_end(&mut content)?;
        Ok(content)
    };
    let content = read().map_err(|e| malformed(format!("cannot be decompressed ({e})")))?;
    if content.len() > limit_bytes {
        return Err(BatchError::TooLarge { limit_bytes });
    }
    Ok(content)
}

/// Tables, each with its rows.
type Tables = Vec<(Table, RecordBatch)>;

/// Reads the rows of one stream. Also returns the part of `fill` that remains for absent columns of later streams.
fn read_stream(mut content: Buffer, mut fill: usize) -> Result<(Tables, usize), BatchError> {
    let mut tables = Vec::new();
    let mut decoder = StreamDecoder::new();
    let mut of: Option<Table> = None;
    while !content.is_empty() {
        let rows = decoder
            .decode(&mut content)
            .map_err(|e| malformed(e.to_string()))?;
        if of.is_none()
            && let Some(schema) = decoder.schema()
        {
            of = Some(table_of(&schema)?);
        }
        if let (Some(table), Some(rows)) = (of, rows)
            && rows.num_rows() > 0
        {
            tables.push((table, adapted(&table, &rows, &mut fill)?));
        }
    }
    decoder.finish().map_err(|e| malformed(e.to_string()))?;
    Ok((tables, fill))
}

/// The table that a stream's schema names. A stream from a newer schema version is rejected.
fn table_of(schema: &Schema) -> Result<Table, BatchError> {
    let entry = |key: &str| schema.metadata().get(key).map(String::as_str);
    let version = entry("gleaner.schema_version").and_then(|v| v.parse().ok());
    let version: u32 = version.ok_or_else(|| malformed("a stream without a schema version"))?;
    if version > SCHEMA_VERSION {
        return Err(BatchError::Newer { found: version });
    }
    let name = entry("gleaner.table").ok_or_else(|| malformed("a stream without a table"))?;
    // `TABLES` does not contain the tables that only a collector writes.
    let found = TABLES.into_iter().find(|t| t.name == table_name(name));
    found.ok_or_else(|| malformed(format!("there is no table {name:?}")))
}

/// Converts `rows` to the table's own schema. Absent columns are filled in, and `fill` is reduced by their memory.
fn adapted(table: &Table, rows: &RecordBatch, fill: &mut usize) -> Result<RecordBatch, BatchError> {
    let expected = Arc::new(schema(table));
    let wrong = |detail: String| malformed(format!("table {}: {detail}", table.name));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let named = with_present_names(rows.schema());
    let rows = RecordBatch::try_new_with_options(named, rows.columns().to_vec(), &options)
        .map_err(|e| wrong(e.to_string()))?;
    if let Some(unknown) = rows
        .schema_ref()
        .fields()
        .iter()
        .find(|f| expected.index_of(f.name()).is_err())
    {
        return Err(wrong(format!("there is no column {:?}", unknown.name())));
    }
    if let Some(lacking) = expected.fields()[..IDENTITY.len()]
        .iter()
        .find(|f| rows.column_by_name(f.name()).is_none())
    {
        return Err(wrong(format!("there is no column {}", lacking.name())));
    }
    let absent = expected.fields().iter();
    let absent = absent.filter(|f| rows.column_by_name(f.name()).is_none());
    let needed = absent.fold(0_usize, |sum, field| {
        let values = rows.num_rows().saturating_mul(row_bytes(field.data_type()));
        sum.saturating_add(values).saturating_add(ARRAY_BYTES)
    });
    *fill = fill.checked_sub(needed).ok_or_else(|| {
        wrong(format!(
            "{} rows lack more columns than its size allows",
            rows.num_rows()
        ))
    })?;
    let column = |field: &arrow::datatypes::Field| -> Result<ArrayRef, BatchError> {
        match rows.column_by_name(field.name()) {
            Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
            Some(column) => Err(wrong(format!(
                "column {} is {} instead of {}",
                field.name(),
                column.data_type(),
                field.data_type()
            ))),
            None => Ok(new_null_array(field.data_type(), rows.num_rows())),
        }
    };
    let columns = expected
        .fields()
        .iter()
        .map(|f| column(f))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(field) = long_text(&expected, &columns) {
        return Err(wrong(format!(
            "column {field} has a text of more than {TEXT_BYTES} bytes"
        )));
    }
    // Some columns may be absent in a dataset, for hosts without an agent, but never in an agent's batch.
    let own = table.columns.iter().zip(&columns[IDENTITY.len()..]);
    if let Some((lacking, _)) = own
        .into_iter()
        .find(|(column, values)| !column.nullable && values.null_count() > 0)
    {
        return Err(wrong(format!(
            "column {} is absent in some rows, and agents always fill it in",
            lacking.name
        )));
    }
    RecordBatch::try_new_with_options(expected, columns, &options).map_err(|e| wrong(e.to_string()))
}

/// Bytes that one absent value of this type takes, including its validity.
fn row_bytes(of: &DataType) -> usize {
    of.primitive_width().unwrap_or(4) + 1
}

/// Name of a column that has a text longer than [`TEXT_BYTES`], if any.
fn long_text<'a>(schema: &'a Schema, columns: &[ArrayRef]) -> Option<&'a str> {
    let is_long = |column: &ArrayRef| {
        let texts = column.as_string_opt::<i32>();
        let mut lengths = texts
            .into_iter()
            .flat_map(|texts| texts.offsets().lengths());
        lengths.any(|length| length > TEXT_BYTES)
    };
    let mut fields = schema.fields().iter().zip(columns);
    fields
        .find(|(_, column)| is_long(column))
        .map(|(field, _)| field.name().as_str())
}

fn malformed(detail: impl Into<String>) -> BatchError {
    BatchError::Malformed {
        detail: detail.into(),
    }
}
