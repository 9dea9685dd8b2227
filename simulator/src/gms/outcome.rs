//! Results of a simulation.

use super::programs::Program;
use gleaner_policy::global::message::Origin;
use serde::Serialize;

/// Reads of a program by the origin of their pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    /// Reads from the node's own local pages.
    pub local: u64,
    /// Reads of a global page on the node itself.
    pub own_global: u64,
    /// Reads from other nodes' memory.
    pub cluster: u64,
    /// Reads from disk or server.
    pub source: u64,
}

impl Reads {
    /// Counts a read.
    pub(super) fn count(&mut self, origin: Origin) {
        match origin {
            Origin::Local => self.local += 1,
            Origin::OwnGlobal => self.own_global += 1,
            Origin::Cluster => self.cluster += 1,
            Origin::Source => self.source += 1,
        }
    }

    /// Number of all reads.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.local + self.own_global + self.cluster + self.source
    }

    /// Reads since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            local: self.local - before.local,
            own_global: self.own_global - before.own_global,
            cluster: self.cluster - before.cluster,
            source: self.source - before.source,
        }
    }
}

/// Counted part of a client's run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientOutcome {
    /// Program of the client.
    pub program: Program,
    /// Time of the counted references.
    pub elapsed_ns: u64,
    /// Reads of the counted part.
    pub reads: Reads,
}

/// Totals of the time in which all clients were in their counted parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// Length of that time.
    pub length_ns: u64,
    /// Bytes of all messages, pages included.
    pub network_bytes: u64,
    /// Bytes of the epochs' messages.
    pub epoch_bytes: u64,
    /// Messages with a page.
    pub page_transfers: u64,
    /// Pages that the first node with idle memory served or stored, per second.
    pub idle_operations_per_s: f64,
    /// Share of that node's CPU that the kernel used.
    pub idle_cpu_share: f64,
    /// Time of the bystanders over the time that their computing alone takes; absent without bystanders that ran
    /// for the whole time.
    pub bystander_slowdown: Option<f64>,
}

/// Messages of a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Bytes of all messages, pages included.
    pub network_bytes: u64,
    /// Bytes of the epochs' messages.
    pub epoch_bytes: u64,
    /// Messages with a page.
    pub page_transfers: u64,
}

/// Effects of global memory on the owners of recorded hosts, in a whole run. No page of an owner is ever displaced:
/// global memory has only frames that the host may lend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OwnersOutcome {
    /// Number of times that a host was in use again.
    pub returns: u64,
    /// Pages of global memory that were dropped because a host's frames became fewer.
    pub reclaimed_pages: u64,
    /// Time that hosts were in use, summed over hosts.
    pub in_use_ns: u64,
    /// CPU time that global memory used on hosts while they were in use.
    pub in_use_kernel_ns: u64,
}

impl OwnersOutcome {
    /// Share of the CPU that global memory used on hosts in use: programs of owners wait for that time. `None` if no
    /// host was in use.
    #[must_use]
    pub fn cpu_share(&self) -> Option<f64> {
        (self.in_use_ns > 0).then(|| self.in_use_kernel_ns as f64 / self.in_use_ns as f64)
    }
}

/// Results of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Clients, in order.
    pub clients: Vec<ClientOutcome>,
    /// Totals; absent if the clients' counted parts have no time in common.
    pub window: Option<Window>,
    /// Messages of the whole run.
    pub traffic: Traffic,
    /// Effects on the owners of recorded hosts; absent if the nodes are no recorded hosts.
    pub owners: Option<OwnersOutcome>,
    /// Epochs of the whole run.
    pub epochs: u64,
    /// Share of epochs that lasted 5 to 10 s among those that ended in the run; absent if none ended.
    pub usual_epochs_share: Option<f64>,
    /// Time of the last client's end.
    pub end_ns: u64,
    /// Events of the simulation.
    pub events: u64,
}

impl Outcome {
    /// Mean time of the clients.
    #[must_use]
    pub fn mean_elapsed_ns(&self) -> f64 {
        let sum: f64 = self.clients.iter().map(|c| c.elapsed_ns as f64).sum();
        sum / self.clients.len().max(1) as f64
    }
}
