//! Errors of a stream. Each one states the reason, the place and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why a stream could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// A line that cannot be read.
    #[error("{} line {line}: {found}; {advice}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Contents found in the line.
        found: String,
        /// Remedy for the reader of the message.
        advice: &'static str,
    },
    /// A record that cannot be read.
    #[error("{} byte {offset}: {found}; {advice}", path.display())]
    Record {
        /// Path of the file.
        path: PathBuf,
        /// Offset at which the record begins, from 0; in a compressed file, after decompression.
        offset: u64,
        /// Contents found in the record.
        found: String,
        /// Remedy for the reader of the message.
        advice: &'static str,
    },
    /// An empty or impossible setting.
    #[error("{found}; {advice}")]
    Setting {
        /// Value that was set.
        found: String,
        /// Remedy for the reader of the message.
        advice: String,
    },
    /// A request that the format cannot express.
    #[error("request {number}, for {}: {found}; {advice}", path.display())]
    Unsayable {
        /// File to be written.
        path: PathBuf,
        /// Number of the request, from 1.
        number: u64,
        /// Request that was refused.
        found: String,
        /// Remedy for the reader of the message.
        advice: &'static str,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system, or of the decompression.
        source: io::Error,
    },
}

impl StreamError {
    /// Makes a function for `map_err`, for a failed `action` on `path`.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
