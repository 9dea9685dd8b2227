//! Writes CSV with the header `time,obj_id,obj_size,op,client`. The time is in seconds, to the nanosecond,
//! and `op` is read or write. Nothing is lost: [`Columns::ours`](crate::streams::read::Columns::ours) reads
//! the same stream back.

use super::StreamSummary;
use super::unfinished::{Output, UnfinishedStream};
use crate::streams::{StreamError, StreamRequest};
use std::io::{self, Write};
use std::path::Path;

const NS_PER_S: u64 = 1_000_000_000;

/// Writes a stream to `place`.
///
/// # Errors
/// The error of the stream itself, or the system's error; `place` is then unchanged.
pub fn csv(
    place: &Path,
    stream: impl Iterator<Item = Result<StreamRequest, StreamError>>,
) -> Result<StreamSummary, StreamError> {
    let (unfinished, file) = UnfinishedStream::begin(place, ".unfinished")?;
    let io = |error| StreamError::io("write", place)(error);
    let mut output = Output::to(place, file).map_err(io)?;
    output
        .write_all(b"time,obj_id,obj_size,op,client\n")
        .map_err(io)?;
    let mut requests = 0;
    for recorded in stream {
        row(&mut output, &recorded?).map_err(io)?;
        requests += 1;
    }
    let file = output.end().map_err(io)?;
    Ok(StreamSummary {
        requests,
        bytes: unfinished.finish(&file)?,
    })
}

fn row(output: &mut Output, recorded: &StreamRequest) -> io::Result<()> {
    let StreamRequest {
        at_ns,
        client,
        request,
    } = recorded;
    let (whole, part) = (at_ns / NS_PER_S, at_ns % NS_PER_S);
    match part {
        0 => write!(output, "{whole}")?,
        _ => {
            let part = format!("{part:09}");
            write!(output, "{whole}.{}", part.trim_end_matches('0'))?;
        }
    }
    let op = if request.is_write { "write" } else { "read" };
    let (object, bytes, client) = (request.object, request.bytes, client.number());
    writeln!(output, ",{object},{bytes},{op},{client}")
}
