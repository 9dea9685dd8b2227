//! The hosts together, on a grid of time (`Parameters::cluster_cell_s`).
//!
//! A host counts in the cells that its samples cover without a gap; elsewhere it contributes nothing, and
//! `hosts_seen_count` says how many did. *Lendable* is what the paper recruits, available and lent memory
//! less the headroom; in scope `idle` only hosts that were idle all through a cell lend.

use super::finding::{Finding, TablePlace, printed};
use crate::findings::Scope;
use serde::{Deserialize, Serialize};

/// All hosts together in one stretch of time: one cell, or several in a long trace. Means are over the
/// stretch's cells, and count a host that is idle for a part of a cell by that part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ClusterPoint {
    /// Start of the stretch.
    pub time_ms: i64,
    /// Cells in it in which a host was seen.
    pub cells_count: i64,
    /// True if there are cells without any host between it and the point before.
    pub after_gap: bool,
    /// Mean number of hosts seen.
    pub hosts_seen_count: f64,
    /// Mean number of idle hosts among them; absent if it is not known of any host, as are all figures of
    /// idle hosts.
    pub hosts_idle_count: Option<f64>,
    /// Mean physical memory of the hosts seen.
    pub installed_bytes: f64,
    /// Mean available memory.
    pub available_bytes: f64,
    /// Least: of the stretch's cells the one in which the sum of what each host had least is smallest.
    pub available_min_bytes: i64,
    /// Mean harvestable; hosts that do not know theirs add nothing. Absent where none does.
    pub harvestable_bytes: Option<f64>,
    /// Mean available on idle hosts.
    pub idle_available_bytes: Option<f64>,
    /// Least available on hosts that were idle all through a cell.
    pub idle_available_min_bytes: Option<i64>,
    /// Mean lendable on idle hosts, as the paper counts.
    pub idle_recruitable_bytes: Option<f64>,
    /// Mean harvestable on idle hosts; hosts that do not know theirs add nothing.
    pub idle_harvestable_bytes: Option<f64>,
}

impl Finding for ClusterPoint {}

/// The distribution over cells of what all hosts have available together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ClusterAvailable {
    /// On all hosts seen, or on the idle ones among them.
    pub scope: Scope,
    /// Cells in which a host was seen (scope `idle`: of which it can be told whether it was idle), and no more than one of
    /// ten was missing, nobody knows why.
    pub cells_count: i64,
    /// Mean over cells.
    pub mean_bytes: f64,
    /// Standard deviation over cells (n − 1); absent with one cell.
    pub sd_bytes: Option<f64>,
    /// Exceeded or met in 99 of 100 cells.
    pub p1_bytes: i64,
    /// In 95 of 100.
    pub p5_bytes: i64,
    /// In half of them.
    pub median_bytes: i64,
    /// Largest.
    pub max_bytes: i64,
    /// The mean as a share of the mean physical memory of the hosts seen.
    pub share_of_installed: f64,
}

impl Finding for ClusterAvailable {
    const PRINTED: Option<TablePlace> = printed(120, "The hosts together: what is available");
}

/// The hosts of one class in one stretch of time: means a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ClassPoint {
    /// Class by memory size.
    pub size_class: String,
    /// Start of the stretch.
    pub time_ms: i64,
    /// True if there are cells without any host of the class between it and the point before.
    pub after_gap: bool,
    /// Mean number of hosts seen.
    pub hosts_seen_count: f64,
    /// Static and dynamic kernel; absent where unknown, as below.
    pub kernel_bytes: Option<f64>,
    /// Process memory.
    pub process_bytes: Option<f64>,
    /// File cache.
    pub file_cache_bytes: Option<f64>,
    /// Available.
    pub available_bytes: f64,
}

impl Finding for ClassPoint {}

/// Part of the hosts of one class in the memory available in the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ClassContribution {
    /// On all hosts, or on idle ones.
    pub scope: Scope,
    /// Class by memory size.
    pub size_class: String,
    /// Hosts of the class that were seen.
    pub hosts_count: i64,
    /// The class' part of the memory available over time.
    pub available_share: f64,
    /// The class' part of the memory installed in the hosts seen.
    pub installed_share: f64,
}

impl Finding for ClassContribution {
    const PRINTED: Option<TablePlace> = printed(130, "Whose memory that is");
}

/// Part of the hosts that give most in the memory available in the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct RankContribution {
    /// On all hosts, or on idle ones.
    pub scope: Scope,
    /// Number of hosts, those that contribute most.
    pub hosts_count: i64,
    /// Share of all hosts that were seen.
    pub hosts_share: f64,
    /// Their part of the memory available over time.
    pub available_share: f64,
}

impl Finding for RankContribution {}

/// In which sense bytes are still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Residence {
    /// In place: each host keeps its part all the time.
    Stays,
    /// Somewhere: as many bytes are there at any time, though hosts take turns.
    Somewhere,
}

/// Lendable bytes that the hosts have together for a time, from a cell chosen at random on.
///
/// A host that sleeps, is shut down or whose agent falls silent in that time, or that nothing reaches, has lost all; one of which nobody knows
/// what became of it is left out, of what was there at first too. Cells are not independent of each other:
/// this is how the trace was, not a bound on the future.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Guaranteed {
    /// On all hosts, or on those that stay idle.
    pub scope: Scope,
    /// In which sense.
    pub residence: Residence,
    /// For how long: whole cells.
    pub ahead_s: f64,
    /// In this share of the cells there were as many bytes, or more.
    pub probability: f64,
    /// Bytes that there are at least.
    pub bytes: i64,
    /// Mean lendable at the start, on the hosts whose fate is known.
    pub now_mean_bytes: f64,
    /// The bytes as a share of it; absent where that is 0.
    pub share_of_now: Option<f64>,
    /// Cells to start from: those in which the fate of nine hosts of ten, or more, is known.
    pub cells_count: i64,
}

impl Finding for Guaranteed {
    const PRINTED: Option<TablePlace> =
        printed(140, "What is there for so long, with so much probability");
}

/// Fates of copies of a region that lie on different hosts: over every choice of so many hosts out
/// of those that have the region to lend in the same cell, and over all cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Copies {
    /// On all hosts, or on those that stay idle.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// For how long: whole cells.
    pub ahead_s: f64,
    /// Number of copies.
    pub copies_count: i64,
    /// Probability that a given one of them is lost.
    pub one_lost: f64,
    /// Probability that all are lost.
    pub all_lost: f64,
    /// Probability that all would be lost if hosts were independent: `one_lost` to the power of
    /// `copies_count`.
    pub all_lost_if_independent: f64,
    /// Ratio by which losing all is likelier than were hosts independent; absent where none is ever lost.
    pub all_lost_ratio: Option<f64>,
    /// Probability that none is lost.
    pub none_lost: f64,
    /// Choices of hosts, over all cells.
    pub choices: f64,
}

impl Finding for Copies {
    const PRINTED: Option<TablePlace> = printed(150, "Losing copies on different hosts");
}

/// Hosts that stop being idle within one cell, in one hour of the week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ReturnsByHour {
    /// Monday is 1.
    pub weekday: i64,
    /// In the fleet's time zone.
    pub hour: i64,
    /// Cells in that hour in which a host was seen.
    pub cells_count: i64,
    /// Mean number of hosts that return in a cell.
    pub returns_per_cell_mean: f64,
    /// Most.
    pub returns_per_cell_max: i64,
    /// Returns as a share of the hosts that were idle before; absent where none was.
    pub share_of_idle_hosts: Option<f64>,
    /// Mean of the lendable bytes that they take back in a cell.
    pub bytes_mean: f64,
    /// Most.
    pub bytes_max: i64,
}

impl Finding for ReturnsByHour {}

/// A cell in which much memory was taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WorstReturn {
    /// Start of the cell.
    pub time_ms: i64,
    /// Hosts that returned.
    pub hosts_count: i64,
    /// Hosts that were idle at its start.
    pub idle_hosts_before_count: i64,
    /// Lendable bytes that were taken back.
    pub bytes: i64,
    /// Share of the memory that all idle hosts had to lend; absent if they had none.
    pub share_of_lendable: Option<f64>,
}

impl Finding for WorstReturn {
    const PRINTED: Option<TablePlace> = printed(160, "Moments at which most owners returned");
}

/// Peak that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Peak {
    /// The largest.
    Max,
    /// Value that is exceeded in one cell of 100 at most.
    P99,
}

/// Memory that hosts which share theirs could do without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Pooling {
    /// Hosts in a pool; the last pool may have fewer.
    pub pool_hosts_count: i64,
    /// Hosts in all pools.
    pub hosts_count: i64,
    /// Peak of demand that counts: physical less available memory, the most in a cell.
    pub peak: Peak,
    /// Memory that the hosts need, each with memory for its own peak.
    pub sum_of_peaks_bytes: i64,
    /// Memory that the pools need, each with memory for its peak; mean over several ways to form the pools by chance.
    pub peak_of_sums_bytes: f64,
    /// Share of the first that the second saves.
    pub saved_share: f64,
}

impl Finding for Pooling {
    const PRINTED: Option<TablePlace> = printed(170, "What pooling memory would save");
}
