//! Encodes batches for sending.

use super::Batch;
use crate::{DatasetError, Result};
use arrow::ipc::MetadataVersion;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow::record_batch::RecordBatch;
use gleaner_schemas::column::Table;
use std::io;

/// zstd's default level. Level 9 would save 5 % more, and take five times as long.
const LEVEL: i32 = 3;
/// Arrow's smallest alignment. With 64, a batch of few rows would be twice as large before compression.
const ALIGNMENT_BYTES: usize = 8;

impl Batch {
    /// Encodes the rows of `tables` for sending. Tables without rows are left out.
    ///
    /// # Errors
    /// [`DatasetError::Rows`] if Arrow cannot write the rows.
    pub fn encode(tables: &[(Table, RecordBatch)]) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        for (table, rows) in tables.iter().filter(|(_, rows)| rows.num_rows() > 0) {
            IpcWriteOptions::try_new(ALIGNMENT_BYTES, false, MetadataVersion::V5)
                .and_then(|options| {
                    StreamWriter::try_new_with_options(&mut content, rows.schema_ref(), options)
                })
                .and_then(|mut writer| {
                    writer.write(rows)?;
                    writer.finish()
                })
                .map_err(DatasetError::rows(table.name))?;
        }
        zstd::encode_all(content.as_slice(), LEVEL)
            .map_err(|e: io::Error| DatasetError::io("compress", "a batch")(e))
    }
}
