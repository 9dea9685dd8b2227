//! System resources of a server: sockets, descriptors, and certificate files.

use gleaner_trust::{ServerTrust, TrustError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Interval of checks of certificates and revocation lists.
const LOOK_AT_FILES: Duration = Duration::from_secs(5);

/// Binds an address. Returns the socket and its actual address: for port 0 the kernel chooses the port.
///
/// # Errors
/// The system's error.
pub async fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = TcpListener::bind(address).await?;
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

/// Raises the limit of open file descriptors to the system's maximum: most processes begin with 1,024.
pub fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised); // otherwise fewer connections fit
}

/// Reloads changed certificate and revocation files without a restart. Calls `changed` when new files are in
/// use, and `complain` if files are unusable.
pub async fn follow_files(
    trust: Arc<ServerTrust>,
    changed: impl Fn(&ServerTrust) + Send,
    complain: impl Fn(&TrustError) + Send,
) {
    loop {
        tokio::time::sleep(LOOK_AT_FILES).await;
        match trust.reload_if_changed() {
            Ok(true) => changed(&trust),
            Ok(false) => {}
            Err(error) => complain(&error),
        }
    }
}
