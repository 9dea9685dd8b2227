//! Reads recorded streams.

mod block;
mod block_csv;
mod clock;
mod columns;
mod csv;
mod fields;
mod input;
mod lackey;
mod merge;
mod named;
mod number;
mod oracle_general;
mod rows;
mod spc;

pub use block::BlockBytes;
pub use columns::Columns;
pub use merge::open_all;
pub use named::FormatName;
pub use number::TimeUnit;
pub use oracle_general::OracleGeneral;

use super::{Client, StreamError, StreamRequest};
use block_csv::BlockCsv;
use csv::Csv;
use input::Input;
use lackey::Lackey;
use spc::Spc;
use std::path::Path;

/// Requests of a stream, in the order of the recording. The iterator ends after the first error.
pub type Requests = Box<dyn Iterator<Item = Result<StreamRequest, StreamError>> + Send>;

/// Format of a recorded stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// libCacheSim's binary format, 24 bytes per request.
    OracleGeneral,
    /// Text with one request per line; the columns are configured.
    Csv(Columns),
    /// Format of the Storage Performance Council: ASU, LBA, size, opcode, timestamp.
    Spc(BlockBytes),
    /// CSV of requests to volumes, with a header: `time_s`, `client`, `op`, `offset_bytes`, `bytes`.
    BlockCsv(BlockBytes),
    /// Memory accesses that valgrind's tool lackey prints; a block is a page.
    Lackey(BlockBytes),
}

/// Opens a stream. `file` is the index of the file, from 0, among the files that are read together. A file
/// whose name ends in `.zst` (or, like some public traces, in `.zst.22`) is decompressed.
///
/// # Errors
/// The system's error, or a header without the required columns.
pub fn open(path: &Path, format: &Format, file: u32) -> Result<Requests, StreamError> {
    let input = Input::open(path)?;
    Ok(match format {
        Format::OracleGeneral => Box::new(UntilError::error(OracleGeneral::new(input, file)?)),
        Format::Csv(columns) => Box::new(UntilError::error(Csv::new(input, columns, file))),
        Format::Spc(block) => Box::new(UntilError::error(Spc::new(input, *block, file))),
        Format::BlockCsv(block) => Box::new(UntilError::error(BlockCsv::new(input, *block, file)?)),
        Format::Lackey(block) => Box::new(UntilError::error(Lackey::new(input, *block, file)?)),
    })
}

/// Reader that returns one request after the other.
trait Reading {
    /// Returns the next request; `None` at the end.
    fn read(&mut self) -> Result<Option<StreamRequest>, StreamError>;
}

/// Iterator that ends after the first error.
struct UntilError<R>(Option<R>);

impl<R: Reading> UntilError<R> {
    fn error(reading: R) -> Self {
        Self(Some(reading))
    }
}

impl<R: Reading> Iterator for UntilError<R> {
    type Item = Result<StreamRequest, StreamError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.0.as_mut()?.read() {
            Ok(Some(recorded)) => Some(Ok(recorded)),
            Ok(None) => {
                self.0 = None;
                None
            }
            Err(error) => {
                self.0 = None;
                Some(Err(error))
            }
        }
    }
}

/// Makes the client numbered `within` in the file, or returns an error text.
fn client(file: u32, within: u64) -> Result<Client, String> {
    let client = u32::try_from(within)
        .ok()
        .and_then(|within| Client::of(file, within));
    client.ok_or_else(|| format!("client {within} is more than are told apart"))
}
