//! Exchanges of bystanders: the load moves from one node to another.

use super::{Cluster, Host, Scheduled};
use crate::event::MS;
use crate::gms::error::GmsError;
use gleaner_policy::global::NodeId;
use rand::Rng;

impl Cluster<'_> {
    /// A bystander stops, and another one goes on.
    pub(super) fn exchange(&mut self, now_ns: u64) -> Result<(), GmsError> {
        let mut drawn = [None; 2];
        for (is_paused, drawn) in [false, true].into_iter().zip(&mut drawn) {
            let is_candidate = |host: &Host| {
                let process = host.process.as_ref();
                process.is_some_and(|p| p.is_bystander() && p.is_paused == is_paused)
            };
            let numbered = || (0..).zip(&self.hosts);
            let ids: Vec<NodeId> = numbered()
                .filter(|&(_, host)| is_candidate(host))
                .map(|(id, _)| id)
                .collect();
            let count = (ids.len() as u64).max(1);
            let at = (u64::from(self.surroundings.next_u32()) * count) >> 32;
            *drawn = ids.get(at as usize).copied();
        }
        if let [Some(stops), Some(begins)] = drawn {
            self.pause(stops, true);
            self.pause(begins, false);
            let process = self.hosts[begins as usize].process.as_ref();
            if process.is_some_and(|process| process.is_parked) {
                self.resume(begins, now_ns)?;
            }
        }
        let interval_ns = u64::from(self.scenario.exchange_ms) * MS;
        self.queue.put(now_ns + interval_ns, Scheduled::Exchange);
        Ok(())
    }

    fn pause(&mut self, id: NodeId, is_paused: bool) {
        if let Some(process) = &mut self.hosts[id as usize].process {
            process.is_paused = is_paused;
        }
    }
}
