//! Writes streams in formats of others. A file is written beside its place and put there when it is whole; one that is there is
//! replaced. A name that ends in `.zst` is compressed.

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
