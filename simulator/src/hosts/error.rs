//! Errors of reading hosts.

use gleaner_dataset::DatasetError;
use std::path::PathBuf;

/// Result with a [`HostsError`].
pub type Result<T, E = HostsError> = std::result::Result<T, E>;

/// Reason why hosts could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostsError {
    /// The dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A column has another type, or is empty where a value is required.
    #[error("table {table} of {} has no usable column {column}; was it written by Gleaner?", root.display())]
    Column {
        /// Root of the dataset.
        root: PathBuf,
        /// Name of the table.
        table: &'static str,
        /// Name of the column.
        column: String,
    },
    /// No host has a sample in the requested time.
    #[error("{} has no samples between {from_ms} and {until_ms} (ms since 1970); name a time in which it has some", root.display())]
    Empty {
        /// Root of the dataset.
        root: PathBuf,
        /// Begin of the requested time.
        from_ms: i64,
        /// End of the requested time.
        until_ms: i64,
    },
}
