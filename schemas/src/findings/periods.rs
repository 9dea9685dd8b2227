//! Time that regions of memory stay available (Acharya & Setia, Table 4), and the causes that end it.
//!
//! Two readings stand side by side. *As seen*, which is the paper's: a period ends where samples do, and is as
//! long as it was seen. *As a lease would have lasted*: what would have ended a lease ends the period, be it a
//! sleep, a silent agent or a lost network; and one that the trace itself cut lasted longer than seen.

use super::finding::{Finding, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// Time that counts for an availability period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole time.
    #[default]
    All,
    /// Inside idle periods only: it ends when the owner returns as well.
    Idle,
}

/// Notion of available memory.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Notion {
    /// Physical memory less all that is in use now: what the owner does not use at this moment.
    #[default]
    Available,
    /// The paper's: of that, the cache of files that are used again soon is left to the owner. It takes lookahead, and is
    /// known where it can be told whether the owner was away, and files were recorded.
    Paper,
    /// Memory that could be taken now without pushing the owner's pages out: MemAvailable less the headroom.
    Harvestable,
}

impl Notion {
    /// All kinds, in the order of the declaration.
    pub const ALL: [Self; 3] = [Self::Available, Self::Paper, Self::Harvestable];
}

/// Cause that ends a lease of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// The owner came back (idle time only).
    Owner,
    /// The load rose to the limit (idle time only).
    Load,
    /// The host needed its memory: less is available than the region's size.
    Memory,
    /// The host slept, or was switched off or booted.
    SleepOrPower,
    /// The network: nothing reached the collector any more, while the host was up.
    Network,
    /// The agent fell silent: stopped, or without CPU. Who leases must take that for the owner's return.
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

/// Time that regions of one size stay available, over the hosts of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AvailabilityPeriods {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Time that counts.
    pub scope: Scope,
    /// Notion of available memory.
    pub notion: Notion,
    /// Size of the region.
    pub region_bytes: i64,
    /// Periods kept (not shorter than the minimum), as seen.
    pub periods: i64,
    /// Number of those cut by a gap or an end of the trace: they lasted longer than was seen.
    pub censored: i64,
    /// Mean length of the periods as seen; absent without any.
    pub mean_s: Option<f64>,
    /// 95 % interval of `mean_s` by bootstrap over hosts; absent with fewer than two hosts.
    pub mean_low_s: Option<f64>,
    /// Upper limit of the mean.
    pub mean_high_s: Option<f64>,
    /// A twentieth of them were no longer than this.
    pub p5_s: Option<f64>,
    /// Median length as seen.
    pub median_s: Option<f64>,
    /// Nineteen of twenty were no longer than this.
    pub p95_s: Option<f64>,
    /// Longest as seen.
    pub longest_s: Option<f64>,
    /// Kaplan-Meier mean of the periods as leases, restricted to the longest length of theirs. One whose start
    /// or end the trace cut counts as lasting longer than seen.
    pub restricted_mean_s: Option<f64>,
    /// 95 % interval of `restricted_mean_s` by Greenwood's formula, which takes periods as independent.
    pub restricted_mean_low_s: Option<f64>,
    /// Upper limit of the restricted mean.
    pub restricted_mean_high_s: Option<f64>,
    /// Age that half the periods outlast, by the same curve; absent where more than half do as far as it goes.
    pub survival_median_s: Option<f64>,
    /// `restricted_mean_s` of those alone whose start was seen. The others were met because they are long, and
    /// their age is unknown: counting them makes `restricted_mean_s` too long, the more so the fewer periods a
    /// trace has.
    pub restricted_mean_start_seen_s: Option<f64>,
    /// Periods as leases whose start the trace cut.
    pub start_cut: i64,
    /// Periods as leases whose end the trace cut.
    pub end_cut: i64,
    /// Periods as leases that the owner's return ended.
    pub ended_by_owner: i64,
    /// Number of those that the load ended.
    pub ended_by_load: i64,
    /// Number of those that the host's need of memory ended.
    pub ended_by_memory: i64,
    /// Number of those that a sleep, a shutdown or a boot ended.
    pub ended_by_sleep_or_power: i64,
    /// Number of those that the network ended.
    pub ended_by_network: i64,
    /// Number of those that a silent agent ended.
    pub ended_by_agent: i64,
    /// Share of the covered time in which the region was available (all scopes: of all covered time; all of it in which
    /// the notion is known).
    pub available_time_share: Option<f64>,
}

impl Finding for AvailabilityPeriods {
    const PRINTED: Option<TablePlace> = printed(50, "How long regions stay available");
}

/// One point of a Kaplan-Meier curve of periods as leases. The curve is level between points; if it was
/// thinned, counts are those since the point before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct SurvivalPoint {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Age of the period.
    pub age_s: f64,
    /// Periods that could have ended in this step: those that lasted longer than the point before.
    pub at_risk: i64,
    /// Periods that ended, whatever the cause.
    pub ended: i64,
    /// Periods whose start or end the trace cut: they lasted longer than this.
    pub censored: i64,
    /// Share of the periods that last longer than this.
    pub survival: f64,
    /// 95 % interval on the scale of log(-log), by Greenwood's formula.
    pub low: f64,
    /// Its upper limit.
    pub high: f64,
}

impl Finding for SurvivalPoint {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// By what age one cause has ended what share of the periods (cumulative incidence; the causes compete). At
/// each age the shares of all causes and what survives sum to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PeriodEnds {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Age of the period.
    pub age_s: f64,
    /// Cause that ended them.
    pub cause: EndCause,
    /// Share of the periods that it has ended by this age.
    pub cumulative_incidence: f64,
}

impl Finding for PeriodEnds {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Whether a region that is available now is so still some time later: over calendar time, each instant counts
/// that can be followed that long, in periods of any length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AvailabilityOdds {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Time that counts.
    pub scope: Scope,
    /// Notion of available memory.
    #[serde(default)]
    pub notion: Notion,
    /// Size of the region.
    pub region_bytes: i64,
    /// Time later.
    pub ahead_s: f64,
    /// Time in which the region was available and whose fate is known: what the probabilities rest on.
    pub observed_s: f64,
    /// Probability that it has been available all the while.
    pub still_available: f64,
    /// 95 % interval by bootstrap over hosts; absent with fewer than two hosts.
    pub low: Option<f64>,
    /// Its upper limit.
    pub high: Option<f64>,
    /// Probability that the owner's return ended it first; with the other causes and `still_available`: 1.
    pub lost_to_owner: f64,
    /// To the load.
    pub lost_to_load: f64,
    /// To the host's need of memory.
    pub lost_to_memory: f64,
    /// To a sleep, a shutdown or a boot.
    pub lost_to_sleep_or_power: f64,
    /// To the network.
    pub lost_to_network: f64,
    /// To a silent agent.
    pub lost_to_agent: f64,
}

impl Finding for AvailabilityOdds {
    const PRINTED: Option<TablePlace> = printed(60, "Of what is available now, still so later");
}

/// Worth of a bound on the length of periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoundVerdict {
    /// Nothing speaks against it.
    Holds,
    /// More than one in twenty periods was cut and counts as seen: the bound could be higher.
    Censored,
    /// Successive periods are alike, or hosts differ: the confidence is not what it says.
    Dependent,
    /// So few periods that none is a bound.
    TooFew,
}

/// "At least so long in 95 % of cases": a bound on a quantile of the length of periods that assumes no
/// distribution (binomial method; Brevik, Nurmi & Wolski 2004), but whole and independent periods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PeriodBound {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Share of the periods that may be shorter.
    pub quantile: f64,
    /// Probability that the quantile is not below the bound.
    pub confidence: f64,
    /// The bound; absent with too few periods.
    pub bound_s: Option<f64>,
    /// Periods that it rests on.
    pub periods: i64,
    /// Share of them that the trace cut.
    pub censored_share: f64,
    /// Correlation of the ranks of successive periods on a host; beyond 1.96/√n it is no chance. Absent where
    /// there is nothing to compare.
    pub autocorrelation: Option<f64>,
    /// Whether it holds.
    pub verdict: BoundVerdict,
}

impl Finding for PeriodBound {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Memory by one notion of available, over the samples of the hosts of one class that know it; and for idle
/// time what lending as much would have cost the owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct NotionSizes {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Time that counts.
    pub scope: Scope,
    /// Notion of available memory.
    pub notion: Notion,
    /// Samples that have it.
    pub samples_count: i64,
    /// Mean over them.
    pub mean_bytes: f64,
    /// Mean share of physical memory.
    pub mean_share: f64,
    /// Median.
    pub median_bytes: f64,
    /// One sample in twenty has less.
    pub p5_bytes: f64,
    /// Idle time, where a mode of lending goes by the notion (`paper`, and `gentle` for `harvestable`): the mean of what
    /// it lends ([`crate::findings::MemoryContext`]). Absent else and without a return, as all below.
    pub lendable_mean_bytes: Option<f64>,
    /// Memory that would have to be paged in again at a return: the mean.
    pub context_mean_bytes: Option<f64>,
    /// One return in a hundred would cost more.
    pub context_p99_bytes: Option<f64>,
}

impl Finding for NotionSizes {
    const PRINTED: Option<TablePlace> = printed(70, "Notions of available, side by side");
}
