//! Checks the messages of Arrow IPC streams before any of them is decoded, since an untrusted sender's batch
//! may claim anything.
//!
//! Layout (Arrow columnar format, "Encapsulated message format"): marker FF FF FF FF, length of the
//! metadata, metadata (a flatbuffer), body. A length of 0 ends the stream.

use arrow::ipc::{Buffer, FieldNode, MessageHeader, RecordBatch, root_as_message};
use std::ops::Range;

const MARKER: [u8; 4] = [0xff; 4];

/// Returns the range of each stream in `content`, end marker included.
///
/// # Errors
/// Description of the fault: a message is truncated, is of a kind that batches do not have, or has compressed
/// rows (their claimed size could be anything).
pub(super) fn streams(content: &[u8]) -> Result<Vec<Range<usize>>, String> {
    let mut streams = Vec::new();
    let (mut start, mut at, mut messages) = (0, 0, 0);
    while at < content.len() {
        let length = header(content, at)?;
        at += 8;
        if length == 0 {
            if messages == 0 {
                return Err("a stream without a schema".to_owned());
            }
            streams.push(start..at);
            (start, messages) = (at, 0);
            continue;
        }
        let metadata = content.get(at..).and_then(|rest| rest.get(..length));
        let metadata = metadata.ok_or("a message is cut off")?;
        at += length;
        let body = body_length(metadata, messages == 0)?;
        at = at
            .checked_add(body)
            .filter(|&end| end <= content.len())
            .ok_or("a message's body is cut off")?;
        messages += 1;
    }
    if start != at {
        return Err("the last stream has no end".to_owned());
    }
    Ok(streams)
}

/// Length of the metadata of the message at `at`.
fn header(content: &[u8], at: usize) -> Result<usize, String> {
    let bytes: Option<&[u8; 8]> = content.get(at..).and_then(<[u8]>::first_chunk);
    let bytes = bytes.ok_or("a message's beginning is cut off")?;
    let (marker, length) = bytes.split_at(4);
    if marker != MARKER {
        return Err("not an Arrow IPC stream".to_owned());
    }
    let length = length.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
    Ok(length)
}

fn body_length(metadata: &[u8], is_first: bool) -> Result<usize, String> {
    let message = root_as_message(metadata).map_err(|e| format!("a message is malformed: {e}"))?;
    match (message.header_type(), is_first) {
        (MessageHeader::Schema, true) | (MessageHeader::RecordBatch, false) => {}
        (kind, _) => return Err(format!("an unexpected message ({kind:?})")),
    }
    if let Some(rows) = message.header_as_record_batch() {
        check_rows(&rows, message.bodyLength())?;
    }
    usize::try_from(message.bodyLength()).map_err(|_| "a body of negative length".to_owned())
}

/// Checks that all buffers of `rows` are within the message's body; Arrow's decoder slices them without a
/// check.
fn check_rows(rows: &RecordBatch<'_>, body_bytes: i64) -> Result<(), String> {
    if rows.compression().is_some() {
        return Err("rows compressed by themselves".to_owned());
    }
    let inside = |place: &Buffer| {
        let end = place.offset().checked_add(place.length());
        place.offset() >= 0 && place.length() >= 0 && end.is_some_and(|end| end <= body_bytes)
    };
    let counts = |node: &FieldNode| {
        node.length() == rows.length() && (0..=node.length()).contains(&node.null_count())
    };
    if !rows.buffers().iter().flatten().all(inside) {
        return Err("a column lies outside its message".to_owned());
    }
    if rows.length() < 0 || !rows.nodes().iter().flatten().all(counts) {
        return Err("a column with another number of rows".to_owned());
    }
    Ok(())
}
