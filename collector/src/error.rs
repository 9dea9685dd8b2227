//! What can go wrong with the collector, where, and what to do about it.

use gleaner_daemon::config::ConfigError;
use gleaner_dataset::{BatchError, DatasetError};
use gleaner_trust::TrustError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the collector could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration says what it may not.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Nobody could reach it.
    #[error("nothing to listen on: set listen (TLS) or local (loopback)")]
    NoListener,
    /// Another collector works in the folder.
    #[error("{} is in use by another collector; end that one, or name another data folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// An address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A collector was asked how it is, and did not say.
    #[error("the collector at {url} does not answer: {reason}")]
    Silent {
        /// Where it was asked.
        url: String,
        /// What came instead.
        reason: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A batch that was taken in cannot be read any more.
    #[error(
        "a batch of host {host_id} in the journal cannot be read ({source}); was this collector downgraded?"
    )]
    Journal {
        /// Whose batch.
        host_id: String,
        /// What is wrong.
        source: BatchError,
    },
    /// About the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// About certificates.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

impl Error {
    /// For `map_err`: the system refused `action` on `path`.
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
