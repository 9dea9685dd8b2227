//! Recorded hosts: their frames change as their owners come and go, and the CPU time of global memory on hosts in use
//! is counted.

use super::{Cluster, Scheduled};
use crate::gms::error::GmsError;
use crate::gms::outcome::OwnersOutcome;
use crate::gms::recorded::HostState;
use crate::gms::scenario::Scenario;
use gleaner_policy::global::NodeId;
use gleaner_policy::global::message::Event;

/// Recorded hosts of a running cluster; empty without recorded hosts.
#[derive(Debug, Default)]
pub(super) struct Owners {
    nodes: Vec<OwnerNode>,
    outcome: OwnersOutcome,
}

/// A recorded host.
#[derive(Clone, Debug, Default)]
struct OwnerNode {
    /// Number of the next state.
    next_step: u32,
    /// Begin of the use, and CPU time of the kernel then; absent while the host is not in use.
    in_use: Option<(u64, u64)>,
}

impl Owners {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let count = match scenario.hosts {
            Some(_) => scenario.idle_nodes as usize,
            None => 0,
        };
        Self {
            nodes: vec![OwnerNode::default(); count],
            outcome: OwnersOutcome::default(),
        }
    }
}

impl Cluster<'_> {
    /// Length of the recorded time, if the nodes are recorded hosts.
    pub(super) fn recorded_ns(&self) -> Option<u64> {
        let hosts = self.scenario.hosts.as_ref();
        hosts.map(|hosts| hosts.length_ns())
    }

    /// Brings every recorded host into its first state.
    pub(super) fn begin_owners(&mut self) -> Result<(), GmsError> {
        for node in 0..self.owners.nodes.len() as u32 {
            self.change_owner(node, 0)?;
        }
        Ok(())
    }

    /// Brings a recorded host into its next state, and schedules the state after it.
    pub(super) fn change_owner(&mut self, node: u32, now_ns: u64) -> Result<(), GmsError> {
        let scenario = self.scenario;
        let (Some(hosts), Some(owner)) =
            (&scenario.hosts, self.owners.nodes.get_mut(node as usize))
        else {
            return Ok(());
        };
        let step = owner.next_step;
        owner.next_step += 1;
        let Some(state) = hosts.state(node, step) else {
            return Ok(());
        };
        self.count_use(node, state, now_ns);
        let id = scenario.clients + node;
        let before = self.pages_count(id);
        self.step(id, &Event::Frames(state.frames), now_ns)?;
        let after = self.pages_count(id);
        self.owners.outcome.reclaimed_pages += u64::from(before.saturating_sub(after));
        if let Some(next) = hosts.state(node, step + 1) {
            self.queue.put(next.at_ns, Scheduled::Owner(node));
        }
        Ok(())
    }

    /// Counts the time and the kernel's CPU time of a host's use that begins or ends.
    fn count_use(&mut self, node: u32, state: HostState, now_ns: u64) {
        let kernel_ns = self.kernel_ns(node);
        let Owners { nodes, outcome } = &mut self.owners;
        let Some(owner) = nodes.get_mut(node as usize) else {
            return;
        };
        match (owner.in_use, state.is_in_use) {
            (None, true) => {
                // A host that is in use at the begin has not returned.
                outcome.returns += u64::from(now_ns > 0);
                owner.in_use = Some((now_ns, kernel_ns));
            }
            (Some(since), false) => {
                count(outcome, since, (now_ns, kernel_ns));
                owner.in_use = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    fn pages_count(&self, id: NodeId) -> u32 {
        let host = self.hosts.get(id as usize);
        host.map_or(0, |host| host.node.pages().len())
    }

    fn kernel_ns(&self, node: u32) -> u64 {
        let host = self.hosts.get((self.scenario.clients + node) as usize);
        host.map_or(0, |host| host.machine.kernel_ns)
    }

    /// Effects on the owners until the end of the run; `None` if the nodes are no recorded hosts.
    pub(super) fn owners_outcome(&self, end_ns: u64) -> Option<OwnersOutcome> {
        self.scenario.hosts.as_ref()?;
        let mut outcome = self.owners.outcome;
        for (node, owner) in (0..).zip(&self.owners.nodes) {
            if let Some(since) = owner.in_use {
                count(&mut outcome, since, (end_ns, self.kernel_ns(node)));
            }
        }
        Some(outcome)
    }
}

/// Adds a use between two times, each with the kernel's CPU time.
fn count(outcome: &mut OwnersOutcome, begin: (u64, u64), end: (u64, u64)) {
    outcome.in_use_ns += end.0.saturating_sub(begin.0);
    outcome.in_use_kernel_ns += end.1.saturating_sub(begin.1);
}
