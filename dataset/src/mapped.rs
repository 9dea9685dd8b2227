//! One sealed Arrow file, mapped: only the batches and columns asked for are decompressed, and only
//! after their bytes were found to be those that were sealed.

use crate::manifest::{FileEntry, HostEntry};
use crate::{DatasetError, Result};
use arrow::array::new_null_array;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::convert::try_fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::{Block, MetadataVersion, root_as_footer};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an Arrow file ends with: four bytes of footer length, then the magic "ARROW1".
const TRAILER_BYTES: usize = 10;

pub(crate) struct Mapped {
    path: PathBuf,
    data: Buffer,
    schema: SchemaRef,
    version: MetadataVersion,
    blocks: Vec<Block>,
}

impl Mapped {
    /// Maps the file that `entry` names, if its length and footer are what was sealed.
    pub(crate) fn open(root: &Path, entry: &FileEntry) -> Result<Self> {
        let path = root.join(&entry.path);
        let data = map(&path)?;
        let found = data.len() as u64;
        if found != entry.bytes {
            return Err(DatasetError::Torn {
                path,
                expected: entry.bytes,
                found,
            });
        }
        let footer = footer_bytes(&data).map_err(altered(&path))?;
        if hash([footer]) != entry.footer_blake3 {
            return Err(altered(&path)("its footer has another hash"));
        }
        Self::parse(path, data)
    }

    /// Maps a file that was just written and is not in a manifest yet.
    pub(crate) fn open_staged(path: PathBuf) -> Result<Self> {
        let data = map(&path)?;
        Self::parse(path, data)
    }

    fn parse(path: PathBuf, data: Buffer) -> Result<Self> {
        let (schema, version, blocks) = footer_bytes(&data)
            .and_then(parse_footer)
            .map_err(altered(&path))?;
        Ok(Self {
            path,
            data,
            schema,
            version,
            blocks,
        })
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Hash of the whole file, as in the manifest.
    pub(crate) fn file_hash(&self) -> String {
        hash([self.data.as_slice()])
    }

    /// Hash of the footer, as in the manifest.
    pub(crate) fn footer_hash(&self) -> Result<String> {
        let footer = footer_bytes(&self.data).map_err(altered(&self.path))?;
        Ok(hash([footer]))
    }

    /// Hash of `batches` record batches from `first_batch` on, as in the manifest.
    pub(crate) fn part_hash(&self, first_batch: usize, batches: usize) -> Result<String> {
        let part = (first_batch..first_batch.saturating_add(batches))
            .map(|index| Ok(self.block(index)?.1))
            .collect::<Result<Vec<_>, ArrowError>>()
            .map_err(altered(&self.path))?;
        Ok(hash(part.iter().map(Buffer::as_slice)))
    }

    /// The host's batches, with the columns of `wanted`.
    pub(crate) fn read(&self, host: &HostEntry, wanted: &SchemaRef) -> Result<Vec<RecordBatch>> {
        if self.part_hash(host.first_batch, host.batches)? != host.blake3 {
            let detail = format!("the part of host {} has another hash", host.host_id);
            return Err(altered(&self.path)(detail));
        }
        let indices = wanted
            .fields()
            .iter()
            .filter_map(|f| self.schema.index_of(f.name()).ok())
            .collect();
        let decoder = FileDecoder::new(self.schema.clone(), self.version).with_projection(indices);
        let batches = (host.first_batch..host.first_batch.saturating_add(host.batches))
            .map(|index| self.read_batch(&decoder, index, wanted))
            .collect::<Result<Vec<_>, _>>()
            .map_err(altered(&self.path))?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if rows as u64 != host.rows {
            return Err(altered(&self.path)(format!(
                "{rows} rows of host {} instead of {}",
                host.host_id, host.rows
            )));
        }
        Ok(batches)
    }

    fn read_batch(
        &self,
        decoder: &FileDecoder,
        index: usize,
        wanted: &SchemaRef,
    ) -> Result<RecordBatch, ArrowError> {
        let (block, data) = self.block(index)?;
        let batch = decoder
            .read_record_batch(block, &data)?
            .ok_or_else(|| no_batch(index))?;
        // The decoder keeps the file's order of columns; the caller's is wanted. What an older version did
        // not record is absent; `try_new` refuses that where it may not be.
        let columns = wanted
            .fields()
            .iter()
            .map(|f| match batch.column_by_name(f.name()) {
                Some(column) => Arc::clone(column),
                None => new_null_array(f.data_type(), batch.num_rows()),
            })
            .collect();
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(wanted), columns, &rows)
    }

    fn block(&self, index: usize) -> Result<(&Block, Buffer), ArrowError> {
        let block = self.blocks.get(index);
        block
            .and_then(|block| Some((block, slice(&self.data, block)?)))
            .ok_or_else(|| no_batch(index))
    }
}

fn map(path: &Path) -> Result<Buffer> {
    let file = File::open(path).map_err(DatasetError::io("open", path))?;
    // SAFETY: a sealed file is never written to again by any program of Gleaner; a file is replaced by
    // renaming another over it, which leaves a mapped one as it is.
    #[allow(unsafe_code)]
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(DatasetError::io("map", path))?;
    Ok(Buffer::from(bytes::Bytes::from_owner(map)))
}

/// The footer, its length and the magic.
fn footer_bytes(data: &[u8]) -> Result<&[u8], ArrowError> {
    let cut_off = || ArrowError::IpcError("its footer is cut off".to_owned());
    let trailer = data.last_chunk::<TRAILER_BYTES>().ok_or_else(cut_off)?;
    let length = read_footer_length(*trailer)?.saturating_add(TRAILER_BYTES);
    let start = data.len().checked_sub(length).ok_or_else(cut_off)?;
    Ok(&data[start..])
}

fn parse_footer(bytes: &[u8]) -> Result<(SchemaRef, MetadataVersion, Vec<Block>), ArrowError> {
    let footer = root_as_footer(&bytes[..bytes.len() - TRAILER_BYTES])
        .map_err(|e| ArrowError::IpcError(e.to_string()))?;
    let schema = footer
        .schema()
        .ok_or_else(|| ArrowError::IpcError("its footer has no schema".to_owned()))?;
    let blocks = footer.recordBatches().iter().flatten().copied().collect();
    Ok((
        Arc::new(try_fb_to_schema(schema)?),
        footer.version(),
        blocks,
    ))
}

fn slice(data: &Buffer, block: &Block) -> Option<Buffer> {
    let offset = usize::try_from(block.offset()).ok()?;
    let metadata = usize::try_from(block.metaDataLength()).ok()?;
    let length = metadata.checked_add(usize::try_from(block.bodyLength()).ok()?)?;
    let end = offset.checked_add(length)?;
    (end <= data.len()).then(|| data.slice_with_length(offset, length))
}

fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().to_string()
}

fn no_batch(index: usize) -> ArrowError {
    ArrowError::IpcError(format!("record batch {index} is not in it"))
}

/// For `map_err`: the file at `path` is not what was sealed.
fn altered<D: ToString>(path: &Path) -> impl Fn(D) -> DatasetError {
    let path = path.to_owned();
    move |detail| DatasetError::Altered {
        path: path.clone(),
        detail: detail.to_string(),
    }
}
