//! Errors of a dataset; each has its place and a remedy.

use arrow::error::ArrowError;
use std::io;
use std::path::PathBuf;

/// Result with a [`DatasetError`].
pub type Result<T, E = DatasetError> = std::result::Result<T, E>;

/// Reason why a dataset could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The folder has no manifest.
    #[error("not a dataset: no manifest.json in {}; is this the folder that `gleaner-agent export` wrote?", root.display())]
    NotADataset {
        /// Path of the folder, or URL.
        root: PathBuf,
    },
    /// A URL was given to a function that needs a folder.
    #[error("{} is no folder: this needs a dataset in a folder; copy the dataset from the object store into a folder first", root.display())]
    NotAFolder {
        /// URL as given.
        root: PathBuf,
    },
    /// The folder holds something other than a dataset.
    #[error("{} holds files but is not a dataset (no manifest.json); name an empty or new folder", root.display())]
    NotEmpty {
        /// Path of the folder.
        root: PathBuf,
    },
    /// The writer's name is invalid.
    #[error("{name:?} is no name for a writer: lower-case letters, digits, - and _, 64 at most")]
    WriterName {
        /// Name of the writer.
        name: String,
    },
    /// Another writer has the dataset open.
    #[error("{} is being written by another program; wait for it to end, or export to another folder", root.display())]
    Locked {
        /// The dataset's folder.
        root: PathBuf,
    },
    /// The dataset was written by a newer Gleaner.
    #[error("{} has {what} {found}, and this program knows up to {known}; use a newer Gleaner", path.display())]
    Newer {
        /// Path of the manifest.
        path: PathBuf,
        /// Kind of version: of the format or of the schema.
        what: &'static str,
        /// The version found.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// The manifest cannot be parsed.
    #[error("{} is damaged ({source}); restore it from a copy, or export the dataset again", path.display())]
    Manifest {
        /// Path of the manifest.
        path: PathBuf,
        /// Error of the parser.
        source: serde_json::Error,
    },
    /// The manifest does not match its own hash.
    #[error("{} was altered since it was written: its content does not match its own hash; restore it from a copy, or make it anew from the files (`gleaner-collector repair`)", path.display())]
    ManifestAltered {
        /// Path of the manifest.
        path: PathBuf,
    },
    /// A file that the manifest names does not exist.
    #[error("{} does not exist; open the dataset again if it was opened more than an hour ago (replaced files are kept for an hour), otherwise repair it", path.display())]
    Missing {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file's length differs from the sealed length.
    #[error("{} is torn: {found} bytes instead of {expected}; restore it from a copy, or export the dataset again", path.display())]
    Torn {
        /// Path of the file.
        path: PathBuf,
        /// Length at sealing, in bytes.
        expected: u64,
        /// Current length, in bytes.
        found: u64,
    },
    /// A file's content differs from the sealed content.
    #[error("{} was altered since it was sealed: {detail}; restore it from a copy, or export the dataset again", path.display())]
    Altered {
        /// Path of the file.
        path: PathBuf,
        /// Description of the mismatch.
        detail: String,
    },
    /// The rows do not match the table's schema.
    #[error("rows for table {table} do not fit its schema: {detail}")]
    WrongSchema {
        /// Name of the table.
        table: String,
        /// Description of the mismatch.
        detail: String,
    },
    /// The table does not have this column.
    #[error("table {table} has no column {column}; schemas/SCHEMA.md lists its columns")]
    UnknownColumn {
        /// Name of the table.
        table: String,
        /// The requested column.
        column: String,
    },
    /// Arrow could not sort, cut or join rows in memory.
    #[error("cannot arrange rows of table {table}: {source}")]
    Rows {
        /// Name of the table.
        table: String,
        /// Error of Arrow.
        source: ArrowError,
    },
    /// The operating system reports an error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path that the action was applied to.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl DatasetError {
    /// Returns a function for `map_err`: `action` on `path` failed.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// Returns a function for `map_err`: the host index of the file `relative` cannot be parsed.
    pub(crate) fn malformed(
        root: &std::path::Path,
        relative: &str,
    ) -> impl Fn(serde_json::Error) -> Self {
        let path = root.join(relative);
        move |error| Self::Altered {
            path: path.clone(),
            detail: format!("its index is malformed: {error}"),
        }
    }

    /// Returns a function for `map_err`: Arrow could not rearrange rows of `table`.
    pub(crate) fn rows(table: &str) -> impl FnOnce(ArrowError) -> Self {
        let table = table.to_owned();
        move |source| Self::Rows { table, source }
    }
}
