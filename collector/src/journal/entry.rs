//! A batch as stored in the journal.
//!
//! ```text
//! "GLEANJ2\n"  length of the header  length of the body  BLAKE3 of both, 16 bytes
//! BLAKE3 of the 32 bytes before, 8 bytes  header (JSON)  body
//! ```
//! Lengths are 32-bit, little-endian. The magic serves to find the next entry after a damaged one. The hash
//! of the frame itself distinguishes a damaged length from an entry that a crash cut off. Entries of version
//! 1 (with `GLEANJ1` as magic) lack this hash, and can still be read.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Magic at the beginning of every entry written.
const MAGIC: [u8; 8] = *b"GLEANJ2\n";
/// Magic of entries of earlier releases.
const MAGIC_1: [u8; 8] = *b"GLEANJ1\n";
const HASH_BYTES: usize = 16;
/// Length of magic, two lengths and hash.
const FRAME_BYTES: usize = 8 + 4 + 4 + HASH_BYTES;
/// Length of the hash of the frame itself.
const CHECK_BYTES: usize = 8;

/// Facts about a batch that are known without decoding it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Id of the host.
    pub host_id: String,
    /// Id of the host's database.
    pub database_id: String,
    /// Lowest sequence number of the batch's records.
    pub first_sequence: i64,
    /// Highest sequence number of the batch's records.
    pub last_sequence: i64,
    /// Number of rows in all tables.
    pub rows_count: u64,
    /// Arrival of the batch by the collector's clock, ms since 1970-01-01 UTC; earlier builds wrote `received_ms`.
    #[serde(alias = "received_ms")]
    pub received_time_ms: i64,
    /// The host's clock less the collector's at the time of sending, in ms; off by the one-way delay.
    pub skew_ms: Option<i64>,
}

/// A batch with its header; the batch is stored as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Facts about the batch.
    pub header: Header,
    /// The batch, compressed.
    pub body: Bytes,
}

impl Entry {
    /// Appends the entry to `to`.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let header = serde_json::to_vec(&self.header).unwrap_or_default(); // plain structs always serialise
        self.write_with(&header, to);
    }

    fn write_with(&self, header: &[u8], to: &mut Vec<u8>) {
        let begin = to.len();
        to.extend_from_slice(&MAGIC);
        for length in [header.len(), self.body.len()] {
            // Both lengths are far below 4 GiB, since bodies are limited on arrival.
            to.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        }
        to.extend_from_slice(&hash(header, &self.body));
        let check = check(to.get(begin..).unwrap_or_default());
        to.extend_from_slice(&check);
        to.extend_from_slice(header);
        to.extend_from_slice(&self.body);
    }

    /// Parses the entry at the beginning of `bytes`, and returns it with its length. Returns `None` if there
    /// is no complete entry.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (frame, rest) = bytes.split_at_checked(FRAME_BYTES)?;
        let (rest, check_bytes) = if frame.starts_with(&MAGIC) {
            let (found, rest) = rest.split_at_checked(CHECK_BYTES)?;
            (rest, (found == check(frame)).then_some(CHECK_BYTES)?)
        } else {
            (rest, frame.starts_with(&MAGIC_1).then_some(0)?)
        };
        let length = |at: usize| -> Option<usize> {
            let bytes: &[u8; 4] = frame.get(at..)?.first_chunk()?;
            usize::try_from(u32::from_le_bytes(*bytes)).ok()
        };
        let (header, rest) = rest.split_at_checked(length(8)?)?;
        let (body, _) = rest.split_at_checked(length(12)?)?;
        if frame.get(FRAME_BYTES - HASH_BYTES..)? != hash(header, body) {
            return None;
        }
        let size = FRAME_BYTES + check_bytes + header.len() + body.len();
        let entry = Self {
            header: serde_json::from_slice(header).ok()?,
            body: Bytes::copy_from_slice(body),
        };
        Some((entry, size))
    }

    /// Appends the entry in the form of earlier releases.
    #[cfg(test)]
    pub(super) fn write_version_1(&self, to: &mut Vec<u8>) {
        let header = serde_json::to_string(&self.header).unwrap();
        let header = header.replace("received_time_ms", "received_ms");
        let begin = to.len();
        self.write_with(header.as_bytes(), to);
        to[begin..begin + MAGIC_1.len()].copy_from_slice(&MAGIC_1);
        to.drain(begin + FRAME_BYTES..begin + FRAME_BYTES + CHECK_BYTES);
    }

    /// Returns true if `bytes`, which begins with an incomplete entry, begins with one that a crash cut off.
    /// Such an entry was never acknowledged. Returns false if a complete entry was damaged.
    pub(super) fn is_truncated(bytes: &[u8]) -> bool {
        let length = |at: usize| -> Option<usize> {
            let bytes: &[u8; 4] = bytes.get(at..)?.first_chunk()?;
            usize::try_from(u32::from_le_bytes(*bytes)).ok()
        };
        let mut frame_bytes = FRAME_BYTES;
        if bytes.starts_with(&MAGIC) {
            frame_bytes += CHECK_BYTES;
            let Some((frame, rest)) = bytes.split_at_checked(FRAME_BYTES) else {
                return true;
            };
            let Some((found, _)) = rest.split_at_checked(CHECK_BYTES) else {
                return true;
            };
            if found != check(frame) {
                return false; // the lengths are damaged and mean nothing
            }
        }
        let size = length(8).zip(length(12));
        let size =
            size.map(|(header, body)| frame_bytes.saturating_add(header).saturating_add(body));
        size.is_none_or(|size| size > bytes.len())
    }

    /// Offset at which the next entry might begin in `bytes`, which begins with a damaged entry.
    pub(super) fn next_after_damage(bytes: &[u8]) -> Option<usize> {
        let beginnings = bytes.windows(MAGIC.len()).enumerate().skip(1);
        let mut found = beginnings.filter(|(_, window)| *window == MAGIC || *window == MAGIC_1);
        found
            .find(|(at, _)| bytes.get(*at..).and_then(Self::read).is_some())
            .map(|(at, _)| at)
    }
}

fn check(frame: &[u8]) -> [u8; CHECK_BYTES] {
    let mut first = [0; CHECK_BYTES];
    let mut hasher = blake3::Hasher::new();
    hasher.update(frame).finalize_xof().fill(&mut first);
    first
}

fn hash(header: &[u8], body: &[u8]) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header).update(body);
    let mut first = [0; HASH_BYTES];
    hasher.finalize_xof().fill(&mut first);
    first
}
