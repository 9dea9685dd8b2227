//! Serves the pages of leases to their clients, in threads that the core never waits for.

use crate::config::PageServerSettings;
use crate::entrance::Entrance;
use crate::link::PageAddress;
use anyhow::Context;
use gleaner_paging::nbd::{Address, Door, Leases, Listener, Load, Shares};
use gleaner_paging::store::Store;
use std::net::SocketAddr;
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
