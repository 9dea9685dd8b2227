//! Errors of the collector, each with place and remedy.

use gleaner_daemon::config::ConfigError;
use gleaner_dataset::{BatchError, DatasetError};
use gleaner_trust::{LoopbackError, TrustError};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Reason why the collector cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No listener is configured.
    #[error("nothing to listen on: set listen (TLS) or local_listen (loopback)")]
    NoListener,
    /// Another collector uses the folder.
    #[error("{} is in use by another collector; end that one, or name another data folder", path.display())]
    InUse {
        /// Path of the folder.
        path: PathBuf,
    },
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address of the listener.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// A collector did not answer a request for its status.
    #[error(transparent)]
    Silent(#[from] LoopbackError),
    /// A system call failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path that the action was for.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A batch of the journal can no longer be read.
    #[error(
        "a batch of host {host_id} in the journal cannot be read ({source}); was this collector downgraded?"
    )]
    Journal {
        /// Id of the batch's host.
        host_id: String,
        /// Fault of the batch.
        source: BatchError,
    },
    /// Error of the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// Error of certificates.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

impl Error {
    /// Makes a function for `map_err`, for a failed `action` on `path`.
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
}
