//! Findings of the analysis: typed results, one JSON document.
//!
//! Each measure's key has a list of flat records with units in the fields' names, so that any reader of JSON
//! can make a table of it. A measure that the dataset cannot give is in `missing_measures`, with the reason,
//! instead of being a list of zeroes.

mod by_host;
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

pub use by_host::{FindingsDocument, RecordFile, RecordFiles, take_records_of_hosts};
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

/// Version of the form of the findings and of the explanation; independent of the version of the data.
///
/// Keys and fields may be added at any time. The version rises if a key or field is removed, renamed or given
/// another meaning.
pub const FINDINGS_VERSION: u32 = 1;

/// Declares the lists of the findings: the struct, and [`FindingList`] for the type of each list's records.
/// That type's [`Finding`] declares the rest.
macro_rules! findings {
    ($($(#[$meta:meta])+ $list:ident: $record:ident,)+) => {
        /// All findings of one dataset.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
        #[serde(default)]
        pub struct Findings {
            /// Version of this document's form.
            #[cfg_attr(feature = "json-schema", schemars(extend("const" = FINDINGS_VERSION)))]
            pub findings_version: u32,
            /// Parameters of the analysis: every threshold from which the figures are computed.
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
    /// Traces of other programs from which hosts were imported.
    #[serde(default)]
    sources: TraceSource,
    /// Use of memory by category: mean and deviation over samples (Acharya & Setia, Table 2).
    memory_usage: MemoryUsage,
    /// Use of memory by category, for each host.
    memory_by_host: HostMemory,
    /// Memory over time, by host (Figures 4 and 5).
    memory_over_time: MemoryPoint,
    /// Sample intervals with less available memory than a threshold (Table 3).
    dips: Dip,
    /// Number of hosts by number of such intervals (Table 3 as the paper prints it).
    dip_hosts: DipHosts,
    /// The deepest dips of each host, and the categories of memory in them.
    worst_dips: WorstDip,
    /// Programs that ran in the deepest dips.
    dip_processes: DipProcess,
    /// Use of memory by hour of the week, in the fleet's time zone.
    memory_usage_by_hour: MemoryUsageByHour,
    /// Dips by hour of the week.
    dips_by_hour: DipsByHour,
    /// Idleness of hosts, by hour of the week.
    idle_by_hour: IdleByHour,
    /// Probability that regions are available, and remain so for an hour, by hour of the week.
    availability_by_hour: AvailabilityByHour,
    /// Rate at which lent memory would be reclaimed, by hour of the week.
    reclaims_by_hour: ReclaimsByHour,
    /// Time for which regions stay available (Table 4).
    availability_periods: AvailabilityPeriods,
    /// Share of the periods that last longer than each age (Kaplan-Meier).
    survival_curves: SurvivalPoint,
    /// Share of the periods that each cause has ended, by age.
    period_ends: PeriodEnds,
    /// Probability that memory available now is still available some time later.
    availability_odds: AvailabilityOdds,
    /// Lower bounds of the length of periods, with a given confidence.
    period_bounds: PeriodBound,
    /// Memory by each notion of available, side by side, and the cost of lending it.
    notions: NotionSizes,
    /// Memory of all hosts together over time (Figure 6).
    cluster_over_time: ClusterPoint,
    /// Memory that the hosts have available together.
    cluster_available: ClusterAvailable,
    /// Memory over time by class of hosts (Figure 4).
    class_over_time: ClassPoint,
    /// Share of the available memory that each class of hosts provides (Figure 7).
    contribution_by_class: ClassContribution,
    /// Share of the available memory that the hosts with the largest contributions provide.
    contribution_by_rank: RankContribution,
    /// Bytes that the hosts together keep for a given time, with a probability.
    guarantees: Guarantee,
    /// Probabilities of losing copies of a region on several hosts.
    copies: Copies,
    /// Owners who return in the same cell of time, by hour of the week.
    returns_by_hour: ReturnsByHour,
    /// The moments at which most memory would have been reclaimed.
    worst_returns: WorstReturn,
    /// Memory that hosts could save by sharing their memory.
    pooling: PoolingSaving,
    /// Periods in which owners were away.
    idle_periods: IdlePeriod,
    /// Lengths of owners' absences, and of their presences.
    owner_period_lengths: OwnerPeriodLengths,
    /// Rate at which lent memory would be reclaimed, by host and pooled.
    reclaims: Reclaims,
    /// Page cache of files that are used again soon.
    live_file_cache: LiveFileCache,
    /// Memory that would have to be paged in again at returns, had memory been lent (Table 6), by host and
    /// pooled.
    memory_context: MemoryContext,
    /// Cost of returns, as the kernel measured it.
    owner_cost: OwnerCost,
    /// Memory that could be leased at the trace's last sample.
    quotas: Quota,
    /// Probability that regions remain available, starting at each host's last sample.
    forecasts: Forecast,
    /// Quality of the forecasts on days from which they had not learnt, compared with simple models.
    forecast_quality: ForecastQuality,
    /// Calibration of the forecasts: a forecast with a given probability should come true with that
    /// frequency.
    forecast_calibration: ForecastCalibration,
    /// Lookup table of the forecasts: fates of regions by state on all hosts.
    forecast_table: ForecastCell,
    /// Lookup table of the forecasts: fates of regions on each host, by time of the week or by state.
    forecast_habits: ForecastHabit,
    /// Weights and spread with which the two lookup tables are combined.
    forecast_weights: ForecastWeight,
    /// Size of the three lists of the forecasts above.
    forecast_table_size: ForecastTableSize,
    /// Effects of other settings of the limits: memory gained, and the cost to owners.
    what_if: WhatIf,
    /// Names of the programs that use most memory: active processes, largest first.
    top_processes: TopProcess,
    /// The files that hold most page cache, largest first.
    top_files: TopFile,
    /// Times without samples.
    gaps: Gap,
    /// Items that could not be read, with the reasons.
    missing_values: MissingValue,
    /// Each source of the owner's activity, with the number of samples in each of its states.
    activity_sources: ActivitySource,
    /// Difference between the two counts of available memory.
    residuals: Residual,
    /// Cost of tracing on each host.
    agent_cost: AgentCost,
    /// Measures that this dataset cannot give.
    missing_measures: MissingMeasure,
}

impl Findings {
    /// Returns the keys of all measures, sorted.
    #[must_use]
    pub fn keys() -> Vec<String> {
        Self::keys_where(|_| true)
    }

    /// Returns the keys of the measures whose declaration satisfies `is_meant`, sorted.
    #[must_use]
    pub fn keys_where(is_meant: impl Fn(&Declaration) -> bool) -> Vec<String> {
        let meant = Self::DECLARATIONS.iter().filter(|about| is_meant(about));
        let mut keys: Vec<String> = meant.map(|about| about.key.to_owned()).collect();
        keys.sort_unstable();
        keys
    }

    /// Returns the dips below thresholds in bytes, which are the same on every host.
    pub fn absolute_dips(&self) -> impl Iterator<Item = &Dip> {
        self.dips.iter().filter(|d| d.threshold_share.is_none())
    }
}
