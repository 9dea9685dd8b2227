//! Errors of regions.

use gleaner_paging::borrow::BorrowError;
use std::io;

/// Reason why a region cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The recruiters' settings are wrong.
    #[error("recruiters: {0}")]
    Recruiters(#[from] BorrowError),
    /// The settings are wrong.
    #[error("{what}")]
    Settings {
        /// Fault and remedy.
        what: String,
    },
    /// No host lends that much at present. The caller still has its file.
    #[error("no remote memory now: {why}")]
    NoMemory {
        /// Reason why no memory was granted.
        why: String,
    },
    /// The region's remote memory is lost, and the settings make this an error ([`crate::OnLoss::Error`]).
    #[error("the region's memory is gone; its file has everything")]
    Gone,
    /// The range exceeds the region.
    #[error("{bytes} bytes at {offset} do not fit into a region of {region_bytes} bytes")]
    Beyond {
        /// First byte of the range.
        offset: u64,
        /// Length of the range, in bytes.
        bytes: u64,
        /// Size of the region, in bytes.
        region_bytes: u64,
    },
    /// The file, the offset or the length does not fit a region.
    #[error("no region: {what}")]
    Unfit {
        /// Fault of the file, the offset or the length.
        what: &'static str,
    },
    /// The file cannot be read or written.
    #[error("the region's file: {0}")]
    File(#[source] io::Error),
    /// The system provides no thread or no randomness.
    #[error("the system: {0}")]
    System(#[source] io::Error),
}

impl RegionError {
    /// Error number for C programs.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::NoMemory { .. } => libc::ENOMEM,
            Self::Gone => libc::ESTALE,
            Self::Beyond { .. } => libc::ENOSPC,
            Self::Recruiters(_) | Self::Settings { .. } | Self::Unfit { .. } => libc::EINVAL,
            Self::File(e) | Self::System(e) => e.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}
