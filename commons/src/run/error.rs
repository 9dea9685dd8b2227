//! Faults of the service.

use crate::catalog::CatalogError;
use crate::directory::MembershipError;
use crate::mount::MountError;
use crate::peer::ClusterError;
use crate::privilege::PrivilegeError;
use crate::source::SourceError;
use gleaner_daemon::config::ConfigError;
use gleaner_paging::borrow::BorrowError;
use gleaner_trust::TrustError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Reason why the service cannot start, or ends with a fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A catalog cannot be used.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A source cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A folder cannot be mounted or unmounted.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Privileges cannot be given up.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// The list of members cannot be used.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// Certificates cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The exchange with other members cannot start.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The recruiters cannot be asked for leases.
    #[error(transparent)]
    Borrow(#[from] BorrowError),
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address of the listener.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The status socket cannot be made.
    #[error("status socket {}: {source}; name another with the key socket", .path.display())]
    Socket {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Another error of the system.
    #[error("cannot start the service: {0}")]
    System(io::Error),
}
