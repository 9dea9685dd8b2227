//! Encodes the oldest records that the collector does not have.

use crate::Error;
use crate::trace::rows::{Trace, can_be_read_around};
use gleaner_dataset::Batch;
use gleaner_schemas::rows::TABLES;
use std::collections::BTreeSet;

/// Maximum number of records in one batch.
pub(crate) const MOST_RECORDS: usize = 512;

/// Size limit of a batch's content before compression, in bytes; a single record may exceed it.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// Maximum number of sequence numbers in one batch of a damaged database, whose content size is not known
/// beforehand.
const MOST_SALVAGED: usize = 64;

/// Records encoded for sending.
#[derive(Debug)]
pub(crate) struct EncodedBatch {
    /// Encoded records; empty if none of them could be read.
    pub(crate) body: Vec<u8>,
    /// Sequence number of the last record sent.
    pub(crate) last_sequence: i64,
    /// Sequence number of the last record covered; the unreadable ones up to it are skipped.
    pub(crate) until: i64,
    /// Number of records; for a damaged database an upper bound.
    pub(crate) records_count: usize,
    /// Approximate size of the records in memory, in bytes; 0 for a damaged database.
    pub(crate) content_bytes: usize,
    /// Number of rows that these records have in all tables.
    pub(crate) rows_count: usize,
    /// Number of records that could not be read completely.
    pub(crate) unreadable_count: usize,
}

/// Encodes at most `most` records of `trace` that follow the record `after`; `None` if there are none.
///
/// # Errors
/// The trace cannot be read, at all or at present.
pub(crate) fn next(trace: &Trace, after: i64, most: usize) -> Result<Option<EncodedBatch>, Error> {
    match whole(trace, after, most) {
        Err(error) if can_be_read_around(&error) => salvaged(trace, after, most),
        other => other,
    }
}

fn whole(trace: &Trace, after: i64, most: usize) -> Result<Option<EncodedBatch>, Error> {
    let mut records = trace.records_after(after, most)?;
    while let Some(&last_sequence) = records.last() {
        let most_bytes = if records.len() == 1 {
            usize::MAX
        } else {
            MOST_BYTES
        };
        if let Some(travelling) = up_to(trace, after, last_sequence, most_bytes)? {
            return Ok(Some(EncodedBatch {
                records_count: records.len(),
                ..travelling
            }));
        }
        records.truncate(records.len() / 2);
    }
    Ok(None)
}

fn up_to(
    trace: &Trace,
    after: i64,
    last_sequence: i64,
    most_bytes: usize,
) -> Result<Option<EncodedBatch>, Error> {
    let mut tables = Vec::new();
    let (mut content_bytes, mut rows_count) = (0, 0);
    for table in TABLES {
        let Some(rows) = trace.rows(&table, (after, last_sequence), most_bytes - content_bytes)?
        else {
            return Ok(None);
        };
        content_bytes += rows.content_bytes;
        rows_count += rows.builder.len();
        tables.push((table, rows.builder.finish()?));
    }
    Ok(Some(EncodedBatch {
        body: Batch::encode(&tables)?,
        last_sequence,
        until: last_sequence,
        records_count: 0,
        content_bytes,
        rows_count,
        unreadable_count: 0,
    }))
}

/// Reads a batch as [`whole`] does, but by sequence numbers, since a damaged database cannot list its
/// records.
fn salvaged(trace: &Trace, after: i64, most: usize) -> Result<Option<EncodedBatch>, Error> {
    let last = trace.last_readable()?;
    let after = trace.before_next_readable(after, last);
    if after >= last {
        return Ok(None);
    }
    let width = most.clamp(1, MOST_SALVAGED) as i64;
    let until = last.min(after.saturating_add(width));
    let mut unreadable = BTreeSet::new();
    let mut tables = Vec::new();
    let (mut rows_count, mut last_sequence) = (0, 0);
    for table in TABLES {
        for rows in trace.readable_rows(&table, (after, until), &mut unreadable)? {
            rows_count += rows.builder.len();
            last_sequence = rows.last_sequence.max(last_sequence);
            tables.push((table, rows.builder.finish()?));
        }
    }
    let body = if rows_count > 0 {
        Batch::encode(&tables)?
    } else {
        Vec::new()
    };
    Ok(Some(EncodedBatch {
        body,
        last_sequence,
        until,
        records_count: usize::try_from(until - after).unwrap_or(usize::MAX),
        content_bytes: 0,
        rows_count,
        unreadable_count: unreadable.len(),
    }))
}
