//! Who has leased what, and until when.

use super::refusal;
use gleaner_schemas::lending::{Lease, Refusal, SLAB_BYTES};
use std::collections::BTreeMap;

/// Names longer than this are refused: every announcement says them.
const LONGEST_NAME_BYTES: usize = 256;

/// All leases of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ledger {
    generation: u64,
    entries: BTreeMap<String, Entry>,
    clock: Clock,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    lease: Lease,
    /// By the ledger's clock.
    expires_ms: i64,
}

/// The clock by which leases run out: it stands still while no recruiter can be reached, for some time at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Clock {
    grace_ms: i64,
    /// For how long it stood still in outages that are over.
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

    /// Another grace: an outage that lasts begins anew by it, so that no time that stood still passes after all.
    fn set_grace(&mut self, grace_ms: i64, now_ms: i64) {
        if grace_ms == self.grace_ms {
            return;
        }
        self.stood_ms = now_ms.saturating_sub(self.at(now_ms));
        self.outage_since_ms = self.outage_since_ms.map(|_| now_ms);
        self.grace_ms = grace_ms;
    }

    /// When it shows `clock_ms`, if nothing changes; that lies ahead.
    fn shows_at_ms(&self, clock_ms: i64) -> i64 {
        let grace_ms = self.outage_since_ms.map_or(0, |_| self.grace_ms.max(0));
        clock_ms
            .saturating_add(self.stood_ms)
            .saturating_add(grace_ms)
    }
}

/// A lease that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) client: &'a str,
    pub(super) key: &'a str,
    pub(super) bytes: u64,
    pub(super) term_ms: i64,
}

impl Wanted<'_> {
    /// In whole slabs, or why it makes no sense.
    pub(super) fn whole_bytes(&self) -> Result<u64, Refusal> {
        let is_name = |name: &str| !name.is_empty() && name.len() <= LONGEST_NAME_BYTES;
        if !is_name(self.client) || !is_name(self.key) {
            return Err(refusal::malformed(format!(
                "the client's name and the key of a lease have 1 to {LONGEST_NAME_BYTES} bytes each"
            )));
        }
        if self.term_ms <= 0 {
            return Err(refusal::malformed(
                "a lease's term is longer than nothing".into(),
            ));
        }
        match self.bytes.checked_next_multiple_of(SLAB_BYTES) {
            Some(bytes) if bytes > 0 => Ok(bytes),
            _ => Err(refusal::malformed(format!(
                "a lease has at least one byte, and no more than 2^64: {} were asked for",
                self.bytes
            ))),
        }
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

    pub(super) fn held_bytes(&self) -> u64 {
        self.entries.values().map(|e| e.lease.held_bytes).sum()
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

    /// The lease that was granted before by the same key; one of another size contradicts it.
    pub(super) fn granted_before(
        &self,
        wanted: &Wanted<'_>,
        whole_bytes: u64,
        now_ms: i64,
    ) -> Result<Option<Lease>, Refusal> {
        let mut all = self.entries.values();
        let same = |e: &&Entry| e.lease.client == wanted.client && e.lease.key == wanted.key;
        let Some(entry) = all.find(same) else {
            return Ok(None);
        };
        if entry.lease.granted_bytes == whole_bytes {
            return Ok(Some(self.lease(entry, now_ms)));
        }
        Err(refusal::other_size(&entry.lease, whole_bytes))
    }

    /// Enters a lease; the caller has seen to it that there is room and that its key is new.
    pub(super) fn grant(
        &mut self,
        lease_id: &str,
        wanted: &Wanted<'_>,
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
                client: wanted.client.to_owned(),
                key: wanted.key.to_owned(),
                granted_bytes: whole_bytes,
                held_bytes: whole_bytes,
                expires_in_ms: 0, // as told
            },
            expires_ms: self.clock.at(now_ms).saturating_add(wanted.term_ms),
        };
        let lease = self.lease(&entry, now_ms);
        self.entries.insert(lease_id.to_owned(), entry);
        Ok(lease)
    }

    /// Lets a lease go on for at least `term_ms`: a request that was long on its way shortens none.
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
        let expires_ms = self.clock.at(now_ms).saturating_add(term_ms);
        let entry = self.entries.get_mut(lease_id);
        let entry = entry.ok_or_else(|| refusal::unknown_lease(lease_id))?;
        is_theirs(client, &entry.lease)?;
        entry.expires_ms = entry.expires_ms.max(expires_ms);
        let entry = entry.clone();
        Ok(self.lease(&entry, now_ms))
    }

    /// Ends a lease; whether there was one.
    pub(super) fn release(
        &mut self,
        client: Option<&str>,
        lease_id: &str,
    ) -> Result<bool, Refusal> {
        let Some(entry) = self.entries.get(lease_id) else {
            return Ok(false);
        };
        is_theirs(client, &entry.lease)?;
        self.entries.remove(lease_id);
        Ok(true)
    }

    /// Ends what has run out by `now_ms`: the ids.
    pub(super) fn expire(&mut self, now_ms: i64) -> Vec<String> {
        let clock_ms = self.clock.at(now_ms);
        let over = self
            .entries
            .iter()
            .filter(|(_, e)| e.expires_ms <= clock_ms);
        let over: Vec<String> = over.map(|(id, _)| id.clone()).collect();
        self.entries.retain(|_, e| e.expires_ms > clock_ms);
        over
    }

    /// Takes in what was given back; the ids of leases of which nothing is left.
    pub(super) fn shrunk(&mut self, given_back: &[(String, u64)]) -> Vec<String> {
        for (lease_id, bytes) in given_back {
            if let Some(entry) = self.entries.get_mut(lease_id) {
                entry.lease.held_bytes = entry.lease.held_bytes.saturating_sub(*bytes);
            }
        }
        let empty = self.entries.iter().filter(|(_, e)| e.lease.held_bytes == 0);
        let empty: Vec<String> = empty.map(|(id, _)| id.clone()).collect();
        self.entries.retain(|_, e| e.lease.held_bytes > 0);
        empty
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn set_linked(&mut self, is_linked: bool, now_ms: i64) {
        self.clock.set_linked(is_linked, now_ms);
    }

    /// When the next lease runs out, if nothing changes.
    pub(super) fn set_grace(&mut self, grace_ms: i64, now_ms: i64) {
        self.clock.set_grace(grace_ms, now_ms);
    }

    pub(super) fn next_expiry_ms(&self) -> Option<i64> {
        let first = self.entries.values().map(|e| e.expires_ms).min()?;
        Some(self.clock.shows_at_ms(first))
    }
}

/// `None` is an administrator, whose every lease is.
fn is_theirs(client: Option<&str>, lease: &Lease) -> Result<(), Refusal> {
    match client {
        Some(client) if client != lease.client => Err(refusal::not_yours(client, &lease.lease_id)),
        _ => Ok(()),
    }
}
