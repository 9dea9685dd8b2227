//! Outcome of a simulation.

use super::scenario::Scenario;
use serde::{Deserialize, Serialize};

/// Outcome of a simulation of one program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario as simulated.
    pub scenario: Scenario,
    /// Mean time of a run without remote memory.
    pub baseline_run_ns: u64,
    /// Mean time of a run with infinite remote memory that is never reclaimed, over a network that takes no time.
    pub ideal_run_ns: u64,
    /// Mean time of the completed runs on the cluster.
    pub run_ns: u64,
    /// Time of a run without remote memory divided by the time of a run on the cluster.
    pub speedup: f64,
    /// Time of a run without remote memory divided by the ideal time.
    pub ideal_speedup: f64,
    /// Share of the possible gain: (speedup − 1) / (ideal speedup − 1). Absent if no gain is possible.
    pub gain_share: Option<f64>,
    /// Runs that ended, in order.
    pub runs: Vec<Run>,
    /// Requests of all runs, including one that did not end.
    pub counts: Counts,
    /// Numbers of regions, by what became of them.
    pub regions: Regions,
    /// Cost of lending to the hosts' owners.
    pub owners: Owners,
    /// Speedup in each hour since the begin (Figure 8); only hours in which the program ran.
    pub hours: Vec<Hour>,
}

/// Outcome of several concurrent clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedOutcome {
    /// The scenario as simulated.
    pub scenario: Scenario,
    /// Outcome of each client, in the clients' order.
    pub clients: Vec<ClientOutcome>,
    /// Requests of all clients.
    pub counts: Counts,
    /// Numbers of all clients' regions, by what became of them.
    pub regions: Regions,
    /// Cost of lending to the hosts' owners.
    pub owners: Owners,
}

/// Outcome of one client of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientOutcome {
    /// Name of the client.
    pub name: String,
    /// Id of the host that the client works on, if any.
    pub host_id: Option<String>,
    /// Begin of the client's program, since the simulation's begin.
    pub begin_ns: u64,
    /// Time of the last request's answer; absent if the simulation ended earlier.
    pub end_ns: Option<u64>,
    /// Time that the same requests take without remote memory.
    pub baseline_ns: u64,
    /// Time that the same requests take with infinite remote memory that is never reclaimed, over a network
    /// that takes no time. This memory is empty at first, so this time may exceed `baseline_ns`.
    pub ideal_ns: u64,
    /// Time without remote memory divided by the time on the cluster; absent if the client has not ended.
    pub speedup: Option<f64>,
    /// Requests of the client. A request that is unanswered at the simulation's end is not in local, remote
    /// or disk.
    pub counts: Counts,
}

/// A run of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Begin of the run, since the simulation's begin.
    pub begin_ns: u64,
    /// Time of the last request's answer.
    pub end_ns: u64,
}

impl Run {
    /// Time that the run took.
    #[must_use]
    pub const fn ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// Numbers of requests, by the place that answered; local, remote and disk sum to all answered requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of requests made.
    pub requests_count: u64,
    /// Requests answered by the client's own memory.
    pub local_requests_count: u64,
    /// Requests answered by hosts.
    pub remote_requests_count: u64,
    /// Requests answered by disks, including all writes.
    pub disk_requests_count: u64,
    /// Bytes of the hosts' answers.
    pub remote_bytes: u64,
    /// Bytes that disks read or wrote, including reads of whole regions.
    pub disk_bytes: u64,
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            requests_count: sum.requests_count + one.requests_count,
            local_requests_count: sum.local_requests_count + one.local_requests_count,
            remote_requests_count: sum.remote_requests_count + one.remote_requests_count,
            disk_requests_count: sum.disk_requests_count + one.disk_requests_count,
            remote_bytes: sum.remote_bytes + one.remote_bytes,
            disk_bytes: sum.disk_bytes + one.disk_bytes,
        })
    }
}

/// Numbers of regions, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regions {
    /// Regions stored on hosts.
    pub stored_count: u64,
    /// Regions deleted by the program at a run's end, or evicted.
    pub deleted_count: u64,
    /// Regions lost because the owner returned or the load rose.
    pub reclaimed_count: u64,
    /// Regions lost because a host was off, or not traced.
    pub lost_with_host_count: u64,
    /// Regions dropped by idle hosts that needed part of their memory.
    pub dropped_by_shrink_count: u64,
    /// Regions dropped by the client because another region on the same host was lost.
    pub dropped_by_client_count: u64,
    /// Number of times that the client found a region lost.
    pub failed_accesses: u64,
    /// Number of requests for which the manager found no host.
    pub refusals: u64,
    /// Mean over time of the memory that the hosts could have lent.
    pub mean_quota_bytes: f64,
    /// Mean over time of the memory that the hosts lent.
    pub mean_leased_bytes: f64,
}

/// Cost of lending to the hosts' owners (Table 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Owners {
    /// Number of hosts.
    pub hosts: u64,
    /// Number of hosts times days.
    pub host_days: f64,
    /// Number of times that the owner returned to a recruited host, or its load rose, with or without guest
    /// memory.
    pub returns: u64,
    /// Number of these returns to hosts with guest memory.
    pub reclaims: u64,
    /// Reclaims per host and day.
    pub reclaims_per_host_day: f64,
    /// Mean guest memory at a reclaim.
    pub mean_guest_bytes: Option<f64>,
    /// Number of reclaims with a known memory context; the following figures are for these reclaims.
    pub memory_contexts: u64,
    /// Mean memory context size.
    pub mean_memory_context_bytes: Option<f64>,
    /// Median memory context size.
    pub median_memory_context_bytes: Option<u64>,
    /// 99th percentile of the memory context size.
    pub p99_memory_context_bytes: Option<u64>,
    /// Largest memory context size.
    pub max_memory_context_bytes: Option<u64>,
    /// Number of reclaims with a memory context above 0.
    pub reclaims_with_memory_context: u64,
    /// Mean of the memory context's loose upper bound.
    pub mean_upper_bound_bytes: Option<f64>,
    /// **Estimated**: mean upper bound of the time to page in a memory context. Each part that is read at
    /// once has its own seek and half a rotation, and no two reads overlap.
    pub mean_owner_delay_ns: Option<f64>,
    /// 99th percentile of the delay.
    pub p99_owner_delay_ns: Option<u64>,
    /// Sum of the delays, in seconds per host and day; absent if there were reclaims but no known delay.
    pub owner_delay_s_per_host_day: Option<f64>,
}

/// Speedup of one hour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hour {
    /// Number of the hour since the simulation's begin.
    pub hour: u64,
    /// Mean speedup of the runs in this hour, weighted by their time in it.
    pub speedup: f64,
}
