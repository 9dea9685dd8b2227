//! Figures of all hosts together. Time is divided into cells of equal length
//! ([`crate::findings::Parameters::cluster_cell_s`]).
//!
//! A host counts in the cells that its samples cover without a gap; to other cells it contributes nothing.
//! `hosts_seen_count` is the number of hosts that count. The *quota* of a host is the paper's: available and
//! lent memory less the headroom. In scope `idle` only hosts that were idle during a whole cell lend.

use super::finding::{Finding, TablePlace, printed};
use crate::findings::Scope;
use serde::{Deserialize, Serialize};

/// All hosts together in one stretch of time: one cell, or several in a long trace. Means are over the
/// stretch's cells; a host that is idle for a part of a cell counts by that part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ClusterPoint {
    /// Start of the stretch.
    pub time_ms: i64,
    /// Cells of the stretch in which at least one host was observed.
    pub cells_count: i64,
    /// True if cells without any host lie between this point and the point before.
    pub is_after_gap: bool,
    /// Mean number of hosts observed.
    pub hosts_seen_count: f64,
    /// Mean number of idle hosts among those observed. All figures of idle hosts are absent if it is not
    /// known of any host when it was idle.
    pub hosts_idle_count: Option<f64>,
    /// Mean physical memory of the hosts observed, all hosts together.
    pub physical_bytes: f64,
    /// Mean available memory of all hosts together.
    pub available_bytes: f64,
    /// Minimum, over the stretch's cells, of a cell's sum. The sum adds each host's minimum of available
    /// memory in that cell.
    pub min_available_bytes: i64,
    /// Mean harvestable memory of all hosts together; a host without this figure adds nothing. Absent if no
    /// host has it.
    pub harvestable_bytes: Option<f64>,
    /// Mean available memory on idle hosts.
    pub idle_available_bytes: Option<f64>,
    /// Like `min_available_bytes`, over the hosts that were idle during the whole cell.
    pub min_idle_available_bytes: Option<i64>,
    /// Mean of the paper's quotas of idle hosts, all hosts together.
    pub idle_paper_quota_bytes: Option<f64>,
    /// Mean harvestable memory on idle hosts; a host without this figure adds nothing.
    pub idle_harvestable_bytes: Option<f64>,
}

impl Finding for ClusterPoint {}

/// Distribution, over cells, of the memory that all hosts have available together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ClusterAvailable {
    /// All hosts observed, or only the idle ones.
    pub scope: Scope,
    /// Number of cells that count. In such a cell at least one host was observed (scope `idle`: one with
    /// known idleness), and at most a tenth of the hosts was missing for unknown reasons.
    pub cells_count: i64,
    /// Mean over cells.
    pub mean_bytes: f64,
    /// Standard deviation over cells (n − 1); absent with one cell.
    pub sd_bytes: Option<f64>,
    /// Available memory that 99 % of the cells reach or exceed.
    pub p1_bytes: i64,
    /// Available memory that 95 % of the cells reach or exceed.
    pub p5_bytes: i64,
    /// Available memory that half of the cells reach or exceed.
    pub median_bytes: i64,
    /// Maximum over the cells.
    pub max_bytes: i64,
    /// The mean as a share of the mean physical memory of the hosts observed.
    pub share_of_physical: f64,
}

impl Finding for ClusterAvailable {
    const PRINTED: Option<TablePlace> = printed(120, "Memory available on all hosts together");
}

/// Memory of the hosts of one class in one stretch of time: means per host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ClassPoint {
    /// Class by memory size.
    pub size_class: String,
    /// Start of the stretch.
    pub time_ms: i64,
    /// True if cells without any host of the class lie between this point and the point before.
    pub is_after_gap: bool,
    /// Mean number of hosts observed.
    pub hosts_seen_count: f64,
    /// Mean static and dynamic kernel memory; absent where unknown.
    pub kernel_bytes: Option<f64>,
    /// Mean process memory; absent where unknown.
    pub process_bytes: Option<f64>,
    /// Mean file cache; absent where unknown.
    pub file_cache_bytes: Option<f64>,
    /// Mean available memory.
    pub available_bytes: f64,
}

impl Finding for ClassPoint {}

/// Share of the cluster's available memory that the hosts of one class provide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ClassContribution {
    /// All hosts, or only the idle ones.
    pub scope: Scope,
    /// Class by memory size.
    pub size_class: String,
    /// Hosts of the class that were observed.
    pub hosts_count: i64,
    /// The class's share of the available memory, over the whole time.
    pub available_share: f64,
    /// The class's share of the physical memory of the hosts observed.
    pub physical_share: f64,
}

impl Finding for ClassContribution {
    const PRINTED: Option<TablePlace> = printed(130, "Contribution of each class of hosts");
}

/// Share of the cluster's available memory that the hosts with the largest contributions provide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct RankContribution {
    /// All hosts, or only the idle ones.
    pub scope: Scope,
    /// Number of hosts that are taken: those with the largest contributions.
    pub hosts_count: i64,
    /// Number of these hosts as a share of all hosts observed.
    pub hosts_share: f64,
    /// These hosts' share of the available memory, over the whole time.
    pub available_share: f64,
}

impl Finding for RankContribution {}

/// Sense in which bytes remain available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Residence {
    /// In place: each host keeps its part of the bytes throughout.
    Stays,
    /// Somewhere: all hosts together always keep the bytes, though not always the same hosts.
    Somewhere,
}

/// Bytes that all hosts together keep of their quotas for a given time, which begins at a cell chosen at
/// random.
///
/// A host loses its whole quota if, within that time, the host sleeps, shuts down or becomes unreachable, or
/// its agent falls silent. A host whose fate is unknown is left out, also from the amount at the start. Cells
/// are not independent: the figures describe the trace and do not bound the future.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Guarantee {
    /// All hosts, or only those that stay idle.
    pub scope: Scope,
    /// Sense in which the bytes remain available.
    pub residence: Residence,
    /// Horizon: the time ahead, a whole number of cells.
    pub ahead_s: f64,
    /// Share of the cells from which at least `bytes` remained.
    pub probability: f64,
    /// Minimum number of bytes that remain.
    pub bytes: i64,
    /// Mean, over the start cells, of the sum of the quotas of all hosts whose fate is known.
    pub mean_now_bytes: f64,
    /// `bytes` as a share of `mean_now_bytes`; absent where `mean_now_bytes` is 0.
    pub share_of_now: Option<f64>,
    /// Number of start cells. Only cells in which the fate of at least nine hosts in ten is known are start
    /// cells.
    pub cells_count: i64,
}

impl Finding for Guarantee {
    const PRINTED: Option<TablePlace> = printed(
        140,
        "Memory that stays available for a time, by probability",
    );
}

/// Probabilities of losing copies of a region on different hosts, over all cells and every choice of
/// `copies_count` hosts among those that can lend the region in the same cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Copies {
    /// All hosts, or only those that stay idle.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Horizon: the time ahead, a whole number of cells.
    pub ahead_s: f64,
    /// Number of copies, each on a host of its own.
    pub copies_count: i64,
    /// Probability that a given copy is lost.
    pub one_lost_probability: f64,
    /// Probability that all copies are lost.
    pub all_lost_probability: f64,
    /// Probability that all copies would be lost if hosts were independent: `one_lost_probability` to the
    /// power of `copies_count`.
    pub all_lost_if_independent_probability: f64,
    /// Ratio of `all_lost_probability` to `all_lost_if_independent_probability`; absent where no copy is ever
    /// lost.
    pub all_lost_ratio: Option<f64>,
    /// Probability that no copy is lost.
    pub none_lost_probability: f64,
    /// Number of choices of hosts, over all cells.
    pub choices_count: f64,
}

impl Finding for Copies {
    const PRINTED: Option<TablePlace> =
        printed(150, "Probability of losing copies on different hosts");
}

/// Hosts that stop being idle within one cell, by hour of the week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ReturnsByHour {
    /// Day of the week; 1 is Monday.
    pub weekday: i64,
    /// Hour of the day, in the fleet's time zone.
    pub hour: i64,
    /// Number of cells in that hour in which at least one host was observed.
    pub cells_count: i64,
    /// Mean number of hosts whose owners return in a cell.
    pub mean_returns_per_cell: f64,
    /// Maximum number of returns in a cell.
    pub max_returns_per_cell: i64,
    /// Returns as a share of the hosts that were idle before; absent where none was idle.
    pub share_of_idle_hosts: Option<f64>,
    /// Mean of the bytes that these hosts would reclaim in a cell if they had lent their whole quotas.
    pub mean_reclaimed_bytes: f64,
    /// Maximum of the bytes that these hosts would reclaim in a cell.
    pub max_reclaimed_bytes: i64,
}

impl Finding for ReturnsByHour {}

/// A cell in which owners' returns would have reclaimed much memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WorstReturn {
    /// Start of the cell.
    pub time_ms: i64,
    /// Hosts whose owners returned.
    pub hosts_count: i64,
    /// Hosts that were idle at the start of the cell.
    pub idle_hosts_before_count: i64,
    /// Bytes that would have been reclaimed if the hosts had lent their whole quotas.
    pub reclaimed_bytes: i64,
    /// These bytes as a share of the quotas of all idle hosts; absent if those quotas are 0.
    pub share_of_quota: Option<f64>,
}

impl Finding for WorstReturn {
    const PRINTED: Option<TablePlace> = printed(160, "Times with the most returns of owners");
}

/// Peak of demand that a pool must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Peak {
    /// The largest demand.
    Max,
    /// Demand that at most one cell in 100 exceeds.
    P99,
}

/// Memory that hosts could save by sharing their memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PoolingSaving {
    /// Number of hosts in a pool; the last pool may have fewer.
    pub pool_hosts_count: i64,
    /// Number of hosts in all pools.
    pub hosts_count: i64,
    /// Kind of peak. Demand is physical less available memory; the demand in a cell is its maximum there.
    pub peak: Peak,
    /// Memory that the hosts need if each has memory for its own peak.
    pub sum_of_peaks_bytes: i64,
    /// Memory that the pools need if each pool has memory for its own peak; mean over several random
    /// divisions of the hosts into pools.
    pub peak_of_sums_bytes: f64,
    /// Share of `sum_of_peaks_bytes` that pooling saves.
    pub saved_share: f64,
}

impl Finding for PoolingSaving {
    const PRINTED: Option<TablePlace> = printed(170, "Memory saved by pooling");
}
