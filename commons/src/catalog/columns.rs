//! Columns of a catalog, read in place. arrow's own decoder is not used here: it may panic on lengths beyond
//! the file's end, and decompresses without a limit.
//!
//! Each access is checked against the file's length, since another program could change the file.

use super::{BLOCK_BYTES, CatalogEntry, Contents, EntryKind, HASH_BYTES, Hash};
use arrow::ipc::reader::read_footer_length;
use arrow::ipc::{
    Block, Endianness, Field, MessageHeader, MetadataVersion, RecordBatch, Schema, Type,
    root_as_footer, root_as_message,
};
use std::ops::Range;

/// Key of the schema's metadata with the version of the catalog's format.
pub(super) const VERSION_KEY: &str = "gleaner_catalog";
/// Version of the format that this program reads and writes.
pub(super) const VERSION: &str = "1";
/// Key of the schema's metadata with the size of a block.
pub(super) const BLOCK_BYTES_KEY: &str = "block_bytes";

/// Length of the file's end: four bytes with the footer's length, then "ARROW1".
const TRAILER_BYTES: usize = 10;
/// Bytes before a message: four that mark its beginning, four with its length.
const PREFIX_BYTES: usize = 8;
/// Number of arrays in a record batch: eight columns, and the items of `blocks`.
const NODES: usize = 9;
/// Number of buffers in a record batch.
const BUFFERS: usize = 21;

/// Place of a column among the arrays of a record batch.
const TARGET_NODE: usize = 5;
const BLAKE3_NODE: usize = 6;
const ITEMS_NODE: usize = 8;

/// Places of a column's buffers among the buffers of a record batch: the bitmap of present values; offsets,
/// if values differ in length; values.
const PATH: [usize; 2] = [1, 2];
const KIND: [usize; 2] = [4, 5];
const MODE: usize = 7;
const MTIME_NS: usize = 9;
const BYTES: usize = 11;
const TARGET_PRESENT: usize = 12;
const TARGET: [usize; 2] = [13, 14];
const BLAKE3_PRESENT: usize = 15;
const BLAKE3: usize = 16;
const BLOCKS: [usize; 2] = [18, 20];

/// Reason why a file, or one of its rows, cannot be read.
pub(super) type Fault = String;

/// A catalog's columns.
pub(super) struct Columns {
    contents: Contents,
    batches: Vec<Batch>,
    rows: u64,
}

/// A record batch: the places of its buffers in the file.
struct Batch {
    first_row: u64,
    rows: u64,
    has_null: [bool; NODES],
    /// Number of hashes in `blocks`.
    items: u64,
    buffers: [Range<usize>; BUFFERS],
}

impl Columns {
    /// Parses the file's footer and the headers of its record batches; rows are not read.
    pub(super) fn parse(contents: Contents) -> Result<Self, Fault> {
        let data = (*contents).as_ref();
        let trailer = data.last_chunk::<TRAILER_BYTES>();
        let trailer = trailer.ok_or("its end is cut off")?;
        let length = read_footer_length(*trailer).map_err(|_| "its end is cut off".to_owned())?;
        let end = data.len() - TRAILER_BYTES;
        let begin = end.checked_sub(length).ok_or("its footer is cut off")?;
        let footer = data.get(begin..end).unwrap_or_default();
        let footer = root_as_footer(footer).map_err(|e| format!("its footer is damaged: {e}"))?;
        if footer.version() != MetadataVersion::V5 {
            return Err("its Arrow format is not version 5".to_owned());
        }
        check_schema(footer.schema().ok_or("its footer has no schema")?)?;
        let mut batches = Vec::new();
        let mut rows: u64 = 0;
        for (index, block) in footer.recordBatches().iter().flatten().enumerate() {
            let batch = Batch::parse(data, block, rows);
            let batch = batch.map_err(|e| format!("record batch {index}: {e}"))?;
            rows = rows.checked_add(batch.rows).ok_or("too many rows")?;
            batches.push(batch);
        }
        if batches.is_empty() {
            return Err("it has no row, not even that of the sealed folder".to_owned());
        }
        Ok(Self {
            contents,
            batches,
            rows,
        })
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    /// Path in a row.
    pub(super) fn path(&self, row: u64) -> Result<&[u8], Fault> {
        let (batch, index) = self.batch(row)?;
        self.text(batch, PATH, index)
            .ok_or_else(|| "its path lies outside the column".to_owned())
    }

    /// The whole row.
    pub(super) fn entry(&self, row: u64) -> Result<CatalogEntry<'_>, Fault> {
        let (batch, index) = self.batch(row)?;
        let outside = |column: &str| format!("its {column} lies outside the column");
        let path = self.path(row)?;
        let kind = self.text(batch, KIND, index);
        let kind = kind.ok_or_else(|| outside("kind"))?;
        let kind = EntryKind::parse(kind).ok_or("its kind is not directory, file or symlink")?;
        let bytes = u64::from_le_bytes(
            self.fixed(batch, BYTES, index)
                .ok_or_else(|| outside("size"))?,
        );
        let mode = self
            .fixed(batch, MODE, index)
            .ok_or_else(|| outside("mode"))?;
        let mtime = self
            .fixed(batch, MTIME_NS, index)
            .ok_or_else(|| outside("time"))?;
        let target = if self.is_present(batch, TARGET_NODE, TARGET_PRESENT, index) {
            let target = self.text(batch, TARGET, index);
            Some(target.ok_or_else(|| outside("target"))?)
        } else {
            None
        };
        let hash = if self.is_present(batch, BLAKE3_NODE, BLAKE3_PRESENT, index) {
            let hash: Option<Hash> = self.fixed(batch, BLAKE3, index);
            Some(hash.ok_or_else(|| outside("hash"))?)
        } else {
            None
        };
        let blocks = self
            .blocks(batch, index)
            .ok_or_else(|| outside("list of blocks"))?;
        if target.is_some() != (kind == EntryKind::Symlink) {
            return Err("only a symlink, and each symlink, has a target".to_owned());
        }
        if hash.is_some() != (kind == EntryKind::File) {
            return Err("only a file, and each file, has a hash".to_owned());
        }
        Ok(CatalogEntry {
            row,
            path,
            kind,
            mode: u32::from_le_bytes(mode),
            mtime_ns: i64::from_le_bytes(mtime),
            bytes,
            target: target.unwrap_or_default(),
            blake3: hash,
            blocks,
        })
    }

    fn batch(&self, row: u64) -> Result<(&Batch, usize), Fault> {
        let after = self.batches.partition_point(|b| b.first_row <= row);
        let batch = after.checked_sub(1).and_then(|i| self.batches.get(i));
        let found = batch.and_then(|batch| {
            let index = row - batch.first_row;
            (index < batch.rows).then_some((batch, usize::try_from(index).ok()?))
        });
        found.ok_or_else(|| format!("there is no row {row}"))
    }

    fn buffer(&self, batch: &Batch, buffer: usize) -> &[u8] {
        let range = batch.buffers.get(buffer).cloned().unwrap_or_default();
        (*self.contents).as_ref().get(range).unwrap_or_default()
    }

    /// Value of a column whose values have `N` bytes.
    fn fixed<const N: usize>(&self, batch: &Batch, buffer: usize, index: usize) -> Option<[u8; N]> {
        let values = self.buffer(batch, buffer).as_chunks::<N>().0;
        values.get(index).copied()
    }

    /// Begin and end of a value, from a column's offsets.
    fn span(&self, batch: &Batch, offsets: usize, index: usize) -> Option<Range<usize>> {
        let offset = |index| {
            let offset = i32::from_le_bytes(self.fixed(batch, offsets, index)?);
            usize::try_from(offset).ok()
        };
        let span = offset(index)?..offset(index + 1)?;
        (span.start <= span.end).then_some(span)
    }

    /// Value of a column of texts.
    fn text(&self, batch: &Batch, [offsets, values]: [usize; 2], index: usize) -> Option<&[u8]> {
        let span = self.span(batch, offsets, index)?;
        self.buffer(batch, values).get(span)
    }

    /// Hashes of a row's blocks.
    fn blocks(&self, batch: &Batch, index: usize) -> Option<&[u8]> {
        let [offsets, values] = BLOCKS;
        let span = self.span(batch, offsets, index)?;
        if u64::try_from(span.end).ok()? > batch.items {
            return None;
        }
        let bytes = span.start.checked_mul(HASH_BYTES)?..span.end.checked_mul(HASH_BYTES)?;
        self.buffer(batch, values).get(bytes)
    }

    fn is_present(&self, batch: &Batch, node: usize, bitmap: usize, index: usize) -> bool {
        if !batch.has_null.get(node).copied().unwrap_or_default() {
            return true;
        }
        let byte = self.buffer(batch, bitmap).get(index / 8);
        byte.is_some_and(|byte| byte & (1 << (index % 8)) != 0)
    }
}

impl Batch {
    fn parse(data: &[u8], block: &Block, first_row: u64) -> Result<Self, Fault> {
        const OUTSIDE: &str = "it lies outside the file";
        let length = |length: i64| usize::try_from(length).map_err(|_| OUTSIDE.to_owned());
        let begin = length(block.offset())?;
        let header_bytes = length(i64::from(block.metaDataLength()))?;
        let body_bytes = length(block.bodyLength())?;
        let body = begin.checked_add(header_bytes).ok_or(OUTSIDE)?;
        let end = body
            .checked_add(body_bytes)
            .filter(|end| *end <= data.len());
        let end = end.ok_or(OUTSIDE)?;
        let header = data.get(begin..body).ok_or(OUTSIDE)?;
        let (prefix, message) = header.split_at_checked(PREFIX_BYTES).ok_or(OUTSIDE)?;
        if !prefix.starts_with(&[0xff; 4]) {
            return Err("it does not begin with a message".to_owned());
        }
        let message =
            root_as_message(message).map_err(|e| format!("its header is damaged: {e}"))?;
        if message.version() != MetadataVersion::V5
            || message.header_type() != MessageHeader::RecordBatch
        {
            return Err("it is no record batch of Arrow's format 5".to_owned());
        }
        let batch = message.header_as_record_batch();
        let batch = batch.ok_or("its header is damaged")?;
        Self::of(&batch, body..end, first_row)
    }

    fn of(batch: &RecordBatch<'_>, body: Range<usize>, first_row: u64) -> Result<Self, Fault> {
        if batch.compression().is_some() {
            return Err("it is compressed: a catalog is read in place".to_owned());
        }
        let rows = u64::try_from(batch.length()).ok().filter(|rows| *rows > 0);
        let rows = rows.ok_or("it has no rows")?;
        let nodes = batch.nodes().filter(|nodes| nodes.len() == NODES);
        let nodes = nodes.ok_or_else(|| format!("it does not have {NODES} arrays"))?;
        let mut has_null = [false; NODES];
        for (index, has_null) in has_null.iter_mut().enumerate() {
            let node = nodes.get(index);
            if index != ITEMS_NODE && u64::try_from(node.length()) != Ok(rows) {
                return Err(format!("its column {index} does not have {rows} rows"));
            }
            *has_null = node.null_count() != 0;
            if *has_null && ![TARGET_NODE, BLAKE3_NODE].contains(&index) {
                return Err(format!("its column {index} lacks values"));
            }
        }
        let items = u64::try_from(nodes.get(ITEMS_NODE).length());
        let found = batch.buffers().filter(|buffers| buffers.len() == BUFFERS);
        let found = found.ok_or_else(|| format!("it does not have {BUFFERS} buffers"))?;
        let mut buffers: [Range<usize>; BUFFERS] = std::array::from_fn(|_| 0..0);
        for (index, range) in buffers.iter_mut().enumerate() {
            let buffer = found.get(index);
            let place = |buffer: &arrow::ipc::Buffer| {
                let begin = body
                    .start
                    .checked_add(usize::try_from(buffer.offset()).ok()?)?;
                let end = begin.checked_add(usize::try_from(buffer.length()).ok()?)?;
                (end <= body.end).then_some(begin..end)
            };
            *range = place(buffer).ok_or_else(|| format!("its buffer {index} lies outside it"))?;
        }
        Ok(Self {
            first_row,
            rows,
            has_null,
            items: items.map_err(|_| "its list of blocks has a negative length")?,
            buffers,
        })
    }
}

/// Checks the type of a column.
type TypeCheck = fn(&Field<'_>) -> bool;

/// Checks that the schema is a catalog's.
fn check_schema(schema: Schema<'_>) -> Result<(), Fault> {
    if schema.endianness() != Endianness::Little {
        return Err("its numbers are not little-endian".to_owned());
    }
    let value = |key: &str| {
        let mut entries = schema.custom_metadata().into_iter().flatten();
        entries.find(|entry| entry.key() == Some(key))?.value()
    };
    match value(VERSION_KEY) {
        Some(VERSION) => (),
        Some(other) => {
            return Err(format!(
                "its version is {other:?}, and this program reads {VERSION}"
            ));
        }
        None => return Err(format!("its schema does not have the key {VERSION_KEY:?}")),
    }
    if value(BLOCK_BYTES_KEY).and_then(|bytes| bytes.parse().ok()) != Some(BLOCK_BYTES) {
        return Err(format!("its blocks do not have {BLOCK_BYTES} bytes"));
    }
    let columns: [(&str, TypeCheck); 8] = [
        ("path", |f| f.type_type() == Type::Binary),
        ("kind", |f| f.type_type() == Type::Utf8),
        ("mode", |f| is_integer(f, 32, false)),
        ("mtime_ns", |f| is_integer(f, 64, true)),
        ("bytes", |f| is_integer(f, 64, false)),
        ("target", |f| f.type_type() == Type::Binary),
        ("blake3", is_hash),
        ("blocks", |f| {
            let items = f.children().filter(|items| items.len() == 1);
            f.type_type() == Type::List && items.is_some_and(|items| is_hash(&items.get(0)))
        }),
    ];
    let fields = schema
        .fields()
        .filter(|fields| fields.len() == columns.len());
    let fields = fields.ok_or("it does not have the eight columns of a catalog")?;
    for (field, (name, is_right)) in fields.iter().zip(columns) {
        if field.name() != Some(name) || field.dictionary().is_some() || !is_right(&field) {
            return Err(format!(
                "its column {name:?} is missing or has another type"
            ));
        }
    }
    Ok(())
}

fn is_integer(field: &Field<'_>, bits: i32, is_signed: bool) -> bool {
    let integer = field.type_as_int();
    integer.is_some_and(|int| int.bitWidth() == bits && int.is_signed() == is_signed)
}

fn is_hash(field: &Field<'_>) -> bool {
    let binary = field.type_as_fixed_size_binary();
    field.dictionary().is_none() && binary.is_some_and(|b| b.byteWidth() == HASH_BYTES as i32)
}
