//! A sealed Arrow file, mapped into memory or read from a store. Only the requested batches and columns are
//! decompressed, and only after the hash of their bytes was compared with the sealed one.

use crate::file::batch_cache::{BatchCache, Slot};
use crate::file::host_order::HostOrder;
use crate::file::index::{HostRows, INDEX_KEY, Index, Part, THINNED_KEY};
use crate::file::remote::{Contents, Remote, block_span};
use crate::layout::retired;
use crate::manifest::FileEntry;
use crate::rows::projected;
use crate::store::{Fetcher, FileBytes};
use crate::{DatasetError, Result};
use arrow::array::{AsArray, new_null_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{SchemaRef, TimestampMillisecondType};
use arrow::error::ArrowError;
use arrow::ipc::convert::try_fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::{Block, Footer, MetadataVersion, root_as_footer};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use gleaner_schemas::arrow::with_present_names;
use gleaner_schemas::column::Table;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Length of the end of an Arrow file: four bytes with the footer's length, then the magic bytes "ARROW1".
const TRAILER_BYTES: usize = 10;
/// Maximum number of rows in a batch that is cached for the next host with rows in it.
const KEPT_ROWS: u64 = 4096;

pub(crate) struct ArrowFile {
    path: PathBuf,
    /// Content of the file. Of a file with a `remote`, only the footer.
    pub(crate) data: Buffer,
    /// Source of the record batches, for a file of a store that was not fetched whole.
    remote: Option<Remote>,
    /// Bytes of the file in this process's own memory; 0 for a mapped file.
    pub(crate) fetched_bytes: usize,
    /// Columns of the file, under their present names.
    pub(crate) schema: SchemaRef,
    pub(crate) version: MetadataVersion,
    pub(crate) blocks: Vec<Block>,
    pub(crate) index: Index,
    /// Place in the cache for this file's shared batch that was decoded last.
    slot: Arc<Slot>,
    /// Cache of shared batches, which limits the memory of the batches of all files.
    pub(crate) kept: Arc<BatchCache>,
}

impl ArrowFile {
    /// Maps the file that `entry` names. Its length and footer must be as sealed.
    pub(crate) fn open(root: &Path, entry: &FileEntry) -> Result<Self> {
        let path = root.join(&entry.path);
        let data = map_file(root, &entry.path)?;
        let found = data.len() as u64;
        if found != entry.bytes {
            return Err(DatasetError::Torn {
                path,
                expected: entry.bytes,
                found,
            });
        }
        Self::checked(path, data, entry)
    }

    /// Opens the file of a store that `entry` names: fetches its end, or the whole file if it is small. Its length
    /// and footer must be as sealed.
    pub(crate) fn fetch(root: &Path, entry: &FileEntry, fetcher: &Arc<Fetcher>) -> Result<Self> {
        let path = root.join(&entry.path);
        let remote = Remote::new(fetcher, entry);
        let mut end = remote.end(entry).map_err(not_fetched(&path))?;
        if end.end() != entry.bytes {
            return Err(DatasetError::Torn {
                path,
                expected: entry.bytes,
                found: end.end(),
            });
        }
        let footer_bytes_count = footer_length(&end.bytes).map_err(altered(&path))?;
        if footer_bytes_count > end.bytes.len() && end.start > 0 {
            let longer = remote.end_of(footer_bytes_count as u64);
            end = longer.map_err(not_fetched(&path))?;
        }
        let is_whole = end.start == 0;
        let data = if is_whole {
            end.bytes
        } else {
            // A copy, so that the rest of the end does not stay in memory.
            let footer = footer_bytes(&end.bytes).map_err(altered(&path))?;
            Buffer::from_vec(footer.to_vec())
        };
        let fetched_bytes = data.len();
        Ok(Self {
            remote: (!is_whole).then_some(remote),
            fetched_bytes,
            ..Self::checked(path, data, entry)?
        })
    }

    /// Parses the file whose content, or at least footer, is `data`. The footer must be as sealed.
    fn checked(path: PathBuf, data: Buffer, entry: &FileEntry) -> Result<Self> {
        let bytes = footer_bytes(&data).map_err(altered(&path))?;
        if hash([bytes]) != entry.footer_blake3 {
            return Err(altered(&path)("its footer has another hash"));
        }
        let inline = match &entry.hosts[..] {
            [] => None,
            hosts => Some(Index::inline(hosts).map_err(altered(&path))?),
        };
        Self::parse(path, data, inline)
    }

    /// Maps a file whose manifest entry is unknown. A file of format version 1 then has no index.
    pub(crate) fn open_unsealed(root: &Path, relative: &str) -> Result<Self> {
        let data = map_file(root, relative)?;
        let path = root.join(relative);
        let is_indexed = footer_bytes(&data)
            .and_then(parse_footer)
            .is_ok_and(|footer| own_index(&data, &footer).is_ok());
        let inline = (!is_indexed).then(|| Index::inline(&[]));
        let inline = inline.transpose().map_err(altered(&path))?;
        Self::parse(path, data, inline)
    }

    fn parse(path: PathBuf, data: Buffer, inline: Option<Index>) -> Result<Self> {
        let bytes = footer_bytes(&data).map_err(altered(&path))?;
        let footer = parse_footer(bytes).map_err(altered(&path))?;
        let index = match inline {
            Some(index) => index,
            None => own_index(&data, &footer).map_err(altered(&path))?,
        };
        let (schema, version, blocks) = contents(&footer).map_err(altered(&path))?;
        Ok(Self {
            path,
            data,
            remote: None,
            fetched_bytes: 0,
            schema,
            version,
            blocks,
            index,
            slot: Arc::default(),
            kept: Arc::default(),
        })
    }

    /// Hash of the whole file, to be compared with the manifest's.
    pub(crate) fn file_hash(&self) -> String {
        hash([self.data.as_slice()])
    }

    /// All hosts with rows in the file, in order.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = Result<HostRows>> {
        let hosts = self.index.hosts();
        hosts.map(|host| host.map_err(|e| altered(&self.path)(e)))
    }

    /// Record batches of the file, grouped into the parts that have one hash.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.index.parts
    }

    /// Record batches with rows of `host` ([`Index::parts_of`]).
    pub(crate) fn parts_of(&self, host: &HostRows) -> impl Iterator<Item = (&Part, Range<u64>)> {
        self.index.parts_of(host)
    }

    /// Returns true if the bytes of `part` have the sealed hash. The file must be a mapped one.
    pub(crate) fn is_sound(&self, part: &Part) -> bool {
        self.is_sound_in(&self.whole(), part)
    }

    fn is_sound_in(&self, data: &FileBytes, part: &Part) -> bool {
        self.hash_of(data, part.batches.clone())
            .is_ok_and(|hash| hash == part.blake3)
    }

    /// Place of the host's rows in the file; `None` if it has none.
    pub(crate) fn host(&self, host_id: &str) -> Result<Option<HostRows>> {
        self.index.host(host_id).map_err(altered(&self.path))
    }

    /// Reads the host's rows, with the columns of `wanted`.
    pub(crate) fn read(&self, host: &HostRows, wanted: &SchemaRef) -> Result<Vec<RecordBatch>> {
        self.read_in_order(host, wanted, None)
    }

    /// Reads the host's rows like [`ArrowFile::read`], for a reader that then reads the next hosts of `order`.
    pub(crate) fn read_in_order(
        &self,
        host: &HostRows,
        wanted: &SchemaRef,
        order: Option<&HostOrder>,
    ) -> Result<Vec<RecordBatch>> {
        let mut found = Vec::new();
        let mut rows = 0;
        for (part, range) in self.index.parts_of(host) {
            let mut start = 0;
            for batch in self.read_part(part, wanted, || self.bytes_of(host, order))? {
                let end = start + batch.num_rows() as u64;
                let (from, to) = (range.start.max(start), range.end.min(end));
                if from < to {
                    // Both numbers fit into `usize`: they count rows of a batch in memory.
                    found.push(batch.slice((from - start) as usize, (to - from) as usize));
                    rows += to - from;
                }
                start = end;
            }
        }
        if rows != host.rows {
            let detail = format!(
                "{rows} rows of host {} instead of {}",
                host.host_id, host.rows
            );
            return Err(altered(&self.path)(detail));
        }
        Ok(found)
    }

    /// Requests the bytes of the host's rows ahead of [`ArrowFile::read_in_order`]. No effect on a mapped file.
    pub(crate) fn request(&self, host: &HostRows, order: Option<&HostOrder>) {
        if let Some(remote) = &self.remote {
            remote.request(self.contents(), host, order);
        }
    }

    /// Bytes that contain the host's record batches.
    fn bytes_of(&self, host: &HostRows, order: Option<&HostOrder>) -> Result<FileBytes> {
        match &self.remote {
            Some(remote) => {
                let bytes = remote.read(self.contents(), host, order);
                bytes.map_err(not_fetched(&self.path))
            }
            None => Ok(self.whole()),
        }
    }

    fn contents(&self) -> Contents<'_> {
        Contents {
            index: &self.index,
            blocks: &self.blocks,
        }
    }

    fn whole(&self) -> FileBytes {
        FileBytes {
            start: 0,
            bytes: self.data.clone(),
        }
    }

    /// Reads the rows of a part, from the bytes that `data` returns. The hash of its bytes is compared with the
    /// sealed one before.
    fn read_part(
        &self,
        part: &Part,
        wanted: &SchemaRef,
        data: impl FnOnce() -> Result<FileBytes>,
    ) -> Result<Vec<RecordBatch>> {
        let is_shared = part.batches.len() == 1 && part.rows <= KEPT_ROWS;
        if is_shared && let Some(rows) = self.slot.get(part, wanted) {
            return Ok(vec![rows]);
        }
        let data = data()?;
        if !self.is_sound_in(&data, part) {
            let detail = format!("its record batch {} has another hash", part.batches.start);
            return Err(altered(&self.path)(detail));
        }
        let decoder = self.decoder(wanted);
        let batches = part
            .batches
            .clone()
            .map(|index| self.read_batch(&data, &decoder, index, wanted))
            .collect::<Result<Vec<_>, _>>()
            .map_err(altered(&self.path))?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if rows as u64 != part.rows {
            let first = part.batches.start;
            let detail = format!(
                "{rows} rows in record batch {first} instead of {}",
                part.rows
            );
            return Err(altered(&self.path)(detail));
        }
        if let (true, [rows]) = (is_shared, &batches[..]) {
            self.kept.keep(&self.slot, part, wanted, rows);
        }
        Ok(batches)
    }

    /// Earliest and latest time of the file's rows; `None` without rows.
    pub(crate) fn times_ms(&self, table: &Table) -> Result<Option<(i64, i64)>> {
        let wanted = projected(table, &["time"])?;
        let (data, decoder) = (self.whole(), self.decoder(&wanted));
        let mut bounds: Option<(i64, i64)> = None;
        for at in 0..self.blocks.len() {
            let batch = self.read_batch(&data, &decoder, at, &wanted);
            let batch = batch.map_err(altered(&self.path))?;
            let times = batch.column(0).as_primitive::<TimestampMillisecondType>();
            for &ms in times.values() {
                let (first, last) = bounds.get_or_insert((ms, ms));
                (*first, *last) = (ms.min(*first), ms.max(*last));
            }
        }
        Ok(bounds)
    }

    /// Hash of the footer, to be compared with the manifest's.
    pub(crate) fn footer_hash(&self) -> Result<String> {
        let footer = footer_bytes(&self.data).map_err(altered(&self.path))?;
        Ok(hash([footer]))
    }

    /// Interval to which the file's samples were thinned, in ms, from its footer; `None` if they were not.
    pub(crate) fn thinned_to_ms(&self) -> Result<Option<i64>> {
        let footer = footer_bytes(&self.data).and_then(parse_footer);
        let footer = footer.map_err(altered(&self.path))?;
        Ok(metadata(&footer, THINNED_KEY).and_then(|ms| ms.parse().ok()))
    }

    /// The record batch `index` with the columns of `wanted`, and its hash.
    pub(crate) fn read_block(
        &self,
        index: usize,
        wanted: &SchemaRef,
    ) -> Result<(RecordBatch, String)> {
        let batch = self.read_batch(&self.whole(), &self.decoder(wanted), index, wanted);
        let batch = batch.map_err(altered(&self.path))?;
        Ok((batch, self.blocks_hash(index..index + 1)?))
    }

    /// Hash of the bytes of some record batches.
    pub(crate) fn blocks_hash(&self, blocks: Range<usize>) -> Result<String> {
        let hash = self.hash_of(&self.whole(), blocks);
        hash.map_err(altered(&self.path))
    }

    fn decoder(&self, wanted: &SchemaRef) -> FileDecoder {
        let fields = wanted.fields().iter();
        let indices = fields.filter_map(|f| self.schema.index_of(f.name()).ok());
        let decoder = FileDecoder::new(self.schema.clone(), self.version);
        decoder.with_projection(indices.collect())
    }

    fn hash_of(&self, data: &FileBytes, blocks: Range<usize>) -> Result<String, ArrowError> {
        let blocks = blocks
            .map(|index| Ok(self.block(data, index)?.1))
            .collect::<Result<Vec<_>, ArrowError>>()?;
        Ok(hash(blocks.iter().map(Buffer::as_slice)))
    }

    fn read_batch(
        &self,
        data: &FileBytes,
        decoder: &FileDecoder,
        index: usize,
        wanted: &SchemaRef,
    ) -> Result<RecordBatch, ArrowError> {
        let (block, data) = self.block(data, index)?;
        let batch = decoder
            .read_record_batch(block, &data)?
            .ok_or_else(|| no_batch(index))?;
        conform_to_schema(&batch, wanted)
    }

    fn block(&self, data: &FileBytes, index: usize) -> Result<(&Block, Buffer), ArrowError> {
        let block = self.blocks.get(index);
        block
            .and_then(|block| Some((block, slice(data, block)?)))
            .ok_or_else(|| no_batch(index))
    }
}

/// Returns `batch` with the columns of `wanted` in their order; the decoder keeps the file's order. Columns
/// that an older version did not record are absent. It is an error if a column must not be absent.
pub(crate) fn conform_to_schema(
    batch: &RecordBatch,
    wanted: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
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

/// Maps the file `relative` of the dataset at `root`.
pub(crate) fn map_file(root: &Path, relative: &str) -> Result<Buffer> {
    map(&retired::open(root, relative)?, &root.join(relative))
}

fn map(file: &File, path: &Path) -> Result<Buffer> {
    // SAFETY: no program of Gleaner writes to a sealed file; a file is replaced by renaming another over it,
    // which leaves a mapped file unchanged.
    #[allow(unsafe_code)]
    let map = unsafe { memmap2::Mmap::map(file) }.map_err(DatasetError::io("map", path))?;
    Ok(Buffer::from(bytes::Bytes::from_owner(map)))
}

/// The footer alone, without the length and the magic bytes that follow it.
pub(crate) fn footer_bytes(data: &[u8]) -> Result<&[u8], ArrowError> {
    let start = data.len().checked_sub(footer_length(data)?);
    Ok(&data[start.ok_or_else(cut_off)?..])
}

/// Length of the footer, of the length field and of the magic bytes, from the end of a file.
fn footer_length(data: &[u8]) -> Result<usize, ArrowError> {
    let trailer = data.last_chunk::<TRAILER_BYTES>().ok_or_else(cut_off)?;
    Ok(read_footer_length(*trailer)?.saturating_add(TRAILER_BYTES))
}

fn cut_off() -> ArrowError {
    ArrowError::IpcError("its footer is cut off".to_owned())
}

fn parse_footer(bytes: &[u8]) -> Result<Footer<'_>, ArrowError> {
    root_as_footer(&bytes[..bytes.len() - TRAILER_BYTES])
        .map_err(|e| ArrowError::IpcError(e.to_string()))
}

fn contents(footer: &Footer<'_>) -> Result<(SchemaRef, MetadataVersion, Vec<Block>), ArrowError> {
    let schema = footer
        .schema()
        .ok_or_else(|| ArrowError::IpcError("its footer has no schema".to_owned()))?;
    let blocks = footer.recordBatches().iter().flatten().copied().collect();
    Ok((
        with_present_names(Arc::new(try_fb_to_schema(schema)?)),
        footer.version(),
        blocks,
    ))
}

/// Value of `key` in the footer's metadata.
fn metadata<'a>(footer: &Footer<'a>, key: &str) -> Option<&'a str> {
    let mut entries = footer.custom_metadata().into_iter().flatten();
    entries.find(|entry| entry.key() == Some(key))?.value()
}

/// The index in the footer of the file `data`; its text is not copied.
fn own_index(data: &Buffer, footer: &Footer<'_>) -> Result<Index, ArrowError> {
    let text = metadata(footer, INDEX_KEY)
        .ok_or_else(|| ArrowError::IpcError("its footer has no index".to_owned()))?;
    let offset = text.as_ptr().addr() - data.as_ptr().addr();
    let text = data.slice_with_length(offset, text.len());
    Index::parse(&text).map_err(|e| ArrowError::IpcError(format!("its index is malformed: {e}")))
}

pub(crate) fn slice(data: &FileBytes, block: &Block) -> Option<Buffer> {
    let span = block_span(block)?;
    let offset = usize::try_from(span.start.checked_sub(data.start)?).ok()?;
    let length = usize::try_from(span.end - span.start).ok()?;
    let end = offset.checked_add(length)?;
    (end <= data.bytes.len()).then(|| data.bytes.slice_with_length(offset, length))
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

/// Returns a function for `map_err`: the file at `path` differs from the sealed one.
fn altered<D: ToString>(path: &Path) -> impl Fn(D) -> DatasetError {
    let path = path.to_owned();
    move |detail| DatasetError::Altered {
        path: path.clone(),
        detail: detail.to_string(),
    }
}

/// Returns a function for `map_err`: bytes of the file at `path` could not be fetched.
fn not_fetched(path: &Path) -> impl Fn(io::Error) -> DatasetError {
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::NotFound => DatasetError::Missing { path: path.clone() },
        io::ErrorKind::UnexpectedEof => altered(&path)("it became shorter while it was read"),
        io::ErrorKind::InvalidData => altered(&path)(error.to_string()),
        _ => DatasetError::io("read", &path)(error),
    }
}
