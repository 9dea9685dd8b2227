//! Errors of recordings and curves. Each one states the reason, the place and the remedy.

use crate::streams::StreamError;
use std::io;
use std::path::{Path, PathBuf};

/// Reason why a recording or a curve cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReferencesError {
    /// A record, or a file's head, that the recorder does not write.
    #[error("{} byte {offset}: {found}; record the program again", path.display())]
    Record {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the record, from 0.
        offset: u64,
        /// Contents found there.
        found: String,
    },
    /// A curve that is no JSON document of the right form.
    #[error("{}: {reason}; make it with gleaner curve record", path.display())]
    Form {
        /// Path of the curve.
        path: PathBuf,
        /// Description of the fault, with line and column.
        reason: String,
    },
    /// A value of a curve that no recording gives.
    #[error("{}: {key} {found}; make it with gleaner curve record", path.display())]
    Value {
        /// Path of the curve.
        path: PathBuf,
        /// Key of the value.
        key: String,
        /// Description of the fault.
        found: String,
    },
    /// A stream of requests could not be read.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// More distinct pages than can be numbered.
    #[error("there are more than {most} distinct pages; record a smaller input, or take --sampled")]
    TooManyPages {
        /// Maximum number of pages.
        most: u32,
    },
    /// A file could not be read.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl ReferencesError {
    /// Makes a function for `map_err`, for a failed `action` on `path`.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// Makes an error about a record.
    pub(super) fn record(path: &Path, offset: u64, found: impl Into<String>) -> Self {
        Self::Record {
            path: path.to_owned(),
            offset,
            found: found.into(),
        }
    }
}
