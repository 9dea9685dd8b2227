//! Serves the pages of leases to their clients, in threads that the core never waits for.

use crate::config::PageServerSettings;
use crate::entrance::Entrance;
use crate::link::PageAddress;
use anyhow::Context;
use gleaner_daemon::shares::Shares;
use gleaner_paging::nbd::{Address, ClientLeases, Door, Leases, Listener, Load};
use gleaner_paging::store::Store;
use gleaner_schemas::lending::host_client;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

/// Starts the page server; returns the address for clients, or `None` if no address is configured.
///
/// Clients of this host's leases connect by TLS. Without TLS, the address must be a loopback address, for
/// recruiters on this machine.
///
/// # Errors
/// The address cannot be opened.
pub(crate) fn start(
    serving: &PageServerSettings,
    entrance: Arc<Entrance>,
    store: Arc<Store>,
    load: Arc<Load>,
) -> anyhow::Result<Option<PageAddress>> {
    let Some(listen) = serving.listen else {
        return Ok(None);
    };
    let door = if listen.ip().is_loopback() && !serving.has_certificates {
        Door::Open
    } else {
        Door::Tls(entrance)
    };
    let exports = Arc::new(Leases {
        store,
        default: None,
        shares: Arc::new(Shares::of(serving.most_connections)),
    });
    let listener = Listener::open(&Address::Tcp(listen))
        .with_context(|| format!("listen at {listen} for leases' clients"))?;
    let bound = listener.tcp_address()?.unwrap_or(listen);
    listener.serve(exports, door, load, serving.most_connections)?;
    Ok(Some(match &serving.address {
        Some(address) => PageAddress::Named(address.clone()),
        None if bound.ip().is_unspecified() => PageAddress::Port(bound.port()),
        None => PageAddress::Named(SocketAddr::to_string(&bound)),
    }))
}

/// Serves the leases of the host itself at its Unix socket, so that no network is between; returns the path that
/// is announced. No socket is served if none is configured.
///
/// # Errors
/// The socket cannot be opened.
pub(crate) fn start_own(
    serving: &PageServerSettings,
    host_id: &str,
    store: Arc<Store>,
    load: Arc<Load>,
) -> anyhow::Result<Option<String>> {
    let Some(path) = &serving.pages_socket else {
        return Ok(None);
    };
    let announced = path
        .to_str()
        .with_context(|| format!("pages_socket {} is not UTF-8", path.display()))?;
    let leases = Leases {
        store,
        default: None,
        shares: Arc::new(Shares::of(serving.most_connections)),
    };
    let exports = Arc::new(ClientLeases {
        leases,
        client: host_client(host_id),
    });
    let listener = Listener::open(&Address::Unix(path.clone()))
        .with_context(|| format!("listen at {} for this host's own leases", path.display()))?;
    // Programs of the group may connect. They also need the name of a lease, which nobody can guess.
    fs::set_permissions(path, Permissions::from_mode(0o660))
        .with_context(|| format!("set the permissions of {}", path.display()))?;
    listener.serve(exports, Door::Open, load, serving.most_connections)?;
    Ok(Some(announced.to_owned()))
}
