//! Carries out the actions of [`Lender`](gleaner_policy::lending::Lender).

use super::Core;
use crate::clock;
use crate::log::MOST_CLIENTS;
use gleaner_paging::store;
use gleaner_policy::lending::{Action, Cause, Event};
use gleaner_schemas::lending::{
    Answer, GrantRequest, Outcome, ReclaimRecord, Request, RequestKind,
};
use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

/// Stands in place of a link's number in requests of the core itself.
const OWN: usize = usize::MAX;

/// Record of the present span of lending, which began when no memory was lent.
#[derive(Debug, Default)]
pub(super) struct LentSpan {
    pub(super) since_time_ms: Option<i64>,
    peak_bytes: u64,
    clients: BTreeSet<String>,
}

impl Core {
    /// Passes an event to the lender and carries out the lender's actions. Returns the reclaim that this
    /// caused, if any.
    ///
    /// `woke` is the time at which the event became known.
    pub(super) fn step(&mut self, event: Event, woke: Instant) -> Option<ReclaimRecord> {
        let mut actions = VecDeque::from(self.lender.step(&event, clock::boot_ms()));
        let (mut is_news, mut reclaimed) = (false, None::<ReclaimRecord>);
        // Keeps the largest of several results: after a shrink has ended a lease, revoking that lease gives
        // nothing back.
        let mut gave = |line: ReclaimRecord| match &reclaimed {
            Some(before) if before.bytes >= line.bytes => {}
            _ => reclaimed = Some(line),
        };
        while let Some(action) = actions.pop_front() {
            match action {
                Action::RevokeAll(cause) => {
                    let given = after(woke, || self.store.revoke_all());
                    gave(self.record(cause, given, false));
                }
                Action::Revoke { lease_id, cause } => {
                    let given = after(woke, || self.store.revoke(&lease_id));
                    // Leases that end one after the other share one line of the log. So they displace no
                    // other lines.
                    gave(self.record(cause, given, true));
                }
                Action::Shrink { bytes, cause } => {
                    let mut of_leases = Vec::new();
                    let given = after(woke, || {
                        let (lost, given) = self.store.shrink(bytes);
                        of_leases = lost;
                        given
                    });
                    let event = Event::Shrunk(of_leases);
                    actions.extend(self.lender.step(&event, clock::boot_ms()));
                    gave(self.record(cause, given, true));
                }
                Action::Open {
                    lease_id,
                    client,
                    bytes,
                } => self.store.open(&lease_id, &client, bytes),
                Action::Answer {
                    link,
                    request_id,
                    outcome,
                } => self.reply(link, request_id, outcome),
                Action::Announce => is_news = true,
            }
        }
        if is_news {
            self.announce(clock::boot_ms());
        }
        if matches!(
            event,
            Event::Sample { .. } | Event::Idle { .. } | Event::Resume
        ) && let Some(request) = self.standalone_request()
        {
            self.step(request, woke);
        }
        reclaimed
    }

    /// Records a reclaim in the log, with the memory that is still lent.
    fn record(
        &mut self,
        cause: Cause,
        given: store::ReclaimResult,
        is_step: bool,
    ) -> ReclaimRecord {
        let remaining_lent_bytes = self.quota().lent_bytes;
        let time_ms = clock::wall_ms();
        let line = ReclaimRecord {
            time_ms,
            lent_since_time_ms: self.lent.since_time_ms.unwrap_or(time_ms),
            peak_lent_bytes: self.lent.peak_bytes,
            cause: name(cause).to_owned(),
            bytes: given.bytes,
            remaining_lent_bytes,
            first_reclaim_us: given.first_reclaim_us,
            full_reclaim_us: given.full_reclaim_us,
            steps_count: 1,
            clients: self.lent.clients.iter().cloned().collect(),
        };
        let written = if is_step {
            self.log.add_step(line.clone())
        } else {
            self.log.add(line.clone())
        };
        super::said(written);
        if remaining_lent_bytes == 0 {
            self.lent = LentSpan::default();
        }
        line
    }

    pub(super) fn reply(&mut self, link: usize, request_id: u64, outcome: Outcome) {
        if let Outcome::Granted { lease } = &outcome {
            let lent_bytes = self.quota().lent_bytes;
            self.lent.since_time_ms.get_or_insert_with(clock::wall_ms);
            self.lent.peak_bytes = self.lent.peak_bytes.max(lent_bytes);
            self.lent.clients.insert(lease.client.clone());
            if self.lent.clients.len() > MOST_CLIENTS {
                self.lent.clients.pop_last();
            }
            if let (OWN, Some(standalone)) = (link, &self.standalone) {
                let pages = self.store.pages(&lease.lease_id, lease.generation);
                standalone.granted(pages.ok());
            }
        }
        let answer = Answer {
            request_id,
            outcome,
            unleased_bytes: self.quota().unleased_bytes,
            requests_per_s: self.served.per_s(clock::boot_ms()),
        };
        self.links.answer(link, answer);
    }

    fn standalone_request(&self) -> Option<Event> {
        let standalone = self.standalone.as_ref()?;
        let is_lent = self.lent.since_time_ms.is_some();
        if is_lent || self.quota().unleased_bytes < standalone.bytes() {
            return None;
        }
        let request = Request {
            request_id: 0,
            asked: RequestKind::Grant(GrantRequest {
                client: "standalone".to_owned(),
                key: "standalone".to_owned(),
                bytes: standalone.bytes(),
                term_ms: i64::MAX / 4,
            }),
        };
        let fresh_id = super::fresh_id().ok()?;
        Some(Event::Request {
            link: OWN,
            request,
            fresh_id,
        })
    }
}

/// Runs `give_back`. The times in the result are counted from `woke`, when the reason became known.
fn after(woke: Instant, give_back: impl FnOnce() -> store::ReclaimResult) -> store::ReclaimResult {
    let late_us = u64::try_from(woke.elapsed().as_micros()).unwrap_or(u64::MAX);
    let given = give_back();
    store::ReclaimResult {
        bytes: given.bytes,
        first_reclaim_us: given.first_reclaim_us.saturating_add(late_us),
        full_reclaim_us: given.full_reclaim_us.saturating_add(late_us),
    }
}

fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::Owner => "owner",
        Cause::Load => "load",
        Cause::OwnerUnknown => "owner_unknown",
        Cause::AgentLost => "agent_lost",
        Cause::Paused => "paused",
        Cause::Quota => "quota",
        Cause::Pressure => "pressure",
        Cause::Expired => "expired",
        Cause::Released => "released",
        Cause::Revoked => "revoked",
        Cause::Ending => "ending",
    }
}
