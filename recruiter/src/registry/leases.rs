//! Index of leases by id and by client and key, with sums for each client.

use super::host::Host;
use super::{HostId, PORTION, Registry};
use gleaner_schemas::lending::{Lease, LeaseView};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// Client and key of a lease.
pub type Key = (String, String);

/// Sums over the leases of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientLeases {
    pub(super) granted_bytes: u128,
    pub(super) leases_count: usize,
}

#[derive(Debug)]
struct KnownLease {
    /// Host of the lease. If two hosts announce the same id, one of them is wrong. Both keep the lease in
    /// their own lists, but only the first host counts here.
    host_id: HostId,
    client: String,
    key: String,
    granted_bytes: u64,
}

/// Host of each lease, by the lease's id. The lease itself is stored with its host.
#[derive(Debug, Default)]
pub(super) struct Leases {
    by_id: HashMap<String, KnownLease>,
    /// Lease ids by client and key.
    by_key: BTreeMap<Key, BTreeSet<String>>,
    holdings: HashMap<String, ClientLeases>,
}

impl Leases {
    /// Replaces the leases of a host by those of its newest announcement.
    pub(super) fn replace(
        &mut self,
        host_id: &HostId,
        before: Option<&Host>,
        now: &BTreeMap<String, (Lease, i64)>,
    ) {
        for lease_id in before.iter().flat_map(|host| host.leases.keys()) {
            if !now.contains_key(lease_id) {
                self.remove(host_id, lease_id);
            }
        }
        for (lease, _) in now.values() {
            self.add(host_id, lease);
        }
    }

    pub(super) fn add(&mut self, host_id: &HostId, lease: &Lease) {
        match self.by_id.get(&lease.lease_id) {
            // Ids are never reused, so the first host that announced this id keeps it.
            Some(known) if known.host_id != *host_id => return,
            Some(known) if known.client == lease.client && known.key == lease.key => {
                let before = known.granted_bytes;
                if before == lease.granted_bytes {
                    return;
                }
            }
            _ => {}
        }
        self.remove(host_id, &lease.lease_id);
        let key = (lease.client.clone(), lease.key.clone());
        self.by_key
            .entry(key)
            .or_default()
            .insert(lease.lease_id.clone());
        let holding = self.holdings.entry(lease.client.clone()).or_default();
        holding.granted_bytes += u128::from(lease.granted_bytes);
        holding.leases_count += 1;
        let known = KnownLease {
            host_id: Arc::clone(host_id),
            client: lease.client.clone(),
            key: lease.key.clone(),
            granted_bytes: lease.granted_bytes,
        };
        self.by_id.insert(lease.lease_id.clone(), known);
    }

    pub(super) fn remove(&mut self, host_id: &HostId, lease_id: &str) {
        if self
            .by_id
            .get(lease_id)
            .is_none_or(|known| known.host_id != *host_id)
        {
            return;
        }
        let Some(known) = self.by_id.remove(lease_id) else {
            return;
        };
        let KnownLease { client, key, .. } = known;
        if let Some(holding) = self.holdings.get_mut(&client) {
            holding.granted_bytes -= u128::from(known.granted_bytes);
            holding.leases_count -= 1;
            if holding.leases_count == 0 {
                self.holdings.remove(&client);
            }
        }
        let key = (client, key);
        if let Some(ids) = self.by_key.get_mut(&key) {
            ids.remove(lease_id);
            if ids.is_empty() {
                self.by_key.remove(&key);
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn holding(&self, client: &str) -> ClientLeases {
        self.holdings.get(client).copied().unwrap_or_default()
    }

    /// Bytes that a client leases on each host.
    pub(super) fn by_host(&self, client: &str) -> HashMap<&str, u64> {
        let from = (client.to_owned(), String::new());
        let keys = self.by_key.range(from..);
        let keys = keys.take_while(|((of, _), _)| of == client);
        let ids = keys.flat_map(|(_, ids)| ids);
        let mut held: HashMap<&str, u64> = HashMap::new();
        for known in ids.filter_map(|id| self.by_id.get(id)) {
            let bytes = held.entry(&known.host_id).or_default();
            *bytes = bytes.saturating_add(known.granted_bytes);
        }
        held
    }

    pub(super) fn of_key(&self, client: &str, key: &str) -> impl Iterator<Item = &String> {
        let key = (client.to_owned(), key.to_owned());
        self.by_key.get(&key).into_iter().flatten()
    }
}

impl Registry {
    /// Id of the host that has a lease.
    #[must_use]
    pub fn host_of(&self, lease_id: &str) -> Option<&HostId> {
        self.leases.by_id.get(lease_id).map(|known| &known.host_id)
    }

    /// Lease with this id, if it is known.
    #[must_use]
    pub fn lease(&self, lease_id: &str, now_ms: i64) -> Option<LeaseView> {
        let host = self.hosts.get(self.host_of(lease_id)?)?;
        let (lease, said_ms) = host.leases.get(lease_id)?;
        let passed_ms = now_ms.saturating_sub(*said_ms).max(0);
        Some(LeaseView {
            lease: Lease {
                expires_in_ms: lease.expires_in_ms.saturating_sub(passed_ms).max(0),
                ..lease.clone()
            },
            host_id: host.quota.host_id.clone(),
            address: host.address_for(&lease.client),
            is_reachable: host.link.is_some(),
        })
    }

    /// Up to [`PORTION`] leases after `after`, of one client or of all. The order is by client and key.
    #[must_use]
    pub fn leases_after(
        &self,
        client: Option<&str>,
        after: Option<&Key>,
        now_ms: i64,
    ) -> Vec<LeaseView> {
        let first = client.map(|client| (client.to_owned(), String::new()));
        let from = match (after, &first) {
            (Some(after), _) => Bound::Excluded(after),
            (None, Some(first)) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        };
        let keys = self.leases.by_key.range((from, Bound::Unbounded));
        let keys = keys.take_while(|((of, _), _)| client.is_none_or(|client| client == of));
        keys.take(PORTION)
            .flat_map(|(_, ids)| ids)
            .filter_map(|lease_id| self.lease(lease_id, now_ms))
            .collect()
    }
}
