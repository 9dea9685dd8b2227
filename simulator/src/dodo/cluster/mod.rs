//! The central manager, the hosts' idle memory daemons, and the regions that the daemons hold over time.
//!
//! A host's daemon follows `policy`'s `Lender`, as live; the module `daemon` drives it with the trace's
//! events. A daemon's generation changes whenever all its memory is reclaimed. A client that knows a region
//! by an earlier generation notices the loss at its next request for this region. Each client has its own
//! regions, numbered client by client; each region is a lease.

mod daemon;
mod grants;

use super::check::Violation;
use super::dice::stream;
use super::outcome::{Owners, Regions};
use super::owners::{PageIn, Tally};
use super::scenario::{LostRegion, Recruitment, Remote};
use crate::event::{MS, Queue};
use crate::hosts::Timeline;
use daemon::Daemon;
use gleaner_policy::eviction::{Order, Policy};
use gleaner_policy::lending::Event;
use gleaner_policy::placement::{Candidate, Placement, State};
use gleaner_policy::refraction::Refraction;
use gleaner_schemas::lending::SLAB_BYTES;
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

/// Time of an event that never happens.
pub(super) const NEVER: u64 = u64::MAX;
/// Host number of a region that is on no host.
const NOWHERE: u32 = u32::MAX;
/// Generation recorded for a region that its daemon dropped.
const DROPPED: u32 = u32::MAX;

/// Actual state of a region, and the client's view of it.
#[derive(Clone, Copy, Debug)]
struct Region {
    client: u32,
    host: u32,
    /// Generation of the host's daemon when the region was stored.
    generation: u32,
    /// Time from which the region is stored completely.
    ready_ns: u64,
    /// Number of the region's last storing, counted over all regions.
    storing: u64,
    bytes: u64,
}

impl Region {
    /// Bytes that the region takes of lent memory, in whole slabs.
    const fn slabs_bytes(&self) -> u64 {
        self.bytes.next_multiple_of(SLAB_BYTES)
    }
}

/// The manager's and the daemons' view of a client.
#[derive(Clone, Debug)]
struct Borrower {
    name: String,
    /// Numbers of the client's regions.
    regions: Range<u32>,
    refraction: Refraction,
    /// Bytes that the client has leased on each host.
    leased_bytes: Vec<u64>,
}

/// Place of a region, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionPlace {
    /// No host has the region.
    Nowhere,
    /// The region is being stored, and is available from this time on ([`NEVER`] while that time is unknown).
    Coming(u64),
    /// The region is on a host.
    Held,
    /// The client expects the region on a host that no longer has it.
    Lost,
}

/// All hosts, clients and regions, with the manager.
pub(super) struct Cluster<'a> {
    timelines: &'a [Timeline],
    recruitment: Recruitment,
    lost_region: LostRegion,
    placement: Placement,
    hosts: Vec<Daemon>,
    regions: Vec<Region>,
    changes: Queue<HostEvent>,
    /// Time of the next event of any host.
    pub(super) next_ns: u64,
    candidates: Vec<Candidate>,
    state: State,
    dice: ChaCha8Rng,
    clients: Vec<Borrower>,
    /// Order in which regions are evicted; `None` if no region is ever evicted.
    order: Option<Order>,
    storings: u64,
    told: Regions,
    tally: Tally,
    over_time: MemoryIntegral,
}

/// A scheduled event of a host.
#[derive(Clone, Copy, Debug)]
enum HostEvent {
    /// Next change of the host's timeline.
    Change(usize),
    /// An event of the host's lender itself, or a rise of its quota.
    Lending(usize),
}

/// Integrals of memory over time, in byte-nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct MemoryIntegral {
    since_ns: u64,
    quota_bytes: u64,
    leased_bytes: u64,
    quota: u128,
    leased: u128,
}

impl MemoryIntegral {
    fn until(&mut self, at_ns: u64) {
        let passed_ns = u128::from(at_ns.saturating_sub(self.since_ns));
        self.quota += u128::from(self.quota_bytes) * passed_ns;
        self.leased += u128::from(self.leased_bytes) * passed_ns;
        self.since_ns = self.since_ns.max(at_ns);
    }
}

impl<'a> Cluster<'a> {
    /// Cluster for one client with regions of these sizes; none is stored yet.
    pub(super) fn new(
        timelines: &'a [Timeline],
        recruitment: &Recruitment,
        remote: &Remote,
        region_bytes: impl Iterator<Item = u64>,
        seed: u64,
    ) -> Self {
        let only = ("client".to_owned(), region_bytes);
        Self::shared(timelines, recruitment, remote, [only], seed)
    }

    /// Cluster for several clients, given their names and the sizes of their regions.
    pub(super) fn shared<R: Iterator<Item = u64>>(
        timelines: &'a [Timeline],
        recruitment: &Recruitment,
        remote: &Remote,
        clients: impl IntoIterator<Item = (String, R)>,
        seed: u64,
    ) -> Self {
        let mut changes = Queue::default();
        for (host, timeline) in timelines.iter().enumerate() {
            if let Some(first) = timeline.changes.first() {
                changes.put(first.at_ns, HostEvent::Change(host));
            }
        }
        let (mut regions, mut borrowers) = (Vec::new(), Vec::new());
        for (client, (name, region_bytes)) in (0..).zip(clients) {
            let first = regions.len() as u32;
            regions.extend(region_bytes.map(|bytes| Region {
                client,
                host: NOWHERE,
                generation: 0,
                ready_ns: NEVER,
                storing: 0,
                bytes,
            }));
            borrowers.push(Borrower {
                name,
                regions: first..regions.len() as u32,
                refraction: Refraction::new(remote.refraction_ms),
                leased_bytes: vec![0; timelines.len()],
            });
        }
        let candidate = |timeline: &Timeline| Candidate {
            host_id: timeline.host_id.as_str().into(),
            ..Candidate::default()
        };
        let retention = remote.retention.0;
        let order =
            (retention != Policy::FirstIn).then(|| Order::new(retention, regions.len() as u32));
        Self {
            recruitment: recruitment.clone(),
            lost_region: remote.lost_region,
            placement: remote.placement.0,
            hosts: vec![Daemon::new(recruitment.lending()); timelines.len()],
            next_ns: changes.next_ns().unwrap_or(NEVER),
            changes,
            candidates: timelines.iter().map(candidate).collect(),
            // Hosts never fail here, since the manager knows when a host is no longer idle.
            state: State::new(0),
            dice: stream(seed, 1),
            clients: borrowers,
            order,
            storings: 0,
            told: Regions::default(),
            tally: Tally::default(),
            over_time: MemoryIntegral::default(),
            timelines,
            regions,
        }
    }

    /// Processes all events of the hosts up to `now_ns`.
    #[cold]
    pub(super) fn advance(&mut self, now_ns: u64) -> Result<(), Violation> {
        while let Some((at_ns, due)) = self.changes.pop_until(now_ns) {
            match due {
                HostEvent::Change(host) => {
                    let changes = &self.timelines[host].changes;
                    let next = self.hosts[host].next;
                    if let Some(change) = changes.get(next) {
                        self.change(host, change)?;
                    }
                    self.hosts[host].next = next + 1;
                    if let Some(change) = changes.get(next + 1) {
                        self.changes.put(change.at_ns, HostEvent::Change(host));
                    }
                }
                HostEvent::Lending(host) => {
                    self.hosts[host].due = None;
                    self.lend(host, &Event::Tick, at_ns)?;
                }
            }
        }
        self.next_ns = self.changes.next_ns().unwrap_or(NEVER);
        Ok(())
    }

    /// Subtracts the region's bytes from the leased bytes of its host and its client.
    fn release(&mut self, at: usize, region: u32) {
        let Region { client, bytes, .. } = self.regions[region as usize];
        self.hosts[at].leased_bytes -= bytes;
        self.clients[client as usize].leased_bytes[at] -= bytes;
        self.over_time.leased_bytes -= bytes;
    }

    /// Releases the lease of a region that its client no longer needs.
    fn give_back(&mut self, at: usize, region: u32, now_ns: u64) -> Result<(), Violation> {
        self.release(at, region);
        self.lend(at, &daemon::release(region), now_ns)
    }

    /// Place of the region, as its client sees it at `now_ns`.
    #[inline]
    pub(super) fn find(&self, region: u32, now_ns: u64) -> RegionPlace {
        let region = &self.regions[region as usize];
        let Some(host) = self.hosts.get(region.host as usize) else {
            return RegionPlace::Nowhere;
        };
        if host.generation != region.generation {
            RegionPlace::Lost
        } else if region.ready_ns > now_ns {
            RegionPlace::Coming(region.ready_ns)
        } else {
            RegionPlace::Held
        }
    }

    /// Counts an answer of the region's host; returns an error if the host has reclaimed its memory.
    #[inline]
    pub(super) fn serve(&mut self, region: u32, now_ns: u64) -> Result<(), Violation> {
        let at = self.regions[region as usize].host as usize;
        let host = &mut self.hosts[at];
        if !host.is_recruited || now_ns < host.since_ns {
            return Err(Violation::Reclaimed {
                host: self.timelines[at].host_id.clone(),
                at_ns: now_ns,
                since_ns: host.since_ns,
            });
        }
        host.served += 1;
        if let Some(order) = &mut self.order {
            order.used(region);
        }
        Ok(())
    }

    /// Returns true if the client may request memory for the region now. The memory comes from the manager,
    /// or from evicting another region.
    #[inline]
    pub(super) fn may_ask(&self, region: u32, now_ns: u64) -> bool {
        self.order.is_some() || self.client(region).refraction.may_ask(ms(now_ns))
    }

    #[inline]
    fn client(&self, region: u32) -> &Borrower {
        &self.clients[self.regions[region as usize].client as usize]
    }

    /// Marks the region as stored from `ready_ns` on, unless its storing was cancelled meanwhile.
    pub(super) fn stored(&mut self, region: u32, storing: u64, ready_ns: u64) {
        let region = &mut self.regions[region as usize];
        if region.storing == storing {
            region.ready_ns = ready_ns;
        }
    }

    /// Returns true if the storing of the region was cancelled.
    pub(super) fn is_void(&self, region: u32, storing: u64) -> bool {
        let region = &self.regions[region as usize];
        let host = self.hosts.get(region.host as usize);
        region.storing != storing || host.is_none_or(|h| h.generation != region.generation)
    }

    /// Handles a region that the client found lost: drops regions as the setting `lost_region` says.
    #[cold]
    pub(super) fn drop_lost(&mut self, region: u32, now_ns: u64) -> Result<(), Violation> {
        self.told.failed_accesses += 1;
        self.over_time.until(now_ns);
        let at = self.regions[region as usize].host as usize;
        let Some(host) = self.hosts.get_mut(at) else {
            return Ok(());
        };
        if self.lost_region == LostRegion::DropRegion {
            host.believed.retain(|believed| *believed != region);
            self.regions[region as usize].host = NOWHERE;
            return Ok(());
        }
        // Drops only regions of this client; other clients keep theirs.
        let own = self.client(region).regions.clone();
        let is_own = |region: &mut u32| own.contains(region);
        let host = &mut self.hosts[at];
        let believed: Vec<u32> = host.believed.extract_if(.., is_own).collect();
        let held: Vec<u32> = host.held.extract_if(.., is_own).collect();
        self.told.dropped_by_client_count += held.len() as u64;
        for region in &held {
            self.give_back(at, *region, now_ns)?;
        }
        for region in believed.into_iter().chain(held) {
            self.regions[region as usize].host = NOWHERE;
        }
        Ok(())
    }

    /// Deletes all regions of all clients.
    pub(super) fn delete_all(&mut self, now_ns: u64) -> Result<(), Violation> {
        (0..self.clients.len()).try_for_each(|client| self.delete(client, now_ns))
    }

    /// Deletes all regions of a client.
    pub(super) fn delete(&mut self, client: usize, now_ns: u64) -> Result<(), Violation> {
        self.over_time.until(now_ns);
        let own = self.clients[client].regions.clone();
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            let is_own = |region: &mut u32| own.contains(region);
            let held: Vec<u32> = host.held.extract_if(.., is_own).collect();
            host.believed.retain(|region| !own.contains(region));
            self.told.deleted_count += held.len() as u64;
            for region in held {
                self.give_back(at, region, now_ns)?;
            }
        }
        for region in own {
            self.regions[region as usize].host = NOWHERE;
        }
        Ok(())
    }

    /// Checks, for each client and in total, that hosts lend exactly the bytes of their regions.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let mut of_clients = vec![0; self.clients.len()];
        for (at, host) in self.hosts.iter().enumerate() {
            of_clients.fill(0);
            for region in host.held.iter().map(|r| &self.regions[*r as usize]) {
                of_clients[region.client as usize] += region.bytes;
            }
            let violation = |leased_bytes, held_bytes| Violation::Held {
                host: self.timelines[at].host_id.clone(),
                leased_bytes,
                held_bytes,
            };
            for (client, held_bytes) in self.clients.iter().zip(&of_clients) {
                if client.leased_bytes[at] != *held_bytes {
                    return Err(violation(client.leased_bytes[at], *held_bytes));
                }
            }
            let held_bytes = of_clients.iter().sum();
            if host.leased_bytes != held_bytes {
                return Err(violation(host.leased_bytes, held_bytes));
            }
            // The daemon's own account counts whole slabs.
            let slabs = host.held.iter().map(|r| &self.regions[*r as usize]);
            let slabs_bytes = slabs.map(Region::slabs_bytes).sum();
            if host.lent_bytes != slabs_bytes {
                return Err(violation(host.lent_bytes, slabs_bytes));
            }
        }
        Ok(())
    }

    /// Ends the simulation at `end_ns` and returns the figures of regions and owners.
    pub(super) fn finish(mut self, end_ns: u64, page_in: PageIn) -> (Regions, Owners) {
        self.over_time.until(end_ns);
        let mean = |sum: u128| sum as f64 / end_ns.max(1) as f64;
        let regions = Regions {
            mean_quota_bytes: mean(self.over_time.quota),
            mean_leased_bytes: mean(self.over_time.leased),
            ..self.told
        };
        (regions, self.tally.outcome(self.timelines, end_ns, page_in))
    }
}

/// Converts ns to the ms of `policy`.
const fn ms(ns: u64) -> i64 {
    (ns / MS) as i64
}
