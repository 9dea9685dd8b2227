//! Findings of the analysis: typed results, one JSON document.
//!
//! Under each measure's own key stands a list of flat records with units in their names, so that
//! any reader of JSON makes a table of it. A measure that the dataset cannot give is in
//! `not_measured`, with the reason, rather than a list of zeroes.

mod cluster;
mod consumers;
mod explanation;
mod finding;
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
pub use finding::{
    Declaration, Finding, FindingList, FindingVisitor, HostFields, ReportUse, TablePlace,
};
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

/// Declares the lists of the findings: the struct, and [`FindingList`] for the type of each list's records, whose [`Finding`]
/// says the rest.
macro_rules! findings {
    ($($(#[$meta:meta])+ $list:ident: $record:ident,)+) => {
        /// Everything found in one dataset.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
        #[serde(default)]
        pub struct Findings {
            /// Version of this document's form.
            #[cfg_attr(feature = "json-schema", schemars(extend("const" = FINDINGS_VERSION)))]
            pub findings_version: u32,
            /// Parameters of the analysis: every threshold that the figures rest on.
            pub parameters: Parameters,
            $($(#[$meta])+ pub $list: Vec<$record>,)+
        }

        $(impl FindingList for $record {
            const KEY: &'static str = stringify!($list);

            fn list(findings: &Findings) -> &[Self] {
                &findings.$list
            }

            fn list_mut(findings: &mut Findings) -> &mut Vec<Self> {
                &mut findings.$list
            }
        })+

        impl Findings {
            /// Declarations of all lists, in the order of the document.
            pub const DECLARATIONS: &'static [Declaration] = &[$(Declaration::of::<$record>()),+];

            /// Visits every list, in the order of the document.
            pub fn visit(visitor: &mut impl FindingVisitor) {
                $(visitor.visit::<$record>();)+
            }

            /// Adds the records of other findings to each list.
            pub fn append(&mut self, more: Self) {
                $(self.$list.extend(more.$list);)+
            }
        }
    };
}

findings! {
    /// The hosts, in order of their names.
    hosts: HostSummary,
    /// Traces of other programs that hosts were imported from.
    #[serde(default)]
    sources: TraceSource,
    /// Use of memory by category: mean and deviation over samples (Acharya & Setia, Table 2).
    memory_usage: MemoryUsage,
    /// The same by host.
    memory_by_host: HostMemory,
    /// Memory over time, by host (Figures 4 and 5).
    memory_over_time: MemoryPoint,
    /// Sample intervals in which available memory fell below a threshold (Table 3).
    dips: Dip,
    /// On how many hosts it did so how often (Table 3 as the paper prints it).
    dip_hosts: DipHosts,
    /// The deepest dips of each host, and what took the memory.
    worst_dips: WorstDip,
    /// Programs that ran then.
    dip_processes: DipProcess,
    /// Use of memory by hour of the week, in the fleet's time zone.
    memory_usage_by_hour: MemoryUsageByHour,
    /// Dips by hour of the week.
    dips_by_hour: DipsByHour,
    /// Idleness of hosts, by hour of the week.
    idle_by_hour: IdleByHour,
    /// Probability that regions are available, and stay so for an hour, by hour of the week.
    availability_by_hour: AvailabilityByHour,
    /// Rate at which lent memory would be taken back, by hour of the week.
    reclaims_by_hour: ReclaimsByHour,
    /// Time that regions stay available (Table 4).
    availability_periods: AvailabilityPeriods,
    /// Share of the periods that last longer than each age (Kaplan-Meier).
    survival_curves: SurvivalPoint,
    /// Causes that end periods, by age.
    period_ends: PeriodEnds,
    /// Probability that memory available now still is some time later.
    availability_odds: AvailabilityOdds,
    /// Least length of periods.
    period_bounds: PeriodBound,
    /// Memory by each notion of available, side by side, and the cost of lending it.
    notions: NotionSizes,
    /// Memory of all hosts together over time (Figure 6).
    cluster_over_time: ClusterPoint,
    /// Memory that the hosts have available together.
    cluster_available: ClusterAvailable,
    /// Memory over time by class of hosts (Figure 4).
    class_over_time: ClassPoint,
    /// Hosts that have the available memory, by class (Figure 7).
    contribution_by_class: ClassContribution,
    /// The same by hosts, those that give most first.
    contribution_by_rank: RankContribution,
    /// Bytes that the hosts have together for a time, with a probability.
    guaranteed: Guaranteed,
    /// Fates of copies of a region on several hosts.
    copies: Copies,
    /// Owners that come back at once, by hour of the week.
    returns_by_hour: ReturnsByHour,
    /// The moments at which most memory was taken back.
    worst_returns: WorstReturn,
    /// Memory that hosts which share theirs could do without.
    pooling: Pooling,
    /// Periods in which owners were away.
    idle_periods: IdlePeriod,
    /// Times that owners are away, and times that they are there.
    absence_lengths: AbsenceLengths,
    /// Rate at which lent memory would be taken back, by host and pooled.
    reclaims: Reclaims,
    /// Page cache of files that are used again soon.
    live_file_cache: LiveFileCache,
    /// Memory that would have to be paged in again at returns, had memory been lent (Table 6), by host and pooled.
    memory_context: MemoryContext,
    /// Cost of returns, as the kernel measured it.
    owner_cost: OwnerCost,
    /// Memory that could be leased at the trace's last sample.
    quotas: Quota,
    /// Probability that regions stay available, from each host's last sample on.
    forecasts: Forecast,
    /// Quality of such forecasts on days that they had not seen, beside simple ones.
    forecast_quality: ForecastQuality,
    /// Calibration of the forecasts: a forecast with some probability should come true with that frequency.
    forecast_calibration: ForecastCalibration,
    /// Base of the forecasts: fates of regions by their state,
    forecast_table: ForecastCell,
    /// what each host does by time of the week,
    forecast_habits: ForecastHabit,
    /// and how much either counts.
    forecast_weights: ForecastWeight,
    /// Size of these three.
    forecast_table_size: ForecastTableSize,
    /// Effects of other limits: memory gained against the owners' cost.
    what_if: WhatIf,
    /// The names behind the use: active processes, largest first.
    top_processes: TopProcess,
    /// The files that hold most page cache, largest first.
    top_files: TopFile,
    /// Times without samples.
    gaps: Gap,
    /// Items that could not be read, and the reasons.
    absences: Absence,
    /// Each source of the owner's activity, and how often it could be read.
    activity_sources: ActivitySource,
    /// Difference of the two ways to count available memory.
    residuals: Residual,
    /// Cost of tracing to the hosts.
    agent_cost: AgentCost,
    /// Measures that this dataset cannot give.
    not_measured: NotMeasured,
}

impl Findings {
    /// The keys of the measures, sorted.
    #[must_use]
    pub fn keys() -> Vec<String> {
        Self::keys_where(|_| true)
    }

    /// The keys of the measures of which that is true, sorted.
    #[must_use]
    pub fn keys_where(is_meant: impl Fn(&Declaration) -> bool) -> Vec<String> {
        let meant = Self::DECLARATIONS.iter().filter(|about| is_meant(about));
        let mut keys: Vec<String> = meant.map(|about| about.key.to_owned()).collect();
        keys.sort_unstable();
        keys
    }

    /// Dips below thresholds in bytes, which are the same on every host.
    pub fn absolute_dips(&self) -> impl Iterator<Item = &Dip> {
        self.dips.iter().filter(|d| d.threshold_share.is_none())
    }
}
