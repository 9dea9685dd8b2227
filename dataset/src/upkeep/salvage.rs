//! Salvages rows from a damaged file.
//!
//! If the file's footer is sound, its index lists the record batches. Otherwise they are searched for in the
//! file's bytes. A batch is proven if its hash still occurs in the remains of the index. A truncated file has
//! no hashes left. Then a batch counts as sound if it can be decoded completely, its rows are of the file's
//! day, and its hosts come after those of the batches before.
//! file's day, and its hosts follow those before.

use crate::file::arrow_file::{ArrowFile, conform_to_schema};
use crate::file::index::Index;
use crate::file::staged::{BATCH_ROWS, StagedFile};
use crate::layout;
use crate::manifest::FileEntry;
use crate::rows::identity::Identities;
use crate::store::FileBytes;
use crate::{DatasetError, Result};
use arrow::buffer::Buffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::ipc::convert::try_fb_to_schema;
use arrow::ipc::reader::FileDecoder;
use arrow::ipc::{Block, MessageHeader, MetadataVersion, root_as_message};
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::{schema, with_present_names};
use gleaner_schemas::column::Table;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// First bytes of every message of an Arrow file; the message's length follows them.
const CONTINUATION: [u8; 4] = [0xff; 4];
const ALIGNMENT: usize = 8;
/// Maximum plausible size of a column in a batch, uncompressed.
const UNPACKED_BYTES: i64 = 1 << 30;

/// A damaged file, and the record batches that can be salvaged from it.
pub(crate) struct Salvage {
    data: Buffer,
    schema: SchemaRef,
    version: MetadataVersion,
    /// Record batches in the file's order; true if the batch's hash is known and right.
    blocks: Vec<(Block, bool)>,
    pub(crate) index: Option<Index>,
}

/// Counts of salvaged rows.
#[derive(Default)]
pub(crate) struct SalvagedRows {
    pub(crate) rows: u64,
    pub(crate) unproven_rows: u64,
    pub(crate) by_host: BTreeMap<String, u64>,
}

impl Salvage {
    /// Searches the file of `entry` for batches; `None` if the file cannot be mapped.
    pub(crate) fn open(root: &Path, entry: &FileEntry, table: &Table) -> Option<Self> {
        if let Ok(file) = ArrowFile::open(root, entry) {
            let sound = file.parts().iter().filter(|part| file.is_sound(part));
            let blocks = sound.flat_map(|part| part.batches.clone());
            let blocks = blocks.filter_map(|at| Some((*file.blocks.get(at)?, true)));
            return Some(Self {
                blocks: blocks.collect(),
                data: file.data,
                schema: file.schema,
                version: file.version,
                index: Some(file.index),
            });
        }
        let data = crate::file::arrow_file::map_file(root, &entry.path).ok()?;
        let mut found = Self {
            schema: Arc::new(schema(table)),
            version: MetadataVersion::V5,
            blocks: Vec::new(),
            index: (!entry.hosts.is_empty())
                .then(|| Index::inline(&entry.hosts).ok())
                .flatten(),
            data: data.clone(),
        };
        let (mut at, mut end) = (0, 0);
        while at < data.len() {
            // If no message begins here, the next one may begin at any multiple of the alignment.
            at += match found.message(&data, at) {
                None => ALIGNMENT,
                Some((length, block)) => {
                    found.blocks.extend(block.map(|block| (block, false)));
                    end = at + length;
                    length.next_multiple_of(ALIGNMENT)
                }
            };
        }
        let mut known: HashSet<&[u8]> = data[end..].split(|&byte| byte == b'"').collect();
        known.extend(entry.hosts.iter().map(|host| host.blake3.as_bytes()));
        for (block, proven) in &mut found.blocks {
            let hash = bytes(&data, block).map(|b| blake3::hash(&b).to_string());
            *proven = hash.is_some_and(|hash| known.contains(hash.as_bytes()));
        }
        Some(found)
    }

    /// Parses the message at `at`, if one begins there: its length, and its block if it is a record batch.
    fn message(&mut self, data: &Buffer, at: usize) -> Option<(usize, Option<Block>)> {
        let head = data.get(at..at.checked_add(8)?)?;
        let length = head.strip_prefix(&CONTINUATION)?;
        let length = i32::from_le_bytes(length.try_into().ok()?);
        let end = (at + 8).checked_add(usize::try_from(length).ok()?)?;
        let message = root_as_message(data.get(at + 8..end)?).ok()?;
        let body = usize::try_from(message.bodyLength()).ok()?;
        if end.checked_add(body)? > data.len() {
            return None;
        }
        let whole = end + body - at;
        match message.header_type() {
            MessageHeader::Schema => {
                let found = try_fb_to_schema(message.header_as_schema()?).ok()?;
                self.schema = with_present_names(Arc::new(found));
                self.version = message.version();
                Some((whole, None))
            }
            MessageHeader::RecordBatch => {
                let offset = i64::try_from(at).ok()?;
                let block = Block::new(offset, length.checked_add(8)?, message.bodyLength());
                Some((whole, Some(block)))
            }
            _ => None,
        }
    }

    /// Writes all rows that can be salvaged into `file`.
    pub(crate) fn save(
        &self,
        table: &Table,
        date: &str,
        file: &mut StagedFile,
    ) -> Result<SalvagedRows> {
        let mut saved = SalvagedRows::default();
        let mut host: Vec<RecordBatch> = Vec::new();
        let mut host_id = String::new();
        let mut flush =
            |host: &mut Vec<RecordBatch>, saved: &mut SalvagedRows, id: &str| -> Result<()> {
                if let [first, ..] = &host[..] {
                    let rows = concat_batches(first.schema_ref(), &*host)
                        .map_err(DatasetError::rows(table.name))?;
                    file.add_host(&rows)?;
                    saved.by_host.insert(id.to_owned(), rows.num_rows() as u64);
                    host.clear();
                }
                Ok(())
            };
        for (block, proven) in &self.blocks {
            let Some(batch) = self.decode(block, table) else {
                continue;
            };
            let Ok(identities) = Identities::of(&batch) else {
                continue;
            };
            let runs = identities.host_runs();
            let ids: Vec<&str> = runs
                .iter()
                .map(|r| identities.hosts.value(r.start))
                .collect();
            let in_order = ids.is_sorted_by(|a, b| a < b) && ids.first() >= Some(&&*host_id);
            let of_the_day = |&ms: &i64| layout::date(layout::day(ms)).as_deref() == Some(date);
            if !in_order || !identities.times_ms.iter().all(of_the_day) {
                continue;
            }
            for (run, id) in runs.iter().zip(&ids) {
                if *id != host_id {
                    flush(&mut host, &mut saved, &host_id)?;
                    host_id = (*id).to_owned();
                }
                host.push(batch.slice(run.start, run.len()));
            }
            saved.rows += batch.num_rows() as u64;
            saved.unproven_rows += if *proven { 0 } else { batch.num_rows() as u64 };
        }
        flush(&mut host, &mut saved, &host_id)?;
        Ok(saved)
    }

    fn decode(&self, block: &Block, table: &Table) -> Option<RecordBatch> {
        let data = bytes(&self.data, block)?;
        if !is_plausible(&self.schema, block, &data) {
            return None;
        }
        // Arrow's decoder expects intact files, and panics on some damaged ones; a panic counts as damage.
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            let decoder = FileDecoder::new(Arc::clone(&self.schema), self.version);
            decoder.read_record_batch(block, &data)
        }));
        conform_to_schema(&decoded.ok()?.ok()??, &Arc::new(schema(table))).ok()
    }
}

/// Returns true if a record batch's description matches the table's columns and the batch's bytes. Arrow's
/// decoder does not check this.
fn is_plausible(schema: &SchemaRef, block: &Block, data: &Buffer) -> bool {
    let check = || -> Option<bool> {
        let metadata = usize::try_from(block.metaDataLength()).ok()?;
        let body = data.get(metadata..)?;
        let message = root_as_message(data.get(8..metadata)?).ok()?;
        let batch = message.header_as_record_batch()?;
        let rows = batch.length();
        let nodes = batch.nodes()?;
        let buffers = batch.buffers()?;
        let is_text = |f: &&Arc<Field>| f.data_type() == &DataType::Utf8;
        let texts = schema.fields().iter().filter(is_text).count();
        let fields = schema.fields().len();
        let fits = |offset: i64, length: i64| -> Option<bool> {
            let start = usize::try_from(offset).ok()?;
            let bytes = body.get(start..start.checked_add(usize::try_from(length).ok()?)?)?;
            let Some(unpacked) = bytes.first_chunk::<8>() else {
                return Some(bytes.is_empty());
            };
            let is_packed = batch.compression().is_some();
            Some(!is_packed || (-1..=UNPACKED_BYTES).contains(&i64::from_le_bytes(*unpacked)))
        };
        Some(
            (0..=BATCH_ROWS as i64).contains(&rows)
                && nodes.len() == fields
                && buffers.len() == 2 * fields + texts
                && nodes
                    .iter()
                    .all(|n| n.length() == rows && (0..=rows).contains(&n.null_count()))
                && buffers
                    .iter()
                    .all(|b| fits(b.offset(), b.length()) == Some(true)),
        )
    };
    check() == Some(true)
}

fn bytes(data: &Buffer, block: &Block) -> Option<Buffer> {
    let whole = FileBytes {
        start: 0,
        bytes: data.clone(),
    };
    crate::file::arrow_file::slice(&whole, block)
}
