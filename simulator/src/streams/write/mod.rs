//! Writes streams in other programs' formats. A file is written next to its place and moved there when it is
//! complete, replacing an existing file. If the name ends in `.zst`, the file is compressed.

mod csv;
mod oracle_general;
mod unfinished;

pub use csv::csv;
pub use oracle_general::oracle_general;

/// Counts of a written stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSummary {
    /// Number of requests.
    pub requests: u64,
    /// Size of the file, in bytes.
    pub bytes: u64,
}
