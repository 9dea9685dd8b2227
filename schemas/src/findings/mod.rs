//! What the analysis finds: typed results, one JSON document.
//!
//! Under each measure's own key stands a list of flat records with units in their names, so that
//! any reader of JSON makes a table of it. A measure that the dataset cannot give is in
//! `not_measured`, with the reason, rather than a list of zeroes.

mod cluster;
mod consumers;
mod host;
mod memory;
mod owner;
mod parameters;
mod periods;

pub use cluster::*;
pub use consumers::*;
pub use host::*;
pub use memory::*;
pub use owner::*;
pub use parameters::*;
pub use periods::*;
use serde::{Deserialize, Serialize};

/// Everything found in one dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Findings {
    /// Version of this document's form.
    pub schema_version: u32,
    /// What was asked: every threshold that the figures rest on.
    pub parameters: Parameters,
    /// The hosts, in order of their names.
    pub hosts: Vec<HostSummary>,
    /// Use of memory by category: mean and deviation over samples (Acharya & Setia, Table 2).
    pub memory_usage: Vec<MemoryUsage>,
    /// Memory over time, by host (Figures 4 and 5).
    pub memory_over_time: Vec<MemoryPoint>,
    /// Sample intervals in which available memory fell below a threshold (Table 3).
    pub dips: Vec<Dip>,
    /// How long regions stay available (Table 4).
    pub availability_periods: Vec<AvailabilityPeriods>,
    /// All hosts together over time (Figure 6).
    pub cluster_over_time: Vec<ClusterPoint>,
    /// How much the hosts have available together.
    pub cluster_available: Vec<ClusterAvailable>,
    /// Memory over time by class of hosts (Figure 4).
    pub class_over_time: Vec<ClassPoint>,
    /// Which hosts' memory the available memory is, by class (Figure 7).
    pub contribution_by_class: Vec<ClassContribution>,
    /// The same by hosts, those that give most first.
    pub contribution_by_rank: Vec<RankContribution>,
    /// How many bytes the hosts have together for how long, with what probability.
    pub guaranteed: Vec<Guaranteed>,
    /// What becomes of copies of a region on several hosts.
    pub copies: Vec<Copies>,
    /// How many owners come back at once, by hour of the week.
    pub returns_by_hour: Vec<ReturnsByHour>,
    /// The moments at which most memory was taken back.
    pub worst_returns: Vec<WorstReturn>,
    /// What hosts that share their memory could do without.
    pub pooling: Vec<Pooling>,
    /// When owners were away.
    pub idle_periods: Vec<IdlePeriod>,
    /// What could be leased at the trace's last sample.
    pub quotas: Vec<Quota>,
    /// The names behind the use: active processes, largest first.
    pub top_processes: Vec<TopProcess>,
    /// The files that hold most page cache, largest first.
    pub top_files: Vec<TopFile>,
    /// Times without samples.
    pub gaps: Vec<Gap>,
    /// What could not be read, and why.
    pub absences: Vec<Absence>,
    /// Each source of the owner's activity and how it did.
    pub activity_sources: Vec<ActivitySource>,
    /// How far the two ways to count available memory differ.
    pub residuals: Vec<Residual>,
    /// What tracing cost the hosts.
    pub agent_cost: Vec<AgentCost>,
    /// Measures that this dataset cannot give.
    pub not_measured: Vec<NotMeasured>,
}

impl Findings {
    /// Dips below thresholds in bytes, which are the same on every host.
    pub fn absolute_dips(&self) -> impl Iterator<Item = &Dip> {
        self.dips.iter().filter(|d| d.threshold_share.is_none())
    }
}
