//! Faults of a catalog.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why a catalog cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The file cannot be read or written.
    #[error("catalog {}: {source}", .path.display())]
    Io {
        /// Path of the catalog.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file is no catalog.
    #[error("{} is no catalog of gleaner-commons: {detail}", .path.display())]
    Malformed {
        /// Path of the catalog.
        path: PathBuf,
        /// Description of the fault.
        detail: String,
    },
    /// A row breaks a rule.
    #[error("{}: row {row} ({name:?}) is rejected: {detail}", .path.display())]
    Row {
        /// Path of the catalog.
        path: PathBuf,
        /// Number of the row, from 0.
        row: u64,
        /// Path in the row, as far as it can be shown.
        name: String,
        /// Description of the fault.
        detail: String,
    },
    /// The file's hash is not the one that was pinned.
    #[error("{} has the hash {found}, and the pinned one is {expected}: it is another version, or was altered", .path.display())]
    OtherHash {
        /// Path of the catalog.
        path: PathBuf,
        /// Pinned hash, in hexadecimal digits.
        expected: String,
        /// Hash of the file, in hexadecimal digits.
        found: String,
    },
}

impl CatalogError {
    pub(super) fn malformed(path: &Path, detail: impl ToString) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            detail: detail.to_string(),
        }
    }
}
