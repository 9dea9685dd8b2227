//! Leases of the device: requested from recruiters as it fills, renewed every ten seconds, returned as it empties.
//!
//! The key of each lease request begins with this clerk's session, and a lease lasts half a minute. So the
//! leases of a clerk that has died end by themselves, and the hosts get their memory back.

use super::config::BorrowSettings;
use gleaner_paging::borrow::{self, BorrowError, Recruiters, UnreachableHosts};
use gleaner_paging::device::PAGE;
use gleaner_paging::device::run::{Demand, Handle, LeaseNews};
use gleaner_schemas::lending::{LeaseRequest, LeaseView, RefusalKind, SLAB_BYTES};
use gleaner_trust::ClientTrust;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Term of a lease; it leaves time to repeat failed renewals.
const TERM_MS: i64 = 35_000;
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// Pause after a refusal that states no time for a retry.
const PAUSE: Duration = Duration::from_secs(5);

/// A lease of the device.
struct HeldLease {
    host: String,
    renewed: Instant,
    is_leaving: bool,
}

/// Requests, renews and returns leases.
pub(super) struct Leases {
    recruiters: Recruiters,
    trust: Option<Arc<ClientTrust>>,
    borrowing: BorrowSettings,
    copies: usize,
    /// Size of the whole device, in pages.
    pages: u64,
    handle: Handle,
    session: String,
    asked: u64,
    held: BTreeMap<String, HeldLease>,
    unreachable: UnreachableHosts,
    not_before: Instant,
    began: Instant,
    said: String,
}

impl Leases {
    pub(super) fn new(
        recruiters: Recruiters,
        trust: Option<Arc<ClientTrust>>,
        borrowing: BorrowSettings,
        (pages, copies): (u32, usize),
        refraction_period: Duration,
        handle: Handle,
        session: String,
    ) -> Self {
        Self {
            recruiters,
            trust,
            borrowing,
            copies,
            pages: u64::from(pages),
            handle,
            session,
            asked: 0,
            held: BTreeMap::new(),
            unreachable: UnreachableHosts::new(ms(refraction_period)),
            not_before: Instant::now(),
            began: Instant::now(),
            said: String::new(),
        }
    }

    /// Runs until the device has ended, and then ends all leases.
    pub(super) fn keep(mut self, told: &Receiver<LeaseNews>) {
        loop {
            let first = match told.recv_timeout(Duration::from_secs(1)) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            // If a recruiter was slow, several demands have been received in the meantime: only the last one
            // counts.
            let mut demanded = None;
            for one in first.into_iter().chain(told.try_iter()) {
                match one {
                    LeaseNews::Demand(demand) => demanded = Some(demand),
                    LeaseNews::Released(lease) => {
                        self.held.remove(&lease);
                        let released = self.recruiters.release(&lease);
                        self.tell(released.err());
                    }
                    LeaseNews::Unreachable(lease) => self.unreachable(&lease),
                    LeaseNews::Over(lease) => {
                        self.held.remove(&lease);
                    }
                }
            }
            if let Some(demand) = demanded {
                self.suit(demand);
            }
            self.renew();
        }
        for lease in self.held.keys() {
            let _ = self.recruiters.release(lease); // on failure the lease expires by itself
        }
    }

    /// Ends a lease whose server never answered, and requests none on that host for a while.
    fn unreachable(&mut self, lease: &str) {
        if let Some(held) = self.held.remove(lease) {
            eprintln!(
                "gleaner-clerk: host {} does not serve its lease {lease}: no lease there for {} s; \
                 is its memory server's port open to this host?",
                held.host,
                self.unreachable.period_ms() / 1000
            );
            let now_ms = ms(self.began.elapsed());
            self.unreachable.add(held.host, now_ms);
        }
        let released = self.recruiters.release(lease);
        self.tell(released.err());
    }

    /// Adjusts the leases to the demand: requests one if less than half a lease is free, and returns one if
    /// more than 2.5 are.
    fn suit(&mut self, demand: Demand) {
        let lease = self.borrowing.lease_bytes / PAGE as u64;
        let most = self.pages * self.copies as u64;
        if demand.connecting == 0 && demand.free < lease / 2 && demand.slots < most {
            self.ask(lease.min(most - demand.slots));
        } else if demand.free > lease * 5 / 2 {
            self.release_least_used();
        }
    }

    fn ask(&mut self, pages: u64) {
        if Instant::now() < self.not_before || self.held.values().any(|held| held.is_leaving) {
            return;
        }
        let request = LeaseRequest {
            bytes: (pages * PAGE as u64).next_multiple_of(SLAB_BYTES),
            copies: u32::try_from(self.copies).unwrap_or(1),
            key: format!("{}-{}", self.session, self.asked),
            term_ms: TERM_MS,
            minimum_duration_ms: None,
            placement: self.borrowing.placement,
            avoided_host_ids: self.unreachable.hosts(ms(self.began.elapsed())),
            host_id: None,
        };
        self.asked += 1;
        match self.recruiters.lease(&request) {
            Ok(granted) => {
                self.not_before = Instant::now() + Duration::from_secs(1); // connecting takes time
                for granted in granted {
                    self.join(granted);
                }
                self.tell(None);
            }
            Err(why) => {
                let pause = match &why {
                    BorrowError::Refused { refusal, .. } => refusal.retry_in_ms,
                    _ => None,
                };
                let pause = pause.and_then(|ms| u64::try_from(ms).ok());
                self.not_before = Instant::now() + pause.map_or(PAUSE, Duration::from_millis);
                self.tell(Some(why));
            }
        }
    }

    fn join(&mut self, granted: LeaseView) {
        let id = granted.lease.lease_id.clone();
        let host = granted.host_id.clone();
        match borrow::source(granted, self.trust.as_deref()) {
            Ok(source) => {
                let held = HeldLease {
                    host,
                    renewed: Instant::now(),
                    is_leaving: false,
                };
                self.held.insert(id, held);
                self.handle.join(source);
            }
            Err(why) => {
                eprintln!("gleaner-clerk: lease {id} cannot be used: {why}");
                let _ = self.recruiters.release(&id); // on failure the lease expires by itself
                self.unreachable.add(host, ms(self.began.elapsed()));
            }
        }
    }

    /// Empties the least-used lease.
    fn release_least_used(&mut self) {
        if self.held.len() <= self.copies || self.held.values().any(|held| held.is_leaving) {
            return;
        }
        let Some(status) = self.handle.status() else {
            return;
        };
        let emptiest = status
            .up()
            .filter_map(|server| Some((server.used_bytes, server.lease.clone()?)))
            .min();
        if let Some((_, lease)) = emptiest {
            self.leave(&lease);
        }
    }

    fn leave(&mut self, lease: &str) {
        if let Some(held) = self.held.get_mut(lease)
            && !held.is_leaving
        {
            held.is_leaving = true;
            self.handle.leave(lease);
        }
    }

    /// Renews the leases that are due. A renewal also shows a server that its client is alive.
    fn renew(&mut self) {
        let due: Vec<String> = self
            .held
            .iter()
            .filter(|(_, held)| held.renewed.elapsed() >= RENEW_EVERY)
            .map(|(lease, _)| lease.clone())
            .collect();
        for lease in due {
            match self.recruiters.renew(&lease, TERM_MS) {
                Ok(LeaseView { lease: now, .. }) => {
                    if let Some(held) = self.held.get_mut(&lease) {
                        held.renewed = Instant::now();
                    }
                    // The host is reclaiming memory, oldest pages first: the clerk moves the remaining pages
                    // while they can be read.
                    if now.remaining_bytes < now.granted_bytes {
                        self.leave(&lease);
                    }
                }
                Err(BorrowError::Refused { refusal, .. })
                    if refusal.kind == RefusalKind::UnknownLease =>
                {
                    self.held.remove(&lease);
                    self.handle.over(&lease);
                }
                Err(why) => {
                    if let Some(held) = self.held.get_mut(&lease) {
                        held.renewed += Duration::from_secs(2); // retry soon
                    }
                    self.tell(Some(why));
                }
            }
        }
    }

    /// Logs a refusal once, however often it occurs.
    fn tell(&mut self, why: Option<BorrowError>) {
        let said = why.map(|why| why.to_string()).unwrap_or_default();
        if said != self.said && !said.is_empty() {
            eprintln!("gleaner-clerk: {said}");
        }
        self.said = said;
    }
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
