//! Time for which regions of memory stay available (Acharya & Setia, Table 4), and the causes that end it.
//!
//! Two methods are used. *As seen*, the paper's method: a period ends where samples end, and is as long as it
//! was observed. *As a lease would have lasted*: an event that would have ended a lease ends the period, for
//! example a sleep, a silent agent or a lost network; a period that the trace itself cut lasted longer than
//! observed.

use super::finding::{Finding, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// Scope of figures: the part of the time that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole time.
    #[default]
    All,
    /// Only idle periods: an availability period also ends when the owner returns.
    Idle,
}

/// Notion of available memory: a definition of what is available.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Notion {
    /// Physical memory less all memory in use now, that is, memory that the owner does not use at this
    /// moment.
    #[default]
    Available,
    /// The paper's notion: `available` less the cache of files that are used again soon. Computed by
    /// lookahead; known where files were recorded and the owner's presence is known.
    Paper,
    /// Memory that could be taken now without paging out the owner's pages: MemAvailable less the headroom.
    Harvestable,
}

impl Notion {
    /// All notions, in the order of the declaration.
    pub const ALL: [Self; 3] = [Self::Available, Self::Paper, Self::Harvestable];
}

/// Cause that ends a lease of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// The owner returned (only in scope `idle`).
    Owner,
    /// The load rose to the limit (only in scope `idle`).
    Load,
    /// The host needed its memory: less memory is available than the region's size.
    Memory,
    /// The host slept, or was switched off or booted.
    SleepOrPower,
    /// The network failed: no record reached the collector, though the host was up.
    Network,
    /// The agent fell silent: stopped, or without CPU. Clients must treat that as the owner's return.
    Agent,
}

impl EndCause {
    /// All causes, in the order of the declaration.
    pub const ALL: [Self; 6] = [
        Self::Owner,
        Self::Load,
        Self::Memory,
        Self::SleepOrPower,
        Self::Network,
        Self::Agent,
    ];
}

/// Time for which regions of one size stay available, over the hosts of one class. Periods *as seen* end
/// where samples end; periods *counted as leases* end where a lease would have ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AvailabilityPeriods {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Notion of available memory.
    pub notion: Notion,
    /// Size of the region.
    pub region_bytes: i64,
    /// Number of periods as seen that are not shorter than the minimum.
    pub periods_count: i64,
    /// Number of those periods that a gap or an end of the trace cut: they lasted longer than observed.
    pub censored_count: i64,
    /// Mean length of the periods as seen; absent without any.
    pub mean_s: Option<f64>,
    /// Lower limit of the 95 % interval of `mean_s`, by bootstrap over hosts; absent with fewer than two
    /// hosts.
    pub mean_low_s: Option<f64>,
    /// Upper limit of the 95 % interval of `mean_s`; absent with fewer than two hosts.
    pub mean_high_s: Option<f64>,
    /// 5 % quantile of the lengths as seen.
    pub p5_s: Option<f64>,
    /// Median length as seen.
    pub median_s: Option<f64>,
    /// 95 % quantile of the lengths as seen.
    pub p95_s: Option<f64>,
    /// Maximum length as seen.
    pub longest_s: Option<f64>,
    /// Kaplan-Meier mean of the periods, counted as leases, restricted to their longest length. A period whose
    /// start or end the trace cut counts as longer than observed.
    pub restricted_mean_s: Option<f64>,
    /// Lower limit of the 95 % interval of `restricted_mean_s`, by Greenwood's formula, which assumes
    /// independent periods.
    pub restricted_mean_low_s: Option<f64>,
    /// Upper limit of the 95 % interval of `restricted_mean_s`.
    pub restricted_mean_high_s: Option<f64>,
    /// Age that half the periods outlast, by the same Kaplan-Meier curve; absent where the curve does not
    /// fall to half.
    pub median_survival_s: Option<f64>,
    /// Like `restricted_mean_s`, of only the periods with an observed start. A period with a cut start is
    /// likely to be long, and its age is unknown: counting such periods makes `restricted_mean_s` too long,
    /// the more so the fewer periods a trace has.
    pub restricted_mean_start_seen_s: Option<f64>,
    /// Number of periods, counted as leases, whose start the trace cut.
    pub start_censored_count: i64,
    /// Number of periods, counted as leases, whose end the trace cut.
    pub end_censored_count: i64,
    /// Number of periods, counted as leases, that were ended by the owner's return.
    pub ended_by_owner_count: i64,
    /// Number of periods, counted as leases, that were ended by the load.
    pub ended_by_load_count: i64,
    /// Number of periods, counted as leases, that were ended by the host's need of memory.
    pub ended_by_memory_count: i64,
    /// Number of periods, counted as leases, that were ended by a sleep, a shutdown or a boot.
    pub ended_by_sleep_or_power_count: i64,
    /// Number of periods, counted as leases, that were ended by the network.
    pub ended_by_network_count: i64,
    /// Number of periods, counted as leases, that were ended by a silent agent.
    pub ended_by_agent_count: i64,
    /// Time in which the region was available in this scope, as a share of all covered time in which the
    /// notion is known (also in scope `idle`).
    pub available_time_share: Option<f64>,
}

impl Finding for AvailabilityPeriods {
    const PRINTED: Option<TablePlace> = printed(50, "Availability periods by region size");
}

/// A point of a Kaplan-Meier curve of periods, counted as leases. The curve is level between points. If the
/// curve was thinned, counts are those since the point before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct SurvivalPoint {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Age of the period.
    pub age_s: f64,
    /// Periods that could have ended in this step: those longer than the age of the point before.
    pub at_risk_count: i64,
    /// Periods that ended, by any cause.
    pub ended_count: i64,
    /// Periods whose start or end the trace cut: they lasted longer than observed.
    pub censored_count: i64,
    /// Share of the periods that last longer than `age_s`.
    pub survival: f64,
    /// Lower limit of the 95 % interval, by Greenwood's formula on the scale of log(-log).
    pub low: f64,
    /// Upper limit of the 95 % interval.
    pub high: f64,
}

impl Finding for SurvivalPoint {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Share of the periods that one cause has ended by a given age (cumulative incidence; the causes compete).
/// At each age the shares of all causes and of the surviving periods sum to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PeriodEnds {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Age of the period.
    pub age_s: f64,
    /// Cause that ended the periods.
    pub cause: EndCause,
    /// Share of the periods that the cause has ended by this age.
    pub cumulative_incidence: f64,
}

impl Finding for PeriodEnds {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Probability that a region that is available now is still available some time later. Every instant of
/// calendar time that can be followed that long counts, in periods of any length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AvailabilityOdds {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Notion of available memory.
    #[serde(default)]
    pub notion: Notion,
    /// Size of the region.
    pub region_bytes: i64,
    /// Horizon of the probabilities.
    pub ahead_s: f64,
    /// Time in which the region was available and its fate is known: the base of the probabilities.
    pub observed_s: f64,
    /// Probability that the region remains available throughout.
    pub available_probability: f64,
    /// Lower limit of the 95 % interval, by bootstrap over hosts; absent with fewer than two hosts.
    pub low: Option<f64>,
    /// Upper limit of the 95 % interval; absent with fewer than two hosts.
    pub high: Option<f64>,
    /// Probability that the owner's return ends the availability first. The probabilities of all causes and
    /// `available_probability` sum to 1.
    pub lost_to_owner_probability: f64,
    /// Probability that the load ends the availability first.
    pub lost_to_load_probability: f64,
    /// Probability that the host's need of memory ends the availability first.
    pub lost_to_memory_probability: f64,
    /// Probability that a sleep, a shutdown or a boot ends the availability first.
    pub lost_to_sleep_or_power_probability: f64,
    /// Probability that the network ends the availability first.
    pub lost_to_network_probability: f64,
    /// Probability that a silent agent ends the availability first.
    pub lost_to_agent_probability: f64,
}

impl Finding for AvailabilityOdds {
    const PRINTED: Option<TablePlace> =
        printed(60, "Probability that available memory stays available");
}

/// Verdict on a bound on the length of periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoundVerdict {
    /// No check failed.
    Holds,
    /// More than one period in twenty was cut, and counts with its observed length: the bound could be
    /// higher.
    Censored,
    /// Successive periods are alike, or hosts differ: the bound does not have the stated confidence.
    Dependent,
    /// Too few periods for a bound.
    TooFew,
}

/// Bound on a quantile of the length of periods, such as "95 % last at least this long". The bound assumes no
/// distribution (binomial method; Brevik, Nurmi & Wolski 2004), but complete and independent periods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PeriodBound {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Share of the periods that may be shorter.
    pub quantile: f64,
    /// Probability that the quantile is at or above the bound.
    pub confidence: f64,
    /// The bound; absent with too few periods.
    pub bound_s: Option<f64>,
    /// Number of periods from which the bound is computed.
    pub periods_count: i64,
    /// Share of those periods that the trace cut.
    pub censored_share: f64,
    /// Correlation of the ranks of successive periods on a host; a value beyond 1.96/√n is hardly chance.
    /// Absent where there is nothing to compare.
    pub autocorrelation: Option<f64>,
    /// Verdict on the bound.
    pub verdict: BoundVerdict,
}

impl Finding for PeriodBound {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Memory that is available by one notion, over the samples of the hosts of one class for which the notion is
/// known. For idle time, also the cost to owners if that much were lent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct NotionSizes {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Notion of available memory.
    pub notion: Notion,
    /// Samples for which the notion is known.
    pub samples_count: i64,
    /// Mean over those samples.
    pub mean_bytes: f64,
    /// Mean share of physical memory.
    pub mean_share: f64,
    /// Median over those samples.
    pub median_bytes: f64,
    /// 5 % quantile over those samples.
    pub p5_bytes: f64,
    /// Mean of the memory that a mode of lending lends ([`crate::findings::MemoryContext`]): mode `paper` for
    /// the notion `paper`, mode `gentle` for `harvestable`. Only in scope `idle`; absent for other notions
    /// and without a return.
    pub mean_quota_bytes: Option<f64>,
    /// Mean memory that would have to be paged in again at a return; absent where `mean_quota_bytes` is.
    pub mean_memory_context_bytes: Option<f64>,
    /// 99 % quantile of that memory; absent where `mean_quota_bytes` is.
    pub p99_memory_context_bytes: Option<f64>,
}

impl Finding for NotionSizes {
    const PRINTED: Option<TablePlace> = printed(70, "Definitions of available memory compared");
}
