//! A simulated memory server for the tests, with 16 slabs of physical memory.

use super::super::*;
use crate::accounting::Categories;
use crate::idle::Verdict;
use gleaner_schemas::lending::Request;

pub(super) const SLAB: u64 = SLAB_BYTES;
pub(super) const IDLE: Verdict = Verdict::Idle { since_ms: 0 };

pub(super) fn settings() -> Settings {
    Settings {
        rise_after_ms: 100,
        max_term_ms: 1000,
        shrink_step_bytes: 2 * SLAB,
        shrink_every_ms: 10,
        outage_grace_ms: 500,
        pressure_pause_ms: 50,
        ..Settings::default()
    }
}

/// The lender of a simulated memory server, and the number of requests so far.
pub(super) struct Host {
    pub(super) lender: Lender,
    ids: u64,
}

impl Host {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            lender: Lender::new(settings, 7),
            ids: 0,
        }
    }

    pub(super) fn idle(available_slabs: u64) -> Self {
        let mut host = Self::new(settings());
        host.sample(available_slabs, 0, IDLE, 0);
        host
    }

    pub(super) fn step(&mut self, event: &Event, now_ms: i64) -> Vec<Action> {
        let mut actions = self.lender.step(event, now_ms);
        actions.retain(|action| *action != Action::Announce);
        actions
    }

    pub(super) fn sample(
        &mut self,
        available: u64,
        guest: u64,
        verdict: Verdict,
        now_ms: i64,
    ) -> Vec<Action> {
        let sample = Event::Sample {
            categories: Categories {
                physical_bytes: 16 * SLAB,
                available_bytes: available * SLAB,
                guest_bytes: guest * SLAB,
                ..Categories::default()
            },
            mem_available_bytes: Some(available * SLAB),
            headroom_share: 0.125,
            verdict,
        };
        self.step(&sample, now_ms)
    }

    pub(super) fn available(&mut self, available: u64, resident: u64, now_ms: i64) -> Vec<Action> {
        let available = Event::Available {
            mem_available_bytes: available * SLAB,
            resident_bytes: resident * SLAB,
        };
        self.step(&available, now_ms)
    }

    pub(super) fn ask(&mut self, asked: RequestKind, now_ms: i64) -> (Vec<Action>, Outcome) {
        self.ids += 1;
        let event = Event::Request {
            link: 3,
            request: Request {
                request_id: self.ids,
                asked,
            },
            fresh_id: format!("{:032x}", self.ids),
        };
        let mut actions = self.step(&event, now_ms);
        match actions.pop() {
            Some(Action::Answer {
                link: 3,
                request_id,
                outcome,
            }) if request_id == self.ids => (actions, outcome),
            other => panic!("no answer, but {other:?} after {actions:?}"),
        }
    }

    pub(super) fn grant(&mut self, key: &str, slabs: u64, now_ms: i64) -> (Vec<Action>, Outcome) {
        let asked = RequestKind::Grant(GrantRequest {
            client: "c".into(),
            key: key.into(),
            bytes: slabs * SLAB,
            term_ms: 300,
        });
        self.ask(asked, now_ms)
    }

    pub(super) fn granted(&mut self, key: &str, slabs: u64, now_ms: i64) -> Lease {
        match self.grant(key, slabs, now_ms) {
            (_, Outcome::Granted { lease }) => lease,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn refused(&mut self, key: &str, slabs: u64, now_ms: i64) -> Refusal {
        match self.grant(key, slabs, now_ms) {
            (actions, Outcome::Refused(refusal)) if actions.is_empty() => refusal,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn quota(&self, now_ms: i64) -> (u64, u64, u64, QuotaReason) {
        let q = self.lender.quota(now_ms);
        let slabs = |bytes: u64| bytes / SLAB;
        (
            slabs(q.quota_bytes),
            slabs(q.lent_bytes),
            slabs(q.unleased_bytes),
            q.reason,
        )
    }

    pub(super) fn held(&self, now_ms: i64) -> Vec<u64> {
        let leases = self.lender.leases(now_ms);
        leases.iter().map(|l| l.remaining_bytes / SLAB).collect()
    }
}

pub(super) fn shrink(slabs: u64, cause: Cause) -> Vec<Action> {
    let bytes = slabs * SLAB;
    vec![Action::Shrink { bytes, cause }]
}

pub(super) fn revoke(lease: &Lease, cause: Cause) -> Vec<Action> {
    let lease_id = lease.lease_id.clone();
    vec![Action::Revoke { lease_id, cause }]
}
