//! A host as known from its last announcement.

use super::DatedQuota;
use gleaner_schemas::lending::{Announcement, HostQuota, Lease, host_client};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Host {
    /// Number of the connection that carries requests; absent if the host is not linked.
    pub(super) link: Option<u64>,
    /// Number of the host's newest connection. Messages over earlier connections are ignored.
    pub(super) newest_link: u64,
    pub(super) incarnation: String,
    pub(super) memoryd_version: String,
    pub(super) address: Option<String>,
    /// Unix socket that serves the pages of the host's own leases.
    pub(super) pages_socket: Option<String>,
    pub(super) quota: Arc<HostQuota>,
    pub(super) requests_per_s: f64,
    pub(super) announced_ms: i64,
    /// Leases of the host by id, each with the time at which the host last stated it.
    pub(super) leases: BTreeMap<String, (Lease, i64)>,
    /// Bytes reserved for requests in progress.
    pub(super) pending_bytes: u64,
    /// Time at which the host last failed to answer.
    pub(super) failed_ms: Option<i64>,
}

impl Host {
    /// Makes the host from an announcement; `before` is its earlier state.
    pub(super) fn of(before: Option<&Self>, link: u64, said: Announcement, now_ms: i64) -> Self {
        let leases = said.leases.into_iter();
        Self {
            link: Some(link),
            newest_link: link,
            incarnation: said.incarnation,
            memoryd_version: said.memoryd_version,
            address: said.address,
            pages_socket: said.pages_socket,
            quota: Arc::new(said.quota),
            requests_per_s: said.requests_per_s,
            announced_ms: now_ms,
            leases: leases
                .map(|lease| (lease.lease_id.clone(), (lease, now_ms)))
                .collect(),
            pending_bytes: before.map_or(0, |before| before.pending_bytes),
            failed_ms: before.and_then(|before| before.failed_ms),
        }
    }

    /// Unleased bytes, less those reserved for requests in progress.
    pub(super) fn free_bytes(&self) -> u64 {
        self.quota.unleased_bytes.saturating_sub(self.pending_bytes)
    }

    /// Address at which the client of one of this host's leases reaches its pages.
    pub(super) fn address_for(&self, client: &str) -> Option<String> {
        if client == host_client(&self.quota.host_id) {
            self.pages_socket.clone()
        } else {
            self.address.clone()
        }
    }

    /// Sets the unleased bytes, and computes the lent bytes. Returns true if either changed.
    pub(super) fn set_unleased(&mut self, unleased_bytes: u64) -> bool {
        let held = self.leases.values().map(|(lease, _)| lease.remaining_bytes);
        let lent_bytes = held.fold(0, u64::saturating_add);
        let is_news =
            self.quota.unleased_bytes != unleased_bytes || self.quota.lent_bytes != lent_bytes;
        if is_news {
            let quota = Arc::make_mut(&mut self.quota);
            quota.unleased_bytes = unleased_bytes;
            quota.lent_bytes = lent_bytes;
        }
        is_news
    }

    pub(super) fn latest_quota(&self) -> DatedQuota {
        DatedQuota {
            quota: Arc::clone(&self.quota),
            announced_ms: self.announced_ms,
        }
    }

    pub(super) fn view(&self, now_ms: i64) -> HostView {
        HostView {
            is_reachable: self.link.is_some(),
            last_announcement_age_ms: now_ms.saturating_sub(self.announced_ms).max(0),
            incarnation: self.incarnation.clone(),
            memoryd_version: self.memoryd_version.clone(),
            address: self.address.clone(),
            requests_per_s: self.requests_per_s,
            leases_count: self.leases.len() as u64,
            last_failure_age_ms: self
                .failed_ms
                .map(|failed| now_ms.saturating_sub(failed).max(0)),
            quota: self.latest_quota().at(now_ms),
        }
    }
}

/// State of a host, as the recruiter knows it.
#[derive(Clone, Debug, Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct HostView {
    /// Quota of the host, and its reason.
    pub quota: HostQuota,
    /// True if the host is linked now.
    pub is_reachable: bool,
    /// Time since the host last announced itself.
    pub last_announcement_age_ms: i64,
    /// Id of the memory server's run: each start has a new one.
    pub incarnation: String,
    /// Version of the memory server.
    pub memoryd_version: String,
    /// Address at which the host serves pages, as `HOST:PORT`; absent: none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Page requests served per second, recently.
    pub requests_per_s: f64,
    /// Leases of the host's memory.
    pub leases_count: u64,
    /// Time since the host last failed to answer; absent: it has never failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure_age_ms: Option<i64>,
}
