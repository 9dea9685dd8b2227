//! What can go wrong with an export, where, and what to do about it.

use gleaner_dataset::DatasetError;
use std::io;
use std::path::PathBuf;

/// Result with an [`ExportError`].
pub type Result<T, E = ExportError> = std::result::Result<T, E>;

/// Why a dataset could not be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The folder holds something that is not an export.
    #[error("{} holds files that are not an export of Gleaner; name an empty or new folder", folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// The dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A file could not be written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system, or the writer of the format, said.
        source: io::Error,
    },
}

impl ExportError {
    /// For `map_err`: `action` on `path` failed.
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
