//! Stores: places of a dataset's files other than a folder, such as a bucket of an object store. Threads fetch
//! the bytes, so that the waits for a distant store overlap.

mod fetcher;
#[cfg(test)]
pub(crate) mod memory;
mod pieces;

pub(crate) use fetcher::{Fetcher, Limits};
pub(crate) use pieces::{Extent, FileBytes};

use bytes::Bytes;
use std::fmt;
use std::io;
use std::ops::Range;

/// Place of a dataset's files that is not a folder. Paths are relative to the place, with `/` between their parts.
///
/// Errors carry the whole message: their causes are not printed. [`io::ErrorKind::NotFound`] means that the file
/// does not exist.
pub trait Store: fmt::Debug + Send + Sync {
    /// URL of the place, which begins the paths in messages.
    fn url(&self) -> &str;

    /// Names of the files directly in a folder; none if the folder does not exist.
    ///
    /// # Errors
    /// The store's error.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Content of a file.
    ///
    /// # Errors
    /// The store's error.
    fn read(&self, path: &str) -> io::Result<Bytes>;

    /// Bytes of a file between two offsets.
    ///
    /// # Errors
    /// The store's error.
    fn read_range(&self, path: &str, range: Range<u64>) -> io::Result<Bytes>;

    /// Last `length` bytes of a file (the whole file if it is shorter), and the file's length in bytes.
    ///
    /// # Errors
    /// The store's error.
    fn read_end(&self, path: &str, length: u64) -> io::Result<(Bytes, u64)>;
}
