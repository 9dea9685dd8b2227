//! Who is given memory, and for whom something else leaves.

use super::{Cluster, Found, NEVER, NOWHERE, Region, Violation, ms};
use crate::event::SECOND;
use gleaner_policy::placement::{Request, place};
use rand::Rng;

impl Cluster<'_> {
    /// Asks for memory for a region that is nowhere. Which storing it is, where there is room.
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
            None => self.replace(client, bytes, now_ns),
        };
        let Some(at) = host else { return Ok(None) };
        self.over_time.until(now_ns);
        self.over_time.leased_bytes += bytes;
        self.told.stored += 1;
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
        if host.leased_bytes > host.quota_bytes {
            return Err(Violation::Quota {
                host: self.timelines[at].host_id.clone(),
                at_ns: now_ns,
                leased_bytes: host.leased_bytes,
                quota_bytes: host.quota_bytes,
            });
        }
        if let Some(order) = &mut self.order {
            order.touch(region);
        }
        Ok(Some(self.storings))
    }

    /// The manager's choice. A refusal is respected.
    fn place(&mut self, client: usize, bytes: u64, now_ns: u64) -> Option<usize> {
        let client = &mut self.clients[client];
        let hosts = self.hosts.iter().zip(&client.leased_bytes);
        for (candidate, (host, client_bytes)) in self.candidates.iter_mut().zip(hosts) {
            let for_ns = now_ns.saturating_sub(host.since_ns);
            let is_recruited = host.is_recruited;
            candidate.free_bytes = host.quota_bytes.saturating_sub(host.leased_bytes);
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

    /// Deletes the client's regions that leave first until there is room on the host of the last one.
    fn replace(&mut self, client: usize, bytes: u64, now_ns: u64) -> Option<usize> {
        loop {
            let own = &self.clients[client].regions;
            let mut coldest = self.order.as_ref()?.coldest();
            // What is on its way stays.
            let region = coldest.find(|region| {
                own.contains(region) && !matches!(self.find(*region, now_ns), Found::Coming(_))
            })?;
            drop(coldest);
            if let Some(order) = &mut self.order {
                order.remove(region);
            }
            match self.find(region, now_ns) {
                Found::Held => {
                    let at = self.regions[region as usize].host as usize;
                    self.over_time.until(now_ns);
                    self.free(at, region);
                    self.told.deleted += 1;
                    let host = &self.hosts[at];
                    if host.quota_bytes.saturating_sub(host.leased_bytes) >= bytes {
                        return Some(at);
                    }
                }
                Found::Lost => self.give_up(region, now_ns),
                Found::Nowhere | Found::Coming(_) => {}
            }
        }
    }

    fn free(&mut self, at: usize, region: u32) {
        let host = &mut self.hosts[at];
        host.held.retain(|held| *held != region);
        self.regions[region as usize].host = NOWHERE;
        self.release(at, region);
    }
}
