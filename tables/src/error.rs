//! Errors of publishing; each has its place and a remedy.

use gleaner_dataset::DatasetError;
use gleaner_schemas::units::Bytes;
use std::io;
use std::path::PathBuf;

/// Result with a [`TableError`].
pub type Result<T, E = TableError> = std::result::Result<T, E>;

/// Reason why tables could not be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The folder holds something other than published tables.
    #[error("{} holds files but no published tables (no gleaner-tables.json); name an empty or new folder", folder.display())]
    NotEmpty {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// Another program publishes into the folder.
    #[error("{} is being written by another program; wait for it to end, or name another folder", folder.display())]
    Locked {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// The location cannot be written into the tables' metadata.
    #[error("{location:?} cannot be the tables' location: {detail}")]
    Location {
        /// The invalid location.
        location: String,
        /// Description of the fault.
        detail: &'static str,
    },
    /// The disk has no room for the next file.
    #[error(
        "{} has {} of free disk space, but publishing needs {}; free disk space, or name a folder on another disk",
        folder.display(),
        Bytes::from(*free_bytes),
        Bytes::from(*needed_bytes)
    )]
    NoRoom {
        /// Path of the folder.
        folder: PathBuf,
        /// Free bytes on the folder's disk.
        free_bytes: u64,
        /// Expected bytes of the next file, and the bytes that must stay free.
        needed_bytes: u64,
    },
    /// A table's metadata cannot be parsed, or another program changed the table.
    #[error("{} is damaged or was written by another program ({detail}); remove the table's folder, and publish again", path.display())]
    Damaged {
        /// Path of the metadata file.
        path: PathBuf,
        /// Description of the fault.
        detail: String,
    },
    /// A file of the dataset has rows of several UTC days, so that it fits no partition.
    #[error(
        "cannot publish {path}: its rows are of several UTC days; verify the dataset (`gleaner-collector verify`)"
    )]
    SeveralDays {
        /// Path of the file, relative to the dataset.
        path: String,
    },
    /// The dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path that the action was applied to.
        path: PathBuf,
        /// Error of the system or of the format's writer.
        source: io::Error,
    },
}

impl TableError {
    /// Returns a function for `map_err`: `action` on `path` failed.
    pub(crate) fn io<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |error| Self::Io {
            action,
            path,
            source: match error.into().downcast::<io::Error>() {
                Ok(source) => *source,
                Err(other) => io::Error::other(other),
            },
        }
    }

    /// Returns a function for `map_err`: the content of `path` is invalid.
    pub(crate) fn damaged<E: ToString>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |error| Self::Damaged {
            path,
            detail: error.to_string(),
        }
    }
}
