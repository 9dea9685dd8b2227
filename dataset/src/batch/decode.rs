//! A batch taken in from a stranger: nothing that it claims is believed before it is looked at.

use super::{Batch, frames};
use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::buffer::Buffer;
use arrow::datatypes::Schema;
use arrow::ipc::reader::StreamDecoder;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use gleaner_schemas::SCHEMA_VERSION;
use gleaner_schemas::arrow::{IDENTITY, schema};
use gleaner_schemas::column::Table;
use gleaner_schemas::rows::TABLES;
use std::io::{self, Read};
use std::panic;
use std::sync::Arc;

/// Largest window of zstd that is allocated for a sender: 8 MiB, as RFC 8878 recommends.
const WINDOW_LOG_MAX: u32 = 23;

/// How much of a sender is taken in at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a batch as sent.
    pub compressed_bytes: usize,
    /// Bytes of it uncompressed.
    pub content_bytes: usize,
}

impl Default for Limits {
    /// 8 MiB sent, 64 MiB uncompressed: a sample of 20,000 processes takes a twentieth of it.
    fn default() -> Self {
        Self {
            compressed_bytes: 8 << 20,
            content_bytes: 64 << 20,
        }
    }
}

/// Why a batch was not taken in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// More than the limits allow.
    #[error("the batch is larger than {limit_bytes} bytes; send fewer records at once")]
    TooLarge {
        /// The limit that it exceeds.
        limit_bytes: usize,
    },
    /// From a newer Gleaner.
    #[error(
        "the batch has schema version {found}, and this program knows up to {SCHEMA_VERSION}; upgrade the collector before the agents"
    )]
    Newer {
        /// Its version.
        found: u32,
    },
    /// Not a batch.
    #[error("not a batch of records: {detail}")]
    Malformed {
        /// What is wrong.
        detail: String,
    },
}

impl Batch {
    /// The batch in `body`, with the columns of this program's schema version: what an older one did not
    /// record is absent.
    ///
    /// # Errors
    /// [`BatchError`]; memory and time are bounded by `limits` whatever `body` holds.
    pub fn decode(body: &[u8], limits: &Limits) -> Result<Self, BatchError> {
        if body.len() > limits.compressed_bytes {
            return Err(BatchError::TooLarge {
                limit_bytes: limits.compressed_bytes,
            });
        }
        let content = Buffer::from_vec(decompress(body, limits.content_bytes)?);
        let streams = frames::streams(&content).map_err(malformed)?;
        let mut tables = Vec::new();
        for place in streams {
            let stream = content.slice_with_length(place.start, place.len());
            // Arrow's decoder slices some buffers without asking for their length.
            let read = panic::catch_unwind(|| read_stream(stream));
            tables.extend(read.map_err(|_| malformed("a column that contradicts itself"))??);
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

fn read_stream(mut content: Buffer) -> Result<Vec<(Table, RecordBatch)>, BatchError> {
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
        if let (Some(table), Some(rows)) = (of, rows) {
            tables.push((table, adapted(&table, &rows)?));
        }
    }
    decoder.finish().map_err(|e| malformed(e.to_string()))?;
    Ok(tables)
}

/// The table that a stream says it is of; it is refused when this program is too old for it.
fn table_of(schema: &Schema) -> Result<Table, BatchError> {
    let entry = |key: &str| schema.metadata().get(key).map(String::as_str);
    let version = entry("gleaner.schema_version").and_then(|v| v.parse().ok());
    let version: u32 = version.ok_or_else(|| malformed("a stream without a schema version"))?;
    if version > SCHEMA_VERSION {
        return Err(BatchError::Newer { found: version });
    }
    let name = entry("gleaner.table").ok_or_else(|| malformed("a stream without a table"))?;
    // Not what only a collector writes.
    let found = TABLES.into_iter().find(|t| t.name == name);
    found.ok_or_else(|| malformed(format!("there is no table {name:?}")))
}

/// `rows` under the table's own schema.
fn adapted(table: &Table, rows: &RecordBatch) -> Result<RecordBatch, BatchError> {
    let expected = Arc::new(schema(table));
    let wrong = |detail: String| malformed(format!("table {}: {detail}", table.name));
    let found = rows.schema_ref();
    if let Some(unknown) = found
        .fields()
        .iter()
        .find(|f| expected.index_of(f.name()).is_err())
    {
        return Err(wrong(format!("there is no column {:?}", unknown.name())));
    }
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
    // A dataset may lack more, of hosts without an agent.
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
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(expected, columns, &options).map_err(|e| wrong(e.to_string()))
}

fn malformed(detail: impl Into<String>) -> BatchError {
    BatchError::Malformed {
        detail: detail.into(),
    }
}
