//! Outcome of a simulation.

use super::scenario::Scenario;
use serde::{Deserialize, Serialize};

/// Outcome of a simulation of one program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario as simulated.
    pub scenario: Scenario,
    /// Mean time of a run without remote memory.
    pub without_run_ns: u64,
    /// Mean time of a run with infinite remote memory that is never reclaimed, over a network that takes no time.
    pub ideal_run_ns: u64,
    /// Mean time of a run on the cluster, of those that ended.
    pub run_ns: u64,
    /// Without remote memory, over on the cluster.
    pub speedup: f64,
    /// Without remote memory, over the ideal.
    pub ideal_speedup: f64,
    /// (speedup − 1) / (ideal speedup − 1): the share of the possible gain. Absent where none is possible.
    pub gain_share: Option<f64>,
    /// Runs that ended, in order.
    pub runs: Vec<Run>,
    /// Requests of them and of the one that did not.
    pub counts: Counts,
    /// Fates of regions.
    pub regions: Regions,
    /// Cost to the owners.
    pub owners: Owners,
    /// Speedup by hour since the begin (Figure 8), of hours in which the program ran.
    pub hours: Vec<Hour>,
}

/// Outcome of several clients at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedOutcome {
    /// The scenario as simulated.
    pub scenario: Scenario,
    /// Each of them, in their order.
    pub clients: Vec<ClientOutcome>,
    /// Requests of all.
    pub counts: Counts,
    /// Fates of the regions of all.
    pub regions: Regions,
    /// Cost to the owners.
    pub owners: Owners,
}

/// Outcome of one client of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientOutcome {
    /// Name of the client.
    pub name: String,
    /// The host that it works on, if any.
    pub host_id: Option<String>,
    /// Begin of its program, since the simulation's begin.
    pub begin_ns: u64,
    /// The last request's answer; absent where the simulation was over before.
    pub end_ns: Option<u64>,
    /// Time that the same takes without remote memory.
    pub without_ns: u64,
    /// Time with infinite remote memory that is never reclaimed, over a network that takes no time. Nothing is there
    /// at first, so that it may be longer than without.
    pub ideal_ns: u64,
    /// Without remote memory, over on the cluster; absent where it has not ended.
    pub speedup: Option<f64>,
    /// Its requests. One that is not answered when the simulation is over is not among local, remote and disk.
    pub counts: Counts,
}

/// A run of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Begin, since the simulation's begin.
    pub begin_ns: u64,
    /// The last request's answer.
    pub end_ns: u64,
}

impl Run {
    /// Time that the run took.
    #[must_use]
    pub const fn ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// Requests by the place that answered. Local, remote and disk sum to all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests that were made.
    pub requests: u64,
    /// Answered by the client's own memory.
    pub local: u64,
    /// Answered by hosts.
    pub remote: u64,
    /// Answered by disks; writes, which always go there, are among them.
    pub disk: u64,
    /// Bytes that hosts answered with.
    pub remote_bytes: u64,
    /// Bytes that disks read or wrote, for whole regions too.
    pub disk_bytes: u64,
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            requests: sum.requests + one.requests,
            local: sum.local + one.local,
            remote: sum.remote + one.remote,
            disk: sum.disk + one.disk,
            remote_bytes: sum.remote_bytes + one.remote_bytes,
            disk_bytes: sum.disk_bytes + one.disk_bytes,
        })
    }
}

/// Fates of regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regions {
    /// Regions given to hosts.
    pub stored: u64,
    /// Deleted by the program at a run's end, or replaced.
    pub deleted: u64,
    /// Gone because an owner returned, or the load did.
    pub reclaimed: u64,
    /// Gone because a host was off, or unseen.
    pub unseen: u64,
    /// Dropped by idle hosts that needed a part of their memory.
    pub shrunk: u64,
    /// Given up by the client because another one of the same host was gone.
    pub given_up: u64,
    /// Times that the client found a region gone.
    pub failed_accesses: u64,
    /// Times that the manager found no host.
    pub refusals: u64,
    /// Memory that the hosts could have lent, over time.
    pub mean_lendable_bytes: f64,
    /// Memory that they lent.
    pub mean_leased_bytes: f64,
}

/// Cost to the owners (Table 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Owners {
    /// Number of hosts.
    pub hosts: u64,
    /// Hosts, times days.
    pub host_days: f64,
    /// Recruited hosts that owner or load came back to, with or without guests.
    pub returns: u64,
    /// Returns to hosts with guests.
    pub reclaims: u64,
    /// Reclaims per host and day.
    pub reclaims_per_host_day: f64,
    /// Mean guest memory of a reclaim.
    pub mean_guest_bytes: Option<f64>,
    /// Reclaims with a known memory context; the figures below are of these.
    pub memory_contexts: u64,
    /// Mean memory context size.
    pub mean_memory_context_bytes: Option<f64>,
    /// Median memory context size.
    pub median_memory_context_bytes: Option<u64>,
    /// Its 99th percentile.
    pub p99_memory_context_bytes: Option<u64>,
    /// Largest memory context size.
    pub max_memory_context_bytes: Option<u64>,
    /// Reclaims with a memory context above 0.
    pub reclaims_with_memory_context: u64,
    /// Mean of the loose upper bound.
    pub mean_upper_bound_bytes: Option<f64>,
    /// **Estimated**: how long paging in a memory context would take, at most: each part that is read at once has a seek and half a turn of
    /// its own, and nothing overlaps. Its mean.
    pub mean_owner_delay_ns: Option<f64>,
    /// Its 99th percentile.
    pub p99_owner_delay_ns: Option<u64>,
    /// Sum of the delays, in seconds per host and day.
    pub owner_delay_s_per_host_day: Option<f64>,
}

/// Figures of one hour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hour {
    /// Number of the hour since the simulation's begin.
    pub hour: u64,
    /// Mean over the time in it of the speedups of the runs then.
    pub speedup: f64,
}
