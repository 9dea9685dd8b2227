//! System resources of a server: sockets, descriptors, and an eye on its certificates.

use gleaner_trust::{ServerTrust, TrustError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Interval at which certificates and revocations are looked at.
const LOOK_AT_FILES: Duration = Duration::from_secs(5);

/// Binds; the address with the port that was given, where 0 asked for any.
///
/// # Errors
/// The system's error.
pub async fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = TcpListener::bind(address).await?;
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

/// Raises the number of open connections to the system's limit: most processes begin with 1,024.
pub fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised); // fewer fit then, and are told to come again
}

/// Certificates rotate and are revoked without a restart; `changed` is called when new files are in use, and `complain` hears of files
/// that cannot be used.
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
