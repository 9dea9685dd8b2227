//! The links with the recruiters: one WebSocket (RFC 6455) to each, all on one thread.
//!
//! Announcements are sent on connecting and on every change. Requests go to the core, and its answers return
//! by the same link. A slow, dead or misbehaving recruiter does not slow the core: the number of each
//! recruiter's waiting requests is limited, and the core never waits for a link.

mod connect;
mod failure;
mod identity;
mod recruiter_link;
#[cfg(test)]
mod tests;
mod timed_announcement;

pub(crate) use failure::LinkError;

use crate::core::LinkEnd;
use crate::entrance::Entrance;
use gleaner_trust::{Address, ClientPaths};
use identity::Identity;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of unanswered requests of one recruiter; further ones are refused.
const REQUESTS_AT_ONCE: usize = 64;
/// Timeout of sending the last announcement.
const FAREWELL: Duration = Duration::from_millis(500);

/// Address at which the pages of leases are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PageAddress {
    /// Address as `HOST:PORT`.
    Named(String),
    /// Port at every address of this host. Each recruiter gets the address at which it reaches this host.
    Port(u16),
}

/// Recruiters to link with, and the identity of this host.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// URLs of the recruiters, all of which are linked.
    pub(crate) urls: Vec<String>,
    /// Id of this host: 32 lower-case hex digits. `None`: it has no id.
    pub(crate) host_id: Option<String>,
    /// Certificates for recruiters with `https://`.
    pub(crate) certificates: ClientPaths,
    /// Interval of the core's announcements if nothing changes.
    pub(crate) announce_every: Duration,
    /// Address for the pages of leases; `None`: pages are not served.
    pub(crate) pages: Option<PageAddress>,
    /// Path of the Unix socket for this host's own leases; `None`: they are not served.
    pub(crate) pages_socket: Option<String>,
}

/// Starts the thread of the links. It connects, and reconnects until the core ends. Then it sends the last
/// announcement and ends.
///
/// # Errors
/// Permanent faults: an address is invalid, the host has no id, or no thread can be started. Missing
/// certificates are no error: the thread waits for them.
pub(crate) fn start(
    settings: &Settings,
    ends: Vec<LinkEnd>,
    entrance: &Arc<Entrance>,
) -> Result<JoinHandle<()>, LinkError> {
    let addresses: Vec<Address> = settings
        .urls
        .iter()
        .map(|url| Address::parse(url))
        .collect::<Result<_, _>>()?;
    let host_id = settings.host_id.clone();
    if host_id.is_none() && !addresses.is_empty() {
        return Err(LinkError::Nameless);
    }
    let identity = Arc::new(Identity::new(settings.certificates.clone()));
    let link = |(end, address)| recruiter_link::Link {
        address,
        host_id: host_id.clone().unwrap_or_default(),
        identity: Arc::clone(&identity),
        entrance: Arc::clone(entrance),
        rejected: None,
        announce_every: settings.announce_every,
        pages: settings.pages.clone(),
        pages_socket: settings.pages_socket.clone(),
        end,
        latest: None,
        waiting: VecDeque::new(),
        connection: 0,
    };
    let links: Vec<recruiter_link::Link> = ends.into_iter().zip(addresses).map(link).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(LinkError::Start)?;
    let thread = std::thread::Builder::new().name("link".to_owned());
    let keep_all = move || {
        let links = links.into_iter().map(recruiter_link::Link::keep);
        runtime.block_on(futures_util::future::join_all(links));
    };
    thread.spawn(keep_all).map_err(LinkError::Start)
}
