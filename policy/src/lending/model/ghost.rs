//! The history as an all-seeing observer records it.

use super::client::client_name;
use super::{GRACE_MS, SLAB, TERM_MS, TICK_MS, number};
use crate::lending::Cause;
use gleaner_schemas::lending::{Lease, Outcome, RefusalKind};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ghost {
    /// Properties that were violated.
    pub(super) broken: BTreeSet<&'static str>,
    /// Scenes of this step. They are cleared afterwards, so that two states never differ only by their
    /// scenes.
    pub(super) scenes: Vec<&'static str>,
    /// End of each lease, on the clock `clock_ms`.
    ends_ms: BTreeMap<u8, i64>,
    pub(super) ended: BTreeSet<u8>,
    /// Clock by which leases expire; it stops in an outage of the recruiters.
    clock_ms: i64,
    pub(super) outage_ms: i64,
}

pub(super) const DOUBLE_GRANT: &str = "a lease is granted twice, or beyond what is there";
pub(super) const LEAK: &str = "the store and the ledger differ";
pub(super) const RUNS_OUT: &str = "a lease ends too early or too late";
pub(super) const SPARED: &str = "a revocation spares a lease, or ends another client's";
pub(super) const MISDIRECTED: &str = "an answer goes elsewhere";

impl Ghost {
    /// An id that was never used.
    pub(super) fn fresh(&self) -> u8 {
        (self.ends_ms.len() + self.ended.len()) as u8
    }

    pub(super) fn scene(&mut self, scene: &'static str) {
        self.scenes.push(scene);
    }

    pub(super) fn time_passes(&mut self, is_linked: bool) {
        if is_linked || self.outage_ms >= GRACE_MS {
            self.clock_ms += TICK_MS;
        } else {
            self.scene("an outage stops the time of leases");
        }
        if !is_linked {
            self.outage_ms += TICK_MS;
        }
    }

    pub(super) fn opened(&mut self, id: u8, fits: bool) {
        let is_new = self.ends_ms.insert(id, self.clock_ms + TERM_MS).is_none();
        if !is_new || !fits {
            self.broken.insert(DOUBLE_GRANT);
        }
    }

    pub(super) fn ended(&mut self, id: u8) {
        self.ends_ms.remove(&id);
        self.ended.insert(id);
        self.scene("all leases are revoked");
    }

    pub(super) fn revoked(&mut self, id: u8, cause: Cause) {
        let ends_ms = self.ends_ms.remove(&id);
        self.ended.insert(id);
        self.scene(match cause {
            Cause::Expired => "a lease runs out",
            Cause::Released => "a lease is released",
            Cause::Revoked => "a lease ends by revocation",
            _ => "a lease is shrunk away",
        });
        let is_due = ends_ms.is_some_and(|end| end <= self.clock_ms);
        if cause == Cause::Expired && !is_due {
            self.broken.insert(RUNS_OUT);
        }
    }

    pub(super) fn answered(&mut self, link: usize, id: u64, outcome: &Outcome) {
        let client = id as usize % 2;
        if id != (link * 2 + client) as u64 {
            self.broken.insert(MISDIRECTED);
        }
        match outcome {
            Outcome::Granted { lease } => {
                if lease.client != client_name(client) {
                    self.broken.insert(MISDIRECTED);
                }
            }
            Outcome::Renewed { lease } => {
                self.ends_ms
                    .insert(number(&lease.lease_id), self.clock_ms + TERM_MS);
                self.scene("a lease is renewed");
            }
            Outcome::Released { .. } => {}
            Outcome::Refused(refusal) => {
                self.scene(match refusal.kind {
                    RefusalKind::NoMemory => "refused: no memory",
                    RefusalKind::InUse => "refused: in use",
                    RefusalKind::UnknownLease => "refused: no such lease",
                    _ => "refused: else",
                });
            }
        }
    }

    /// Checks, after a revocation, that exactly the leases of others remain.
    pub(super) fn left(&mut self, leases: &[Lease], others: &[Lease]) {
        if leases != others {
            self.broken.insert(SPARED);
        }
    }

    /// Checks the properties after every step.
    pub(super) fn look(
        &mut self,
        leases: &[Lease],
        store: &BTreeMap<u8, u64>,
        not_told_of: &[(u8, u64)],
    ) {
        let mut owners: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut held: BTreeMap<u8, u64> = BTreeMap::new();
        for lease in leases {
            let id = number(&lease.lease_id);
            if !owners.insert((&lease.client, &lease.key)) || self.ended.contains(&id) {
                self.broken.insert(DOUBLE_GRANT);
            }
            held.insert(id, lease.remaining_bytes / SLAB);
            if self
                .ends_ms
                .get(&id)
                .is_none_or(|end| *end <= self.clock_ms)
            {
                self.broken.insert(RUNS_OUT);
            }
        }
        for (id, slabs) in not_told_of {
            if let Some(held) = held.get_mut(id) {
                *held -= slabs;
            }
        }
        if held != *store {
            self.broken.insert(LEAK);
        }
    }
}
