//! Writes libCacheSim's oracleGeneral: time (s), object, size, and number of the next request for the same
//! object.
//!
//! The next request is known only later. So the stream is first written without these numbers; then the file
//! is processed from its end, piece by piece. Only one number per object is kept in memory, however many
//! requests there are.

use super::StreamSummary;
use super::unfinished::{Output, UnfinishedStream, is_compressed};
use crate::streams::{Objects, StreamError, StreamRequest};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

const RECORD_BYTES: usize = 24;
/// Number of records that are processed at a time.
const PIECE_RECORDS: usize = 1 << 13;
/// Bytes of a record that hold the object; below, those that hold the number of its next request.
const OBJECT: std::ops::Range<usize> = 4..12;
const NEXT: std::ops::Range<usize> = 16..24;
/// Value for an object without a next request.
const NEVER: i64 = -1;
const NS_PER_S: u64 = 1_000_000_000;

/// Writes a stream to `place`. Of each request the whole seconds, the object and the size are kept; the
/// client is lost, and whether the request reads or writes.
///
/// # Errors
/// The error of the stream itself; [`StreamError::Unsayable`] for a time of 2³² s or more, or for more
/// objects than can be numbered; or the system's error. `place` is then unchanged.
pub fn oracle_general(
    place: &Path,
    stream: impl Iterator<Item = Result<StreamRequest, StreamError>>,
) -> Result<StreamSummary, StreamError> {
    let (unfinished, file) = UnfinishedStream::begin(place, ".unfinished")?;
    let io = |error| StreamError::io("write", place)(error);
    let mut output = BufWriter::with_capacity(1 << 17, file);
    let mut requests = 0;
    for recorded in stream {
        requests += 1;
        let record = record(&recorded?, place, requests)?;
        output.write_all(&record).map_err(io)?;
    }
    let mut file = output
        .into_inner()
        .map_err(|error| io(error.into_error()))?;
    if !link(&mut file, requests).map_err(io)? {
        return Err(StreamError::Unsayable {
            path: place.to_owned(),
            number: requests,
            found: "there are more than 2^32 - 2 objects".to_owned(),
            advice: "write CSV",
        });
    }
    let bytes = if is_compressed(place) {
        let (compressed, into) = UnfinishedStream::begin(place, ".unfinished.zst")?;
        let into = compress(file, place, into).map_err(io)?;
        compressed.finish(&into)?
    } else {
        unfinished.finish(&file)?
    };
    Ok(StreamSummary { requests, bytes })
}

fn record(
    recorded: &StreamRequest,
    place: &Path,
    number: u64,
) -> Result<[u8; RECORD_BYTES], StreamError> {
    let time_s = recorded.at_ns / NS_PER_S;
    let time_s = u32::try_from(time_s).map_err(|_| StreamError::Unsayable {
        path: place.to_owned(),
        number,
        found: format!("its time is {time_s} s, and the format ends at 2^32 s"),
        advice: "write CSV, or read times that begin with the recording",
    })?;
    let mut record = [0; RECORD_BYTES];
    record[..4].copy_from_slice(&time_s.to_le_bytes());
    record[OBJECT].copy_from_slice(&recorded.request.object.to_le_bytes());
    record[12..16].copy_from_slice(&recorded.request.bytes.to_le_bytes());
    Ok(record)
}

/// Fills in the numbers of next requests, beginning at the end of the file. Returns false if there are too
/// many objects.
fn link(file: &mut File, requests: u64) -> io::Result<bool> {
    let mut objects = Objects::default();
    // For each object, the number of the request seen last. The file is processed backwards, so this is the
    // next request for an earlier one.
    let mut seen: Vec<i64> = Vec::new();
    let mut piece = vec![0; PIECE_RECORDS * RECORD_BYTES];
    let mut left = requests;
    while left > 0 {
        let records = left.min(PIECE_RECORDS as u64);
        let begin = SeekFrom::Start((left - records) * RECORD_BYTES as u64);
        let piece = &mut piece[..records as usize * RECORD_BYTES];
        file.seek(begin)?;
        file.read_exact(piece)?;
        for record in piece.rchunks_exact_mut(RECORD_BYTES) {
            let mut object = [0; 8];
            object.copy_from_slice(&record[OBJECT]);
            let Some(object) = objects.number(u64::from_le_bytes(object)) else {
                return Ok(false);
            };
            if object as usize == seen.len() {
                seen.push(NEVER);
            }
            let next = std::mem::replace(&mut seen[object as usize], left.cast_signed());
            record[NEXT].copy_from_slice(&next.to_le_bytes());
            left -= 1;
        }
        file.seek(begin)?;
        file.write_all(piece)?;
    }
    Ok(true)
}

fn compress(mut file: File, place: &Path, into: File) -> io::Result<File> {
    file.seek(SeekFrom::Start(0))?;
    let mut output = Output::to(place, into)?;
    io::copy(&mut file, &mut output)?;
    output.end()
}
