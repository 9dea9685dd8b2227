//! Faults of mounting.

use crate::catalog::CatalogError;
use crate::source::SourceError;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Reason why a folder cannot be mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The catalog cannot be used.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The source cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The mount point is no folder.
    #[error("mount point {}: {source}; make the folder first", .point.display())]
    Point {
        /// Path of the mount point.
        point: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A mount whose daemon has ended is still there.
    #[error("{0} is still mounted by a process that has ended: run `umount -l {0}` first", .point.display())]
    Stale {
        /// Path of the mount point.
        point: PathBuf,
    },
    /// The status socket cannot be made.
    #[error("status socket {}: {source}; name another with --socket", .path.display())]
    Socket {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The system rejects the mount, or has ended it.
    #[error(
        "cannot mount at {}: {source}; mounting needs /dev/fuse, and root or the program fusermount3 (package fuse3)",
        .point.display()
    )]
    Mount {
        /// Path of the mount point.
        point: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The system rejects unmounting.
    #[error("cannot unmount {}: {source}", .point.display())]
    Unmount {
        /// Path of the mount point.
        point: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A mount would hide what the service opens later.
    #[error(
        "{} lies in the mount point {}: a service that gives up its privileges cannot mount there; move one of them",
        .path.display(),
        .point.display()
    )]
    Covered {
        /// Path of the catalog, source, certificate or other mount point.
        path: PathBuf,
        /// Path of the mount point.
        point: PathBuf,
    },
    /// The process that unmounts for the service has failed.
    #[error(
        "folders may still be mounted: the process that unmounts them ended with {status}; run `umount -l` with each"
    )]
    Left {
        /// Status of the process.
        status: ExitStatus,
    },
    /// A thread of the file system panicked.
    #[error("a thread of the file system panicked; this is a fault of gleaner-commons")]
    Panicked,
    /// Another error of the system.
    #[error(transparent)]
    System(io::Error),
}
