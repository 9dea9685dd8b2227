//! Leases by client, and their expiry.

use super::refusal;
use gleaner_schemas::lending::{GrantRequest, Lease, Refusal, SLAB_BYTES};
use std::collections::{BTreeMap, btree_map};

/// Maximum length of a client's name, a lease's key or its id: every announcement repeats them.
const LONGEST_NAME_BYTES: usize = 256;

/// All leases of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ledger {
    generation: u64,
    entries: BTreeMap<String, Entry>,
    clock: Clock,
    /// Sum over all leases, kept so that no step has to add up thousands of them.
    lent_bytes: u64,
    /// Number of leases that expire at each time, by the ledger's clock.
    expiries: BTreeMap<i64, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    lease: Lease,
    /// End of the term, on the ledger's clock.
    expires_ms: i64,
}

/// The clock by which leases expire: it stops while no recruiter is reachable, for at most `grace_ms` per
/// outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Clock {
    grace_ms: i64,
    /// Time for which the clock stood still in past outages.
    stood_ms: i64,
    outage_since_ms: Option<i64>,
}

impl Clock {
    fn at(&self, now_ms: i64) -> i64 {
        let since = self.outage_since_ms;
        let stands_ms = since.map_or(0, |since| now_ms.saturating_sub(since));
        now_ms
            .saturating_sub(self.stood_ms)
            .saturating_sub(stands_ms.clamp(0, self.grace_ms.max(0)))
    }

    fn set_linked(&mut self, is_linked: bool, now_ms: i64) {
        if is_linked {
            self.stood_ms = now_ms.saturating_sub(self.at(now_ms));
            self.outage_since_ms = None;
        } else {
            self.outage_since_ms.get_or_insert(now_ms);
        }
    }

    /// Changes the grace. A current outage counts as new from now on, so the clock never catches up on time
    /// for which it already stood still.
    fn set_grace(&mut self, grace_ms: i64, now_ms: i64) {
        if grace_ms == self.grace_ms {
            return;
        }
        self.stood_ms = now_ms.saturating_sub(self.at(now_ms));
        self.outage_since_ms = self.outage_since_ms.map(|_| now_ms);
        self.grace_ms = grace_ms;
    }

    /// Time at which the clock will show `clock_ms` (in the future), if nothing changes.
    fn time_of_clock_ms(&self, clock_ms: i64) -> i64 {
        let grace_ms = self.outage_since_ms.map_or(0, |_| self.grace_ms.max(0));
        clock_ms
            .saturating_add(self.stood_ms)
            .saturating_add(grace_ms)
    }
}

/// Size of the lease in whole slabs, or the reason why the request is malformed.
pub(super) fn whole_bytes(request: &GrantRequest) -> Result<u64, Refusal> {
    if !is_name(&request.client) || !is_name(&request.key) {
        return Err(refusal::malformed(format!(
            "the client's name and the key of a lease have 1 to {LONGEST_NAME_BYTES} bytes each"
        )));
    }
    if request.term_ms <= 0 {
        return Err(refusal::malformed(
            "a lease's term is longer than nothing".into(),
        ));
    }
    match request.bytes.checked_next_multiple_of(SLAB_BYTES) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(refusal::malformed(format!(
            "a lease has at least one byte, and no more than 2^64: {} were requested",
            request.bytes
        ))),
    }
}

impl Ledger {
    pub(super) fn new(generation: u64, grace_ms: i64) -> Self {
        let clock = Clock {
            grace_ms,
            ..Clock::default()
        };
        Self {
            generation,
            clock,
            ..Self::default()
        }
    }

    pub(super) const fn lent_bytes(&self) -> u64 {
        self.lent_bytes
    }

    fn enter(&mut self, entry: Entry) {
        self.lent_bytes = self.lent_bytes.saturating_add(entry.lease.remaining_bytes);
        *self.expiries.entry(entry.expires_ms).or_default() += 1;
        self.entries.insert(entry.lease.lease_id.clone(), entry);
    }

    /// Ends a lease of any client; returns false if there is no such lease.
    pub(super) fn end(&mut self, lease_id: &str) -> bool {
        let Some(entry) = self.entries.remove(lease_id) else {
            return false;
        };
        self.lent_bytes = self.lent_bytes.saturating_sub(entry.lease.remaining_bytes);
        self.forget_expiry(entry.expires_ms);
        true
    }

    fn forget_expiry(&mut self, expires_ms: i64) {
        if let btree_map::Entry::Occupied(mut count) = self.expiries.entry(expires_ms) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn leases(&self, now_ms: i64) -> Vec<Lease> {
        let of = |entry| self.lease(entry, now_ms);
        self.entries.values().map(of).collect()
    }

    fn lease(&self, entry: &Entry, now_ms: i64) -> Lease {
        let left_ms = entry.expires_ms.saturating_sub(self.clock.at(now_ms));
        Lease {
            expires_in_ms: left_ms.max(0),
            ..entry.lease.clone()
        }
    }

    /// The lease granted earlier for the same client and key; an error if its size differs.
    pub(super) fn earlier_grant(
        &self,
        request: &GrantRequest,
        whole_bytes: u64,
        now_ms: i64,
    ) -> Result<Option<Lease>, Refusal> {
        let mut all = self.entries.values();
        let same = |e: &&Entry| e.lease.client == request.client && e.lease.key == request.key;
        let Some(entry) = all.find(same) else {
            return Ok(None);
        };
        if entry.lease.granted_bytes == whole_bytes {
            return Ok(Some(self.lease(entry, now_ms)));
        }
        Err(refusal::other_size(&entry.lease, whole_bytes))
    }

    /// Adds a lease; the caller has checked that there is room and that the key is new.
    pub(super) fn grant(
        &mut self,
        lease_id: &str,
        request: &GrantRequest,
        whole_bytes: u64,
        now_ms: i64,
    ) -> Result<Lease, Refusal> {
        if self.entries.contains_key(lease_id) {
            return Err(refusal::id_in_use(lease_id));
        }
        let entry = Entry {
            lease: Lease {
                lease_id: lease_id.to_owned(),
                generation: self.generation,
                client: request.client.clone(),
                key: request.key.clone(),
                granted_bytes: whole_bytes,
                remaining_bytes: whole_bytes,
                expires_in_ms: 0, // filled in when the lease is read
            },
            expires_ms: self.clock.at(now_ms).saturating_add(request.term_ms),
        };
        let lease = self.lease(&entry, now_ms);
        self.enter(entry);
        Ok(lease)
    }

    /// Extends a lease to at least `term_ms` from now; a delayed request never shortens it.
    pub(super) fn renew(
        &mut self,
        client: Option<&str>,
        lease_id: &str,
        term_ms: i64,
        now_ms: i64,
    ) -> Result<Lease, Refusal> {
        if term_ms <= 0 {
            return Err(refusal::malformed(
                "a lease is renewed for longer than nothing".into(),
            ));
        }
        are_names(client, lease_id)?;
        let expires_ms = self.clock.at(now_ms).saturating_add(term_ms);
        let entry = self.entries.get_mut(lease_id);
        let entry = entry.ok_or_else(|| refusal::unknown_lease(lease_id))?;
        is_theirs(client, &entry.lease)?;
        let before_ms = entry.expires_ms;
        entry.expires_ms = before_ms.max(expires_ms);
        let entry = entry.clone();
        self.forget_expiry(before_ms);
        *self.expiries.entry(entry.expires_ms).or_default() += 1;
        Ok(self.lease(&entry, now_ms))
    }

    /// Ends a lease; returns false if there is no such lease.
    pub(super) fn release(
        &mut self,
        client: Option<&str>,
        lease_id: &str,
    ) -> Result<bool, Refusal> {
        are_names(client, lease_id)?;
        let Some(entry) = self.entries.get(lease_id) else {
            return Ok(false);
        };
        is_theirs(client, &entry.lease)?;
        Ok(self.end(lease_id))
    }

    /// Ends leases that have expired by `now_ms`; returns their ids.
    pub(super) fn expire(&mut self, now_ms: i64) -> Vec<String> {
        let clock_ms = self.clock.at(now_ms);
        let first = self.expiries.first_key_value();
        if first.is_none_or(|(expires_ms, _)| *expires_ms > clock_ms) {
            return Vec::new();
        }
        let over = self
            .entries
            .iter()
            .filter(|(_, e)| e.expires_ms <= clock_ms);
        let over: Vec<String> = over.map(|(id, _)| id.clone()).collect();
        for lease_id in &over {
            self.end(lease_id);
        }
        over
    }

    /// Records reclaimed memory; returns the ids of leases without remaining memory.
    pub(super) fn record_reclaims(&mut self, reclaimed: &[(String, u64)]) -> Vec<String> {
        for (lease_id, bytes) in reclaimed {
            if let Some(entry) = self.entries.get_mut(lease_id) {
                let less = entry.lease.remaining_bytes.min(*bytes);
                entry.lease.remaining_bytes -= less;
                self.lent_bytes -= less;
            }
        }
        let empty = self
            .entries
            .iter()
            .filter(|(_, e)| e.lease.remaining_bytes == 0);
        let empty: Vec<String> = empty.map(|(id, _)| id.clone()).collect();
        for lease_id in &empty {
            self.end(lease_id);
        }
        empty
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.expiries.clear();
        self.lent_bytes = 0;
    }

    pub(super) fn set_linked(&mut self, is_linked: bool, now_ms: i64) {
        self.clock.set_linked(is_linked, now_ms);
    }

    /// Changes the grace; a current outage counts as new from now on.
    pub(super) fn set_grace(&mut self, grace_ms: i64, now_ms: i64) {
        self.clock.set_grace(grace_ms, now_ms);
    }

    /// Time at which the next lease expires, if nothing changes.
    pub(super) fn next_expiry_ms(&self) -> Option<i64> {
        let (first_ms, _) = self.expiries.first_key_value()?;
        Some(self.clock.time_of_clock_ms(*first_ms))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST_NAME_BYTES
}

/// Refuses names and ids of impossible length, so that no later refusal repeats them in its text.
fn are_names(client: Option<&str>, lease_id: &str) -> Result<(), Refusal> {
    if client.is_none_or(is_name) && is_name(lease_id) {
        return Ok(());
    }
    Err(refusal::malformed(format!(
        "the client's name and the id of a lease have 1 to {LONGEST_NAME_BYTES} bytes each"
    )))
}

/// Checks that the lease is the client's; `None` is an administrator, who may use every lease.
fn is_theirs(client: Option<&str>, lease: &Lease) -> Result<(), Refusal> {
    match client {
        Some(client) if client != lease.client => Err(refusal::not_yours(client, &lease.lease_id)),
        _ => Ok(()),
    }
}
