//! Writing of catalogs.

use super::columns::{BLOCK_BYTES_KEY, VERSION, VERSION_KEY};
use super::{BLOCK_BYTES, EntryKind, HASH_BYTES, Hash};
use arrow::array::{
    ArrayRef, BinaryBuilder, FixedSizeBinaryBuilder, Int64Builder, ListBuilder, StringBuilder,
    UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::ipc::MetadataVersion;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::record_batch::RecordBatch;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// Alignment of buffers, for programs that use them in place.
const ALIGNMENT_BYTES: usize = 64;
/// Size from which the pending rows are written as a record batch.
const BATCH_BYTES: usize = 32 << 20;
/// Maximum number of rows in a record batch.
const BATCH_ROWS: usize = 64 << 10;

/// A row to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// Path below the sealed folder; empty for the folder itself.
    pub path: Vec<u8>,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Permission bits, at most 0o777.
    pub mode: u32,
    /// Time of the last change of the contents, in ns since 1970-01-01 UTC.
    pub mtime_ns: i64,
    /// Size of a file.
    pub bytes: u64,
    /// Target of a symbolic link.
    pub target: Option<Vec<u8>>,
    /// Hash of a file.
    pub blake3: Option<Hash>,
    /// Hashes of a file's blocks.
    pub blocks: Vec<Hash>,
}

/// Writer of a catalog. Rows must come in the order of their paths; the writer does not check them.
pub struct CatalogWriter<W: Write> {
    file: FileWriter<HashingWriter<W>>,
    schema: Arc<Schema>,
    columns: RowBuilders,
    pending_bytes: usize,
    pending_rows: usize,
}

struct RowBuilders {
    path: BinaryBuilder,
    kind: StringBuilder,
    mode: UInt32Builder,
    mtime_ns: Int64Builder,
    bytes: UInt64Builder,
    target: BinaryBuilder,
    blake3: FixedSizeBinaryBuilder,
    blocks: ListBuilder<FixedSizeBinaryBuilder>,
}

const HASH_TYPE: DataType = DataType::FixedSizeBinary(HASH_BYTES as i32);

fn item() -> Field {
    Field::new("item", HASH_TYPE, false)
}

fn schema() -> Schema {
    let required = |name, kind| Field::new(name, kind, false);
    let fields = vec![
        required("path", DataType::Binary),
        required("kind", DataType::Utf8),
        required("mode", DataType::UInt32),
        required("mtime_ns", DataType::Int64),
        required("bytes", DataType::UInt64),
        Field::new("target", DataType::Binary, true),
        Field::new("blake3", HASH_TYPE, true),
        required("blocks", DataType::List(Arc::new(item()))),
    ];
    Schema::new(fields).with_metadata(HashMap::from([
        (VERSION_KEY.to_owned(), VERSION.to_owned()),
        (BLOCK_BYTES_KEY.to_owned(), BLOCK_BYTES.to_string()),
    ]))
}

impl RowBuilders {
    fn new() -> Self {
        let hashes = || FixedSizeBinaryBuilder::new(HASH_BYTES as i32);
        Self {
            path: BinaryBuilder::new(),
            kind: StringBuilder::new(),
            mode: UInt32Builder::new(),
            mtime_ns: Int64Builder::new(),
            bytes: UInt64Builder::new(),
            target: BinaryBuilder::new(),
            blake3: hashes(),
            blocks: ListBuilder::new(hashes()).with_field(item()),
        }
    }

    fn add(&mut self, entry: &NewEntry) -> Result<(), ArrowError> {
        self.path.append_value(&entry.path);
        self.kind.append_value(entry.kind.name());
        self.mode.append_value(entry.mode);
        self.mtime_ns.append_value(entry.mtime_ns);
        self.bytes.append_value(entry.bytes);
        self.target.append_option(entry.target.as_deref());
        match &entry.blake3 {
            Some(hash) => self.blake3.append_value(hash)?,
            None => self.blake3.append_null(),
        }
        for hash in &entry.blocks {
            self.blocks.values().append_value(hash)?;
        }
        self.blocks.append(true);
        Ok(())
    }

    fn finish(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.path.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.mode.finish()),
            Arc::new(self.mtime_ns.finish()),
            Arc::new(self.bytes.finish()),
            Arc::new(self.target.finish()),
            Arc::new(self.blake3.finish()),
            Arc::new(self.blocks.finish()),
        ]
    }
}

impl<W: Write> CatalogWriter<W> {
    /// Begins a catalog.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn new(to: W) -> io::Result<Self> {
        let schema = Arc::new(schema());
        let options = IpcWriteOptions::try_new(ALIGNMENT_BYTES, false, MetadataVersion::V5);
        let to = HashingWriter {
            to,
            hasher: blake3::Hasher::new(),
        };
        let file = options.and_then(|o| FileWriter::try_new_with_options(to, &schema, o));
        Ok(Self {
            file: file.map_err(to_io)?,
            schema,
            columns: RowBuilders::new(),
            pending_bytes: 0,
            pending_rows: 0,
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn add(&mut self, entry: &NewEntry) -> io::Result<()> {
        self.columns.add(entry).map_err(to_io)?;
        self.pending_rows += 1;
        self.pending_bytes += entry.path.len() + entry.blocks.len() * HASH_BYTES;
        if self.pending_rows >= BATCH_ROWS || self.pending_bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the catalog; returns the writer and the hash of all that was written.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn finish(mut self) -> io::Result<(W, Hash)> {
        self.flush()?;
        let mut hashing = self.file.into_inner().map_err(to_io)?;
        hashing.flush()?;
        Ok((hashing.to, hashing.hasher.finalize().into()))
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending_rows == 0 {
            return Ok(());
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), self.columns.finish());
        let written = batch.and_then(|batch| self.file.write(&batch));
        (self.pending_rows, self.pending_bytes) = (0, 0);
        written.map_err(to_io)
    }
}

/// A writer that hashes the bytes that pass through it.
struct HashingWriter<W> {
    to: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn to_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}
