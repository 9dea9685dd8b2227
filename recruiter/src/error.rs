//! Errors of the recruiter, each with reason, place and remedy.

use gleaner_daemon::config::ConfigError;
use gleaner_trust::{LoopbackError, TrustError};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Reason why the recruiter cannot start, or cannot execute a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no listener for this machine's programs.
    #[error("local_listen = \"none\": name a recruiter by --url")]
    NoLocalAddress,
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address of the listener.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// A recruiter did not answer a request for its status.
    #[error(transparent)]
    Silent(#[from] LoopbackError),
    /// The findings cannot be read.
    #[error("{} has no forecasts: {reason}; make it with `gleaner analyze DATASET --json`", path.display())]
    Forecasts {
        /// Path of the file.
        path: PathBuf,
        /// Fault of the file.
        reason: String,
    },
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
