//! What the analysis finds: typed results, one JSON document.
//!
//! Under each measure's own key stands a list of flat records with units in their names, so that
//! any reader of JSON makes a table of it. A measure that the dataset cannot give is in
//! `not_measured`, with the reason, rather than a list of zeroes.

mod cluster;
mod consumers;
mod explanation;
mod forecasts;
mod host;
mod hours;
mod memory;
mod owner;
mod parameters;
mod periods;
mod what_if;

pub use cluster::*;
pub use consumers::*;
pub use explanation::*;
pub use forecasts::*;
pub use host::*;
pub use hours::*;
pub use memory::*;
pub use owner::*;
pub use parameters::*;
pub use periods::*;
use serde::{Deserialize, Serialize};
pub use what_if::*;

/// Version of the form of the findings and of the explanation, which is not that of the data.
///
/// Keys and fields may be added at any time. One that is taken away, renamed or given another meaning raises it.
pub const FINDINGS_VERSION: u32 = 1;

/// Everything found in one dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Findings {
    /// Version of this document's form.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = FINDINGS_VERSION)))]
    pub findings_version: u32,
    /// What was asked: every threshold that the figures rest on.
    pub parameters: Parameters,
    /// The hosts, in order of their names.
    pub hosts: Vec<HostSummary>,
    /// Traces of other programs that hosts were imported from.
    #[serde(default)]
    pub sources: Vec<TraceSource>,
    /// Use of memory by category: mean and deviation over samples (Acharya & Setia, Table 2).
    pub memory_usage: Vec<MemoryUsage>,
    /// The same by host.
    pub memory_by_host: Vec<HostMemory>,
    /// Memory over time, by host (Figures 4 and 5).
    pub memory_over_time: Vec<MemoryPoint>,
    /// Sample intervals in which available memory fell below a threshold (Table 3).
    pub dips: Vec<Dip>,
    /// On how many hosts it did so how often (Table 3 as the paper prints it).
    pub dip_hosts: Vec<DipHosts>,
    /// The deepest dips of each host, and what took the memory.
    pub worst_dips: Vec<WorstDip>,
    /// What ran then.
    pub dip_processes: Vec<DipProcess>,
    /// Use of memory by hour of the week, in the fleet's time zone.
    pub memory_usage_by_hour: Vec<MemoryUsageByHour>,
    /// Dips by hour of the week.
    pub dips_by_hour: Vec<DipsByHour>,
    /// When hosts are idle, by hour of the week.
    pub idle_by_hour: Vec<IdleByHour>,
    /// Whether regions are available, and stay so for an hour, by hour of the week.
    pub availability_by_hour: Vec<AvailabilityByHour>,
    /// How often what was lent would be taken back, by hour of the week.
    pub reclaims_by_hour: Vec<ReclaimsByHour>,
    /// How long regions stay available (Table 4).
    pub availability_periods: Vec<AvailabilityPeriods>,
    /// Share of the periods that last longer than each age (Kaplan-Meier).
    pub survival_curves: Vec<SurvivalPoint>,
    /// What ends periods, by age.
    pub period_ends: Vec<PeriodEnds>,
    /// Whether what is available now is so still some time later.
    pub availability_odds: Vec<AvailabilityOdds>,
    /// How long periods last at least.
    pub period_bounds: Vec<PeriodBound>,
    /// How much there is by each notion of available, side by side, and what lending it would cost.
    pub notions: Vec<NotionSizes>,
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
    /// How long owners are away, and how long there.
    pub absence_lengths: Vec<AbsenceLengths>,
    /// How often what was lent would be taken back, by host and pooled.
    pub reclaims: Vec<Reclaims>,
    /// Page cache of files that are used again soon.
    pub live_file_cache: Vec<LiveFileCache>,
    /// What would have to be paged in again at returns, had memory been lent (Table 6), by host and pooled.
    pub memory_context: Vec<MemoryContext>,
    /// What returns cost, as the kernel measured it.
    pub owner_cost: Vec<OwnerCost>,
    /// What could be leased at the trace's last sample.
    pub quotas: Vec<Quota>,
    /// How likely regions are to stay available, from each host's last sample on.
    pub forecasts: Vec<Forecast>,
    /// How good such forecasts were on days that they had not seen, beside simple ones.
    pub forecast_quality: Vec<ForecastQuality>,
    /// Whether what was forecast with some probability happened as often.
    pub forecast_calibration: Vec<ForecastCalibration>,
    /// What forecasts come from: what became of regions by their state,
    pub forecast_table: Vec<ForecastCell>,
    /// what each host does by time of the week,
    pub forecast_habits: Vec<ForecastHabit>,
    /// and how much either counts.
    pub forecast_weights: Vec<ForecastWeight>,
    /// What these three take.
    pub forecast_table_size: Vec<ForecastTableSize>,
    /// What other limits would give: memory gained against the owners' cost.
    pub what_if: Vec<WhatIf>,
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
    /// The keys of the measures, sorted.
    #[must_use]
    pub fn keys() -> Vec<String> {
        let Ok(serde_json::Value::Object(all)) = serde_json::to_value(Self::default()) else {
            return Vec::new(); // a struct of lists is an object
        };
        let lists = all.into_iter().filter(|(_, value)| value.is_array());
        lists.map(|(key, _)| key).collect()
    }

    /// Dips below thresholds in bytes, which are the same on every host.
    pub fn absolute_dips(&self) -> impl Iterator<Item = &Dip> {
        self.dips.iter().filter(|d| d.threshold_share.is_none())
    }
}
