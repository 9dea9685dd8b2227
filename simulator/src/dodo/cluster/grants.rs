//! Grants memory for regions, and evicts regions to make room.

use super::{Cluster, NEVER, NOWHERE, Region, RegionPlace, Violation, daemon, ms};
use crate::event::SECOND;
use gleaner_policy::eviction::Order;
use gleaner_policy::placement::{Request, place};
use rand::Rng;

impl Cluster<'_> {
    /// Requests memory for a region that no host has. Returns the number of the storing, or `None` if there
    /// is no room.
    pub(in crate::dodo) fn ask(
        &mut self,
        region: u32,
        now_ns: u64,
    ) -> Result<Option<u64>, Violation> {
        let Region { client, bytes, .. } = self.regions[region as usize];
        let client = client as usize;
        let host = if self.clients[client].refraction.may_ask(ms(now_ns)) {
            self.place(client, bytes, now_ns)
        } else {
            None
        };
        let host = match host {
            Some(host) => Some(host),
            None => self.replace(client, bytes, now_ns)?,
        };
        let Some(at) = host else { return Ok(None) };
        let asked = daemon::grant(&self.clients[client].name, region, bytes);
        if !self.step(at, &asked, now_ns)? {
            let host = &self.hosts[at];
            return Err(Violation::Refused {
                host: self.timelines[at].host_id.clone(),
                at_ns: now_ns,
                unleased_bytes: host.unleased_bytes,
                wanted_bytes: bytes,
            });
        }
        self.over_time.leased_bytes += bytes;
        self.told.stored_count += 1;
        self.storings += 1;
        let host = &mut self.hosts[at];
        host.leased_bytes += bytes;
        self.clients[client].leased_bytes[at] += bytes;
        host.held.push(region);
        let stored = &mut self.regions[region as usize];
        stored.host = at as u32;
        stored.generation = host.generation;
        stored.ready_ns = NEVER;
        stored.storing = self.storings;
        if let Some(order) = &mut self.order {
            order.leave(region);
            order.enter(region);
        }
        Ok(Some(self.storings))
    }

    /// Chooses a host as the manager does. If there is none, the client's refraction period begins.
    fn place(&mut self, client: usize, bytes: u64, now_ns: u64) -> Option<usize> {
        let client = &mut self.clients[client];
        let hosts = self.hosts.iter().zip(&client.leased_bytes);
        for (candidate, (host, client_bytes)) in self.candidates.iter_mut().zip(hosts) {
            let for_ns = now_ns.saturating_sub(host.since_ns);
            let is_recruited = host.is_recruited;
            candidate.unleased_bytes = host.unleased_bytes;
            candidate.lent_bytes = host.leased_bytes;
            candidate.client_bytes = *client_bytes;
            candidate.idle_for_ms = is_recruited.then(|| ms(for_ns));
            candidate.requests_per_s = host.served as f64 * SECOND as f64 / for_ns.max(1) as f64;
        }
        let request = Request {
            client: &client.name,
            bytes,
            copies: 1,
        };
        let mut random = || self.dice.next_u64();
        let chosen = place(
            self.placement,
            &mut self.state,
            &request,
            &self.candidates,
            &mut random,
            ms(now_ns),
        );
        match chosen.as_deref() {
            Ok([host, ..]) => Some(*host),
            _ => {
                self.told.refusals += 1;
                client.refraction.refused(ms(now_ns));
                None
            }
        }
    }

    /// Deletes the client's regions in the order of eviction, until a host that held one of them has enough
    /// room.
    fn replace(
        &mut self,
        client: usize,
        bytes: u64,
        now_ns: u64,
    ) -> Result<Option<usize>, Violation> {
        loop {
            let mut order = self.order.take();
            let own = &self.clients[client].regions;
            // Regions that are being stored are not evicted.
            let may_leave = |region| {
                own.contains(&region)
                    && !matches!(self.find(region, now_ns), RegionPlace::Coming(_))
            };
            let evict = |order: &mut Order| order.evict(usize::MAX, may_leave);
            let evicted = order.as_mut().and_then(evict);
            self.order = order;
            let Some(region) = evicted else {
                return Ok(None);
            };
            match self.find(region, now_ns) {
                RegionPlace::Held => {
                    let at = self.regions[region as usize].host as usize;
                    self.free(at, region, now_ns)?;
                    self.told.deleted_count += 1;
                    if self.hosts[at].unleased_bytes >= bytes {
                        return Ok(Some(at));
                    }
                }
                RegionPlace::Lost => self.drop_lost(region, now_ns)?,
                RegionPlace::Nowhere | RegionPlace::Coming(_) => {}
            }
        }
    }

    fn free(&mut self, at: usize, region: u32, now_ns: u64) -> Result<(), Violation> {
        let host = &mut self.hosts[at];
        host.held.retain(|held| *held != region);
        self.regions[region as usize].host = NOWHERE;
        self.give_back(at, region, now_ns)
    }
}
