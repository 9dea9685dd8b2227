//! Division of memory, and the times when little memory was available (Acharya & Setia, Table 2, Table 3,
//! Figures 4 to 7).

use super::Notion;
use super::finding::{Finding, HostFields, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// Category of memory, as named by the analysis and the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Memory that the kernel took before it counted MemTotal.
    StaticKernel,
    /// Memory that the hypervisor's balloon holds.
    Balloon,
    /// Kernel memory that cannot be reclaimed.
    DynamicKernel,
    /// The kernel's reserve.
    Reserve,
    /// Memory of active processes.
    Process,
    /// Page cache of files in use.
    FileCache,
    /// Memory lent to other hosts.
    Guest,
    /// Available memory: the remainder.
    Available,
}

impl Category {
    /// All categories; together with the category correction they sum to physical memory.
    pub const ALL: [Self; 8] = [
        Self::StaticKernel,
        Self::Balloon,
        Self::DynamicKernel,
        Self::Reserve,
        Self::Process,
        Self::FileCache,
        Self::Guest,
        Self::Available,
    ];

    /// Name of the category's column in `samples`.
    #[must_use]
    pub const fn column(self) -> &'static str {
        match self {
            Self::StaticKernel => "static_kernel_bytes",
            Self::Balloon => "balloon_bytes",
            Self::DynamicKernel => "dynamic_kernel_bytes",
            Self::Reserve => "reserve_bytes",
            Self::Process => "process_bytes",
            Self::FileCache => "file_cache_bytes",
            Self::Guest => "guest_bytes",
            Self::Available => "available_bytes",
        }
    }

    /// Name of the category for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::StaticKernel => "static kernel",
            Self::Balloon => "balloon",
            Self::DynamicKernel => "dynamic kernel",
            Self::Reserve => "reserve",
            Self::Process => "process",
            Self::FileCache => "file cache",
            Self::Guest => "guest",
            Self::Available => "available",
        }
    }
}

/// Use of memory by one category over the hosts of one size class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MemoryUsage {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Name of the category, or `kernel` (static and dynamic), `physical`, `harvestable`,
    /// `category_correction`. Three more follow the paper's Table 2: `live_file_cache` and `available_paper`,
    /// which count files that are used again soon as in use, and `kernel_paper`, the kernel with its reserve.
    pub category: String,
    /// Hosts that have the category.
    pub hosts_count: i64,
    /// Samples that have the category.
    pub samples_count: i64,
    /// Mean over samples.
    pub mean_bytes: f64,
    /// Standard deviation over samples (n − 1); absent with one sample.
    pub sd_bytes: Option<f64>,
    /// Minimum over the samples.
    pub min_bytes: i64,
    /// 5 % quantile over the samples.
    pub p5_bytes: f64,
    /// Median over the samples.
    pub median_bytes: f64,
    /// 95 % quantile over the samples.
    pub p95_bytes: f64,
    /// Maximum over the samples.
    pub max_bytes: i64,
    /// Mean share of physical memory.
    pub mean_share: f64,
}

impl Finding for MemoryUsage {
    const PRINTED: Option<TablePlace> = printed(20, "Use of memory");
    const PLAIN_TEXT: &'static [&'static str] = &["size_class", "category"];
}

/// Use of memory by one category on one host, over its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct HostMemory {
    /// Id of the host.
    pub host_id: String,
    /// Name of the category, as in [`MemoryUsage`], or `used`: physical memory less the memory available at
    /// the same sample.
    pub category: String,
    /// Samples that have the category.
    pub samples_count: i64,
    /// Mean over samples.
    pub mean_bytes: f64,
    /// Standard deviation over samples (n − 1); absent with one sample.
    pub sd_bytes: Option<f64>,
    /// Minimum over the samples.
    pub min_bytes: i64,
    /// 5 % quantile over the samples.
    pub p5_bytes: f64,
    /// Median over the samples.
    pub median_bytes: f64,
    /// 95 % quantile over the samples.
    pub p95_bytes: f64,
    /// Maximum over the samples.
    pub max_bytes: i64,
    /// Mean share of physical memory.
    pub mean_share: f64,
}

impl Finding for HostMemory {
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["category"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// A dip: a time in which one host's available memory stayed below a threshold. The list has the deepest dips
/// for each threshold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WorstDip {
    /// Id of the host.
    pub host_id: String,
    /// Threshold in bytes.
    pub threshold_bytes: i64,
    /// The requested share of the host's physical memory; absent where bytes were requested.
    pub threshold_share: Option<f64>,
    /// Time of the first sample below the threshold.
    pub from_time_ms: i64,
    /// Time of the first sample after the dip. Where a gap or the trace's end follows the dip, the time of
    /// its last sample.
    pub to_time_ms: i64,
    /// Length of the dip.
    pub duration_s: f64,
    /// Sample intervals below the threshold.
    pub intervals_count: i64,
    /// Minimum of available memory in the dip.
    pub min_available_bytes: i64,
    /// Time of the dip's deepest sample, from which the categories are taken.
    pub min_time_ms: i64,
    /// Dynamic kernel memory at that sample; absent where unknown.
    pub dynamic_kernel_bytes: Option<i64>,
    /// Process memory at that sample; absent where unknown.
    pub process_bytes: Option<i64>,
    /// File cache at that sample; absent where unknown.
    pub file_cache_bytes: Option<i64>,
    /// Median of the host's dynamic kernel memory over its samples; absent where unknown.
    pub usual_dynamic_kernel_bytes: Option<f64>,
    /// Median of the host's process memory over its samples; absent where unknown.
    pub usual_process_bytes: Option<f64>,
    /// Median of the host's file cache over its samples; absent where unknown.
    pub usual_file_cache_bytes: Option<f64>,
}

impl Finding for WorstDip {
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Programs that ran on a host at the deepest sample of a dip: active processes by name, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct DipProcess {
    /// Id of the host.
    pub host_id: String,
    /// Time of the dip's deepest sample ([`WorstDip::min_time_ms`]).
    pub time_ms: i64,
    /// Rank by memory; 1 is the largest.
    pub rank: i64,
    /// Name of the program (comm).
    pub name: String,
    /// Proportional memory of the active processes of that name at that sample.
    pub bytes: i64,
    /// Mean over the samples in which a process of that name was active, as in
    /// [`crate::findings::TopProcess`].
    pub mean_bytes: f64,
}

impl Finding for DipProcess {
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["name"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Memory of one host in one stretch of time: one sample, or several in a long trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MemoryPoint {
    /// Id of the host.
    pub host_id: String,
    /// Start of the stretch.
    pub time_ms: i64,
    /// Number of samples in the stretch.
    pub samples_count: i64,
    /// True if a gap lies between this point and the point before: no line is drawn across.
    pub is_after_gap: bool,
    /// True if the host was idle at the end of the stretch; absent if unknown.
    pub is_idle: Option<bool>,
    /// Mean static kernel memory; absent where unknown.
    pub static_kernel_bytes: Option<f64>,
    /// Mean memory held by the balloon; absent where unknown.
    pub balloon_bytes: Option<f64>,
    /// Mean dynamic kernel memory; absent where unknown.
    pub dynamic_kernel_bytes: Option<f64>,
    /// Mean reserve; absent where unknown.
    pub reserve_bytes: Option<f64>,
    /// Mean process memory; absent where unknown.
    pub process_bytes: Option<f64>,
    /// Mean file cache; absent where unknown.
    pub file_cache_bytes: Option<f64>,
    /// Mean lent memory; absent where unknown.
    pub guest_bytes: Option<f64>,
    /// Mean available memory.
    pub available_bytes: f64,
    /// Minimum of available memory: shows dips however long the stretch is.
    pub min_available_bytes: i64,
    /// Minimum of harvestable memory; absent where unknown.
    pub min_harvestable_bytes: Option<i64>,
    /// Mean harvestable memory; absent where unknown.
    pub harvestable_bytes: Option<f64>,
}

impl Finding for MemoryPoint {
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Samples at which one host's available memory was below a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Dip {
    /// Id of the host.
    pub host_id: String,
    /// Threshold in bytes.
    pub threshold_bytes: i64,
    /// The requested share of the host's physical memory; absent where bytes were requested.
    pub threshold_share: Option<f64>,
    /// Sample intervals below the threshold.
    pub intervals_count: i64,
    /// Number of all samples of the host.
    pub samples_count: i64,
    /// Minimum of available memory over all samples.
    pub min_available_bytes: i64,
    /// Time of that minimum.
    pub min_time_ms: i64,
}

impl Finding for Dip {
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Number of hosts whose available memory was below a threshold at least a given number of times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct DipHosts {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Notion of available memory.
    #[serde(default)]
    pub notion: Notion,
    /// Threshold in bytes; absent where it is relative.
    pub threshold_bytes: Option<i64>,
    /// Threshold as a share of each host's physical memory; absent where it is absolute.
    pub threshold_share: Option<f64>,
    /// Minimum number of sample intervals below the threshold; 0: hosts with none at all.
    pub minimum_intervals_count: i64,
    /// Hosts with at least that number of intervals (0: with none).
    pub hosts_count: i64,
    /// Hosts of the class for which the notion is known.
    pub known_hosts_count: i64,
}

impl Finding for DipHosts {
    const PRINTED: Option<TablePlace> = printed(40, "Number of hosts by number of dips");
}
