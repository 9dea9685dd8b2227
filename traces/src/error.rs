//! Errors of exports, each with its path and a remedy.

use gleaner_dataset::DatasetError;
use std::io;
use std::path::PathBuf;

/// Result with an [`ExportError`].
pub type Result<T, E = ExportError> = std::result::Result<T, E>;

/// Reason why a dataset could not be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The folder holds files that are not from an export.
    #[error("{} holds files that are not an export of Gleaner; name an empty or new folder", folder.display())]
    NotEmpty {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// The folder for new files is not empty.
    #[error("{} already has files; name an empty or new folder", folder.display())]
    Occupied {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// The dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A file could not be written.
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

impl ExportError {
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
}
