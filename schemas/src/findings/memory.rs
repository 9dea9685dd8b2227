//! Division of memory, and the times when little was left (Acharya & Setia, Table 2, Table 3, Figures 4 to 7).

use super::Notion;
use super::finding::{Finding, HostFields, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// Category of memory, as the analysis and the reports name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Taken before MemTotal was counted.
    StaticKernel,
    /// Held by the hypervisor's balloon.
    Balloon,
    /// Kernel memory that cannot be reclaimed.
    DynamicKernel,
    /// The kernel's reserve.
    Lotsfree,
    /// Active processes.
    Process,
    /// Page cache of files in use.
    FileCache,
    /// Lent to other hosts.
    Guest,
    /// Available memory: the remainder.
    Available,
}

impl Category {
    /// All categories; they sum to physical memory, with the remainder beside.
    pub const ALL: [Self; 8] = [
        Self::StaticKernel,
        Self::Balloon,
        Self::DynamicKernel,
        Self::Lotsfree,
        Self::Process,
        Self::FileCache,
        Self::Guest,
        Self::Available,
    ];

    /// Name of its column in `samples`.
    #[must_use]
    pub const fn column(self) -> &'static str {
        match self {
            Self::StaticKernel => "static_kernel_bytes",
            Self::Balloon => "balloon_bytes",
            Self::DynamicKernel => "dynamic_kernel_bytes",
            Self::Lotsfree => "lotsfree_bytes",
            Self::Process => "process_bytes",
            Self::FileCache => "file_cache_bytes",
            Self::Guest => "guest_bytes",
            Self::Available => "available_bytes",
        }
    }

    /// Name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::StaticKernel => "static kernel",
            Self::Balloon => "balloon",
            Self::DynamicKernel => "dynamic kernel",
            Self::Lotsfree => "reserve",
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
    /// Category, or `kernel` (static and dynamic), `physical`, `harvestable`, `remainder`; as the paper's Table 2 counts,
    /// `live_file_cache` and `available_paper`, for which files that are used again soon are in use, and `kernel_paper`,
    /// the kernel with its reserve.
    pub category: String,
    /// Hosts that have it.
    pub hosts_count: i64,
    /// Samples that have it.
    pub samples_count: i64,
    /// Mean over samples.
    pub mean_bytes: f64,
    /// Standard deviation over samples (n − 1); absent with one sample.
    pub sd_bytes: Option<f64>,
    /// Smallest.
    pub min_bytes: i64,
    /// A twentieth of the samples had no more than this.
    pub p5_bytes: f64,
    /// Median.
    pub median_bytes: f64,
    /// Nineteen of twenty had no more than this.
    pub p95_bytes: f64,
    /// Largest.
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
    /// Host id.
    pub host: String,
    /// Category, as in [`MemoryUsage`]; or `used`, physical memory less what was available at the same time.
    pub category: String,
    /// Samples that have it.
    pub samples_count: i64,
    /// Mean over samples.
    pub mean_bytes: f64,
    /// Standard deviation over samples (n − 1); absent with one sample.
    pub sd_bytes: Option<f64>,
    /// Smallest.
    pub min_bytes: i64,
    /// A twentieth of the samples had no more than this.
    pub p5_bytes: f64,
    /// Median.
    pub median_bytes: f64,
    /// Nineteen of twenty had no more than this.
    pub p95_bytes: f64,
    /// Largest.
    pub max_bytes: i64,
    /// Mean share of physical memory.
    pub mean_share: f64,
}

impl Finding for HostMemory {
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["category"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// A time in which one host's available memory stayed below a threshold: of each threshold the deepest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WorstDip {
    /// Host id.
    pub host: String,
    /// Threshold.
    pub threshold_bytes: i64,
    /// The share of the host's physical memory that was asked for; absent where bytes were.
    pub threshold_share: Option<f64>,
    /// First sample below it.
    pub from_time_ms: i64,
    /// The sample after the last below it; the last itself where a gap or the trace's end follows.
    pub to_time_ms: i64,
    /// Length.
    pub duration_s: f64,
    /// Sample intervals below the threshold.
    pub intervals: i64,
    /// Least available memory in it.
    pub min_available_bytes: i64,
    /// Time of the least: the sample that the rest is of.
    pub min_time_ms: i64,
    /// Dynamic kernel then; absent where unknown, as below.
    pub dynamic_kernel_bytes: Option<i64>,
    /// Process memory then.
    pub process_bytes: Option<i64>,
    /// File cache then.
    pub file_cache_bytes: Option<i64>,
    /// Median of the host's dynamic kernel over its samples: what is usual.
    pub usual_dynamic_kernel_bytes: Option<f64>,
    /// Usual process memory of the host.
    pub usual_process_bytes: Option<f64>,
    /// Usual file cache of the host.
    pub usual_file_cache_bytes: Option<f64>,
}

impl Finding for WorstDip {
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// Programs that ran on a host at the deepest point of a dip: active processes by name, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct DipProcess {
    /// Host id.
    pub host: String,
    /// Time of the dip's deepest sample ([`WorstDip::min_time_ms`]).
    pub time_ms: i64,
    /// 1 is the largest.
    pub rank: i64,
    /// Name.
    pub name: String,
    /// Proportional memory of the active processes of that name then.
    pub bytes: i64,
    /// Mean over the samples in which one was active, as in [`crate::findings::TopProcess`].
    pub mean_bytes: f64,
}

impl Finding for DipProcess {
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["name"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// Memory of one host in one stretch of time: one sample, or a bucket of them in a long trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MemoryPoint {
    /// Host id.
    pub host: String,
    /// Start of the stretch.
    pub time_ms: i64,
    /// Samples in it.
    pub samples_count: i64,
    /// True if a gap lies between it and the point before: no line is drawn across.
    pub after_gap: bool,
    /// True if the owner was idle at its end; absent if unknown.
    pub idle: Option<bool>,
    /// Mean static kernel; absent where unknown.
    pub static_kernel_bytes: Option<f64>,
    /// Mean balloon; absent where unknown, as all below.
    pub balloon_bytes: Option<f64>,
    /// Mean dynamic kernel.
    pub dynamic_kernel_bytes: Option<f64>,
    /// Mean reserve; absent where unknown.
    pub lotsfree_bytes: Option<f64>,
    /// Mean process memory.
    pub process_bytes: Option<f64>,
    /// Mean file cache.
    pub file_cache_bytes: Option<f64>,
    /// Mean memory lent.
    pub guest_bytes: Option<f64>,
    /// Mean available memory.
    pub available_bytes: f64,
    /// Least available: what a dip looks like however long the stretch.
    pub available_min_bytes: i64,
    /// Least harvestable; absent where unknown.
    pub harvestable_min_bytes: Option<i64>,
    /// Mean harvestable; absent where unknown.
    pub harvestable_bytes: Option<f64>,
}

impl Finding for MemoryPoint {
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// Time that one host's available memory was below a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Dip {
    /// Host id.
    pub host: String,
    /// Threshold.
    pub threshold_bytes: i64,
    /// The share of the host's physical memory that was asked for; absent where bytes were.
    pub threshold_share: Option<f64>,
    /// Sample intervals below it.
    pub intervals: i64,
    /// Samples in all.
    pub samples_count: i64,
    /// Least available memory seen.
    pub min_available_bytes: i64,
    /// Time of the least.
    pub min_time_ms: i64,
}

impl Finding for Dip {
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// On how many hosts available memory was below a threshold how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct DipHosts {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Notion of available memory.
    #[serde(default)]
    pub notion: Notion,
    /// Threshold; absent where it is relative.
    pub threshold_bytes: Option<i64>,
    /// Threshold as a share of each host's physical memory; absent where it is absolute.
    pub threshold_share: Option<f64>,
    /// Sample intervals below it, at least; 0: none at all.
    pub at_least_intervals: i64,
    /// Hosts with so many.
    pub hosts_count: i64,
    /// Hosts of the class that know the notion.
    pub hosts_in_all: i64,
}

impl Finding for DipHosts {
    const PRINTED: Option<TablePlace> = printed(
        40,
        "Hosts whose available memory was so low in so many sample intervals",
    );
}
