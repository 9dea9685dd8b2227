//! Idle memory daemon of a host. It is `policy`'s `Lender`, as in the live memory server, and the history of
//! a traced host drives it.

use super::{Cluster, DROPPED, HostEvent, Violation, ms};
use crate::event::{MS, Ticket};
use crate::hosts::{self, Change, Presence};
use gleaner_policy::eviction::Order;
use gleaner_policy::lending::{Action, Cause, Event, Lender, Settings};
use gleaner_schemas::lending::{GrantRequest, Outcome, QuotaReason, Request, RequestKind};

/// State of one host's daemon.
#[derive(Clone, Debug)]
pub(super) struct Daemon {
    lender: Lender,
    /// Index of the timeline's next change.
    pub(super) next: usize,
    /// Scheduled time of the lender's next event that comes without a change of the trace.
    pub(super) due: Option<Ticket>,
    /// True if the daemon lends, even if no memory is free to be leased at the moment.
    pub(super) is_recruited: bool,
    /// Time of the last change of `is_recruited`.
    pub(super) since_ns: u64,
    pub(super) quota_bytes: u64,
    /// Part of the quota that is not leased.
    pub(super) unleased_bytes: u64,
    /// Bytes of all leases; each lease is rounded up to whole slabs.
    pub(super) lent_bytes: u64,
    /// Bytes of the regions in the leases.
    pub(super) leased_bytes: u64,
    pub(super) generation: u32,
    /// Regions held by the daemon, in the order of arrival.
    pub(super) held: Vec<u32>,
    /// Regions that were lost here but that their clients still expect.
    pub(super) believed: Vec<u32>,
    pub(super) served: u64,
}

impl Daemon {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            lender: Lender::new(settings, 1),
            next: 0,
            due: None,
            is_recruited: false,
            since_ns: 0,
            quota_bytes: 0,
            unleased_bytes: 0,
            lent_bytes: 0,
            leased_bytes: 0,
            generation: 0,
            held: Vec::new(),
            believed: Vec::new(),
            served: 0,
        }
    }

    /// Time at which the `Lender` has an action due, or can lend more, without a change of the trace.
    fn next_ms(&self, now_ms: i64) -> Option<i64> {
        let rise_ms = self.lender.next_rise_ms(now_ms);
        let next_ms = self.lender.next_tick_ms().into_iter().chain(rise_ms).min();
        next_ms.map(|next_ms| next_ms.max(now_ms.saturating_add(1)))
    }
}

/// Event for a lease request. The region's number is the lease's name, since no host holds a region twice.
pub(super) fn grant(client: &str, region: u32, bytes: u64) -> Event {
    Event::Request {
        link: 0,
        request: Request {
            request_id: 0,
            asked: RequestKind::Grant(GrantRequest {
                client: client.to_owned(),
                key: region.to_string(),
                bytes,
                term_ms: i64::MAX,
            }),
        },
        fresh_id: region.to_string(),
    }
}

/// Event that releases the lease of a region which its client no longer needs.
pub(super) fn release(region: u32) -> Event {
    Event::Request {
        link: 0,
        request: Request {
            request_id: 0,
            asked: RequestKind::Release {
                client: None,
                lease_id: region.to_string(),
            },
        },
        fresh_id: String::new(),
    }
}

impl Cluster<'_> {
    /// Applies the next change of a host's timeline.
    pub(super) fn change(&mut self, at: usize, change: &Change) -> Result<(), Violation> {
        let now_ns = change.at_ns;
        let returns = &self.timelines[at].returns;
        if let Some(back) = change.returned.and_then(|i| returns.get(i as usize)) {
            let host = &self.hosts[at];
            if host.is_recruited {
                self.tally.add(back, host.leased_bytes);
            }
            let cause = match back.cause {
                hosts::Cause::Owner => Cause::Owner,
                hosts::Cause::Load => Cause::Load,
            };
            self.lend(at, &Event::Returned(cause), now_ns)?;
        }
        if let Some(seen) = change.seen {
            if self.recruitment.wants_forecast() {
                let expected_bytes = change.quotas.bytes(self.recruitment.mode);
                self.lend(at, &Event::Cap(Some(expected_bytes)), now_ns)?;
            }
            let sample = seen.event(self.recruitment.headroom_share);
            self.lend(at, &sample, now_ns)?;
        }
        if change.presence == Presence::Unseen {
            self.lend(at, &Event::Returned(Cause::OwnerUnknown), now_ns)?;
        }
        Ok(())
    }

    /// Passes an event to a host's daemon and executes its actions.
    pub(super) fn lend(&mut self, at: usize, event: &Event, now_ns: u64) -> Result<(), Violation> {
        self.step(at, event, now_ns).map(|_| ())
    }

    /// Passes an event like `lend`; returns true if a lease was granted.
    pub(super) fn step(
        &mut self,
        at: usize,
        event: &Event,
        now_ns: u64,
    ) -> Result<bool, Violation> {
        self.over_time.until(now_ns);
        let mut is_granted = false;
        let mut actions = self.hosts[at].lender.step(event, ms(now_ns));
        while !actions.is_empty() {
            let mut reclaimed = None;
            for action in actions {
                match action {
                    Action::RevokeAll(cause) => {
                        let gone = self.end_leases(at);
                        self.count_ended_regions(cause, gone);
                    }
                    Action::Shrink { bytes, cause } => {
                        let gone = self.shrink(at, bytes);
                        self.count_ended_regions(cause, gone.len() as u64);
                        reclaimed = Some(gone);
                    }
                    Action::Answer { outcome, .. } => {
                        is_granted = matches!(outcome, Outcome::Granted { .. });
                    }
                    // The daemon no longer holds this region: a shrink dropped it, or its client released it.
                    Action::Revoke { .. } | Action::Open { .. } | Action::Announce => {}
                }
            }
            actions = reclaimed.map_or_else(Vec::new, |gone| {
                let shrunk = Event::Shrunk(gone);
                self.hosts[at].lender.step(&shrunk, ms(now_ns))
            });
        }
        self.refresh(at, now_ns)?;
        Ok(is_granted)
    }

    fn count_ended_regions(&mut self, cause: Cause, regions: u64) {
        match cause {
            Cause::Owner | Cause::Load => self.told.reclaimed_count += regions,
            Cause::OwnerUnknown | Cause::AgentLost => self.told.lost_with_host_count += regions,
            _ => self.told.dropped_by_shrink_count += regions,
        }
    }

    /// Updates the bytes that may be lent now, and the time of the next change that comes without an event.
    fn refresh(&mut self, at: usize, now_ns: u64) -> Result<(), Violation> {
        let now_ms = ms(now_ns);
        let host = &mut self.hosts[at];
        let quota = host.lender.quota(now_ms);
        self.over_time.quota_bytes -= host.quota_bytes;
        self.over_time.quota_bytes += quota.quota_bytes;
        host.quota_bytes = quota.quota_bytes;
        host.unleased_bytes = quota.unleased_bytes;
        host.lent_bytes = quota.lent_bytes;
        let is_recruited = match quota.reason {
            QuotaReason::Idle | QuotaReason::Pressure => true,
            QuotaReason::Spare => quota.quota_bytes > 0,
            _ => false,
        };
        if host.is_recruited != is_recruited {
            (host.is_recruited, host.since_ns) = (is_recruited, now_ns);
            host.served = 0;
        }
        // Only between two steps of a shrink may lent memory exceed the quota.
        if quota.lent_bytes > quota.quota_bytes && host.lender.next_tick_ms().is_none() {
            return Err(Violation::Quota {
                host: self.timelines[at].host_id.clone(),
                at_ns: now_ns,
                leased_bytes: quota.lent_bytes,
                quota_bytes: quota.quota_bytes,
            });
        }
        let due_ns = host.next_ms(now_ms).map(|next_ms| {
            let next_ms = u64::try_from(next_ms).unwrap_or(0);
            next_ms.saturating_mul(MS)
        });
        if host.due.map(Ticket::at_ns) != due_ns {
            if let Some(before) = host.due.take() {
                self.changes.cancel(before);
            }
            host.due = due_ns.map(|due_ns| self.changes.put(due_ns, HostEvent::Lending(at)));
            self.next_ns = self.changes.next_ns().unwrap_or(super::NEVER);
        }
        Ok(())
    }

    /// Ends all leases of the daemon, and returns the number of lost regions.
    fn end_leases(&mut self, at: usize) -> u64 {
        let host = &mut self.hosts[at];
        let gone = host.held.len() as u64;
        host.generation += 1;
        host.believed.append(&mut host.held);
        self.over_time.leased_bytes -= host.leased_bytes;
        host.leased_bytes = 0;
        for client in &mut self.clients {
            client.leased_bytes[at] = 0;
        }
        gone
    }

    /// Drops whole regions, each with its lease and data, until at least `bytes` are freed.
    fn shrink(&mut self, at: usize, bytes: u64) -> Vec<(String, u64)> {
        let mut gone = Vec::new();
        let mut freed_bytes = 0;
        // Works on a copy of the order: clients do not know yet which regions are lost, so their order stays
        // as it is.
        let mut order = self.order.clone();
        while freed_bytes < bytes {
            let host = &mut self.hosts[at];
            let held = &mut host.held;
            let evict =
                |order: &mut Order| order.evict(usize::MAX, |region| held.contains(&region));
            let evicted = order.as_mut().and_then(evict);
            let Some(region) = evicted.or(held.last().copied()) else {
                break;
            };
            held.retain(|other| *other != region);
            host.believed.push(region);
            let dropped = &mut self.regions[region as usize];
            dropped.generation = DROPPED;
            let slabs_bytes = dropped.slabs_bytes();
            self.release(at, region);
            gone.push((region.to_string(), slabs_bytes));
            freed_bytes += slabs_bytes;
        }
        gone
    }

    /// Records whether a client works on this host. While a client does, the host lends nothing.
    pub(in crate::dodo) fn borrows(
        &mut self,
        at: usize,
        is_borrowing: bool,
        now_ns: u64,
    ) -> Result<(), Violation> {
        let until_ms = None;
        let event = match is_borrowing {
            true => Event::Pause { until_ms },
            false => Event::Resume,
        };
        self.lend(at, &event, now_ns)
    }
}
