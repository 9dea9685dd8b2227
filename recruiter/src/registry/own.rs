//! Memory that a host leases itself, from its own memory server.

use super::{HostId, Registry};
use gleaner_policy::placement::Candidate;
use gleaner_schemas::lending::{LeaseRequest, Refusal, RefusalKind, host_client};
use gleaner_schemas::units::Bytes;

/// Time until a retry: quotas rise within minutes after the owner has left.
const RETRY_MS: i64 = 30_000;

/// Memory of one host, as its own client sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnMemory {
    /// Quota of the host.
    pub quota_bytes: u64,
    /// Bytes that the host has leased itself, and those that are unleased.
    pub available_bytes: u64,
}

impl Registry {
    /// Memory that a linked host has leased itself, or may lease; `None` if it is not linked.
    #[must_use]
    pub fn own_memory(&self, host_id: &HostId) -> Option<OwnMemory> {
        let host = self.hosts.get(host_id).filter(|host| host.link.is_some())?;
        let client = host_client(host_id);
        let leases = host.leases.values().map(|(lease, _)| lease);
        let own = leases.filter(|lease| lease.client == client);
        let held = own.fold(0_u64, |sum, lease| {
            sum.saturating_add(lease.remaining_bytes)
        });
        Some(OwnMemory {
            quota_bytes: host.quota.quota_bytes,
            available_bytes: held.saturating_add(host.quota.unleased_bytes),
        })
    }
}

/// The host itself, as the only candidate for a lease of its own memory.
pub(super) fn candidates(
    registry: &Registry,
    request: &LeaseRequest,
    host_id: &str,
) -> Result<Vec<Candidate>, Refusal> {
    check(request)?;
    let refused = |kind, detail| {
        Err(Refusal {
            kind,
            detail,
            retry_in_ms: Some(RETRY_MS),
        })
    };
    let Some((id, host)) = registry.hosts.get_key_value(host_id) else {
        let detail = format!("the memory server of host {host_id} has not announced itself here");
        return refused(RefusalKind::Unreachable, detail);
    };
    if host.link.is_none() {
        let detail =
            format!("the memory server of host {host_id} is not linked with this recruiter now");
        return refused(RefusalKind::Unreachable, detail);
    }
    if host.pages_socket.is_none() {
        let detail = format!(
            "the memory server of host {host_id} serves no pages to the host itself: set `pages_socket` in its memoryd.toml"
        );
        return refused(RefusalKind::NoMemory, detail);
    }
    let (bytes, free) = (request.slabs_bytes(), host.free_bytes());
    if free < bytes {
        let detail = format!(
            "host {host_id} has {} free, and {} are requested",
            Bytes(free as f64),
            Bytes(bytes as f64)
        );
        return refused(RefusalKind::NoMemory, detail);
    }
    Ok(vec![Candidate {
        host_id: HostId::clone(id),
        unleased_bytes: free,
        lent_bytes: host.quota.lent_bytes,
        requests_per_s: host.requests_per_s,
        client_bytes: 0,
        idle_for_ms: host.quota.idle_for_ms,
        stays: None,
        failed_ms: host.failed_ms,
    }])
}

/// Checks a host's request for its own memory, for which the recruiter chooses no hosts.
fn check(request: &LeaseRequest) -> Result<(), Refusal> {
    let is_choosing = request.copies != 1
        || request.placement.is_some()
        || request.minimum_duration_ms.is_some()
        || !request.avoided_host_ids.is_empty();
    if !is_choosing {
        return Ok(());
    }
    Err(Refusal {
        kind: RefusalKind::Malformed,
        detail: "host_id names the only host: leave out copies, placement, minimum_duration_ms and avoided_host_ids"
            .to_owned(),
        retry_in_ms: None,
    })
}
