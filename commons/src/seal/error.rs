//! Faults of sealing.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why a folder cannot be sealed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A pipe, socket or device.
    #[error("{} is a {kind}: only files, directories and symbolic links can be sealed; remove it", .path.display())]
    Special {
        /// Path of the file.
        path: PathBuf,
        /// Kind of the file.
        kind: &'static str,
    },
    /// A file or folder was changed meanwhile.
    #[error("{} changed while it was sealed: seal the folder again when no program writes to it", .path.display())]
    Changed {
        /// Path of the file or folder.
        path: PathBuf,
    },
    /// A file has too many blocks.
    #[error("{} has {bytes} bytes: a catalog holds files of up to 100 TiB", .path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Size of the file.
        bytes: u64,
    },
    /// The catalog would be a part of the folder.
    #[error("the catalog {} would lie inside {}: write it to another folder", .output.display(), .folder.display())]
    OutputInside {
        /// Path of the catalog.
        output: PathBuf,
        /// Folder that is sealed.
        folder: PathBuf,
    },
    /// The output's path has no file name.
    #[error("{} is no name of a catalog: write it like tools.catalog", .output.display())]
    NoName {
        /// Path of the catalog.
        output: PathBuf,
    },
    /// The output exists and is no regular file.
    #[error("{} exists and is no regular file: choose another name for the catalog", .output.display())]
    NotAFile {
        /// Path of the catalog.
        output: PathBuf,
    },
    /// The catalog cannot be written.
    #[error("cannot write the catalog: {source}")]
    Write {
        /// Error of the system.
        source: io::Error,
    },
    /// A hashing thread ended early.
    #[error("a thread that hashes files has ended")]
    Interrupted,
}

impl SealError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
