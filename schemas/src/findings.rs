//! What the analysis finds: typed results, one JSON document.
//!
//! Under each measure's own key stands a list of flat records with units in their names, so that
//! any reader of JSON makes a table of it. A measure that the dataset cannot give is in
//! `not_measured`, with the reason, rather than a list of zeroes.

use serde::{Deserialize, Serialize};

/// Everything found in one dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// What the figures rest on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Availability periods shorter than this are dropped (the paper: five minutes).
    pub minimum_period_s: f64,
    /// Idle: no activity of the owner for this long (the paper: five minutes).
    pub idle_after_s: f64,
    /// Idle: 5-minute load average below this for as long (the paper: 0.3).
    pub load_limit: f64,
    /// Share of physical memory that is never lent (the paper: 15 %).
    pub headroom_share: f64,
    /// Sizes of the regions whose availability is measured.
    pub region_bytes: Vec<i64>,
    /// Thresholds of the dips.
    pub dip_threshold_bytes: Vec<i64>,
}

impl Default for Parameters {
    /// The paper's, with the sizes left for the analysis to choose from the hosts' memory.
    fn default() -> Self {
        Self {
            minimum_period_s: 300.0,
            idle_after_s: 300.0,
            load_limit: 0.3,
            headroom_share: 0.15,
            region_bytes: Vec::new(),
            dip_threshold_bytes: Vec::new(),
        }
    }
}

/// One host and how well it is covered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSummary {
    /// Host id.
    pub host: String,
    /// Host name.
    pub host_name: String,
    /// Class by memory size, e.g. `16-32 GiB`.
    pub size_class: String,
    /// Physical memory at the last sample.
    pub physical_bytes: i64,
    /// CPUs.
    pub cpus_count: Option<i64>,
    /// Kernel release.
    pub kernel_release: Option<String>,
    /// Configured time between samples.
    pub sample_interval_s: Option<f64>,
    /// Samples.
    pub samples_count: i64,
    /// First sample.
    pub from_time_ms: i64,
    /// Last sample.
    pub to_time_ms: i64,
    /// Share of the span between them that samples cover (gaps are what is missing).
    pub coverage_share: f64,
    /// Share of the covered time in which the host was idle; absent where activity is unknown.
    pub idle_share: Option<f64>,
}

/// Category of memory, as the analysis and the reports name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// The rest.
    Available,
}

impl Category {
    /// All of them; they sum to physical memory, the remainder beside.
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

    /// Its column in `samples`.
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

    /// Its name for people.
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
pub struct MemoryUsage {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Category, or `kernel` (static and dynamic), `physical`, `harvestable`, `remainder`.
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
    /// Median.
    pub median_bytes: f64,
    /// Largest.
    pub max_bytes: i64,
    /// Mean share of physical memory.
    pub mean_share: f64,
}

/// Memory of one host in one stretch of time: one sample, or a bucket of them in a long trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// Host id.
    pub host: String,
    /// Start of the stretch.
    pub time_ms: i64,
    /// Samples in it.
    pub samples_count: i64,
    /// Whether a gap lies between it and the point before: no line is drawn across.
    pub after_gap: bool,
    /// Whether the owner was idle at its end; absent where unknown.
    pub idle: Option<bool>,
    /// Mean static kernel; absent where unknown.
    pub static_kernel_bytes: Option<f64>,
    /// Mean balloon.
    pub balloon_bytes: f64,
    /// Mean dynamic kernel.
    pub dynamic_kernel_bytes: f64,
    /// Mean reserve; absent where unknown.
    pub lotsfree_bytes: Option<f64>,
    /// Mean process memory.
    pub process_bytes: f64,
    /// Mean file cache.
    pub file_cache_bytes: f64,
    /// Mean memory lent.
    pub guest_bytes: f64,
    /// Mean available.
    pub available_bytes: f64,
    /// Least available: what a dip looks like however long the stretch.
    pub available_min_bytes: i64,
    /// Least harvestable; absent where unknown.
    pub harvestable_min_bytes: Option<i64>,
    /// Mean harvestable; absent where unknown.
    pub harvestable_bytes: Option<f64>,
}

/// How often one host's available memory was below a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dip {
    /// Host id.
    pub host: String,
    /// Threshold.
    pub threshold_bytes: i64,
    /// Sample intervals below it.
    pub intervals: i64,
    /// Samples in all.
    pub samples_count: i64,
    /// Least available memory seen.
    pub min_available_bytes: i64,
    /// When that was.
    pub min_time_ms: i64,
}

/// Which time counts for an availability period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All time.
    All,
    /// Inside idle periods only: it ends when the owner returns as well.
    Idle,
}

/// How long regions of one size stay available, over the hosts of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AvailabilityPeriods {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Which time counts.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Periods kept (not shorter than the minimum).
    pub periods: i64,
    /// Of those, cut by a gap or an end of the trace: they lasted longer than what was seen.
    pub censored: i64,
    /// Mean length of the periods as seen; absent without any.
    pub mean_s: Option<f64>,
    /// Median length as seen.
    pub median_s: Option<f64>,
    /// Longest as seen.
    pub longest_s: Option<f64>,
    /// Kaplan-Meier mean, restricted to the longest length seen: counts what the cut periods at least lasted.
    pub restricted_mean_s: Option<f64>,
    /// Share of the covered time in which the region was available (all scopes: of all covered time).
    pub available_time_share: Option<f64>,
}

/// A time in which one host's owner was away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdlePeriod {
    /// Host id.
    pub host: String,
    /// Its start, backdated to the last activity seen.
    pub from_time_ms: i64,
    /// Its end.
    pub to_time_ms: i64,
    /// Length.
    pub duration_s: f64,
    /// Whether its start was cut by a gap or the trace's start.
    pub start_censored: bool,
    /// Whether its end was cut by a gap or the trace's end.
    pub end_censored: bool,
}

/// What one host could lease at its last sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quota {
    /// Host id.
    pub host: String,
    /// The sample.
    pub time_ms: i64,
    /// What could be leased now: the smaller of the two below when idle, else 0.
    pub quota_bytes: i64,
    /// The paper's recruited memory, were the host idle: total − in use − reserve − headroom.
    pub recruitable_bytes: i64,
    /// What could be taken without pushing the owner's pages out.
    pub harvestable_bytes: Option<i64>,
    /// Why the quota is what it is, in words.
    pub reason: String,
}

/// A process name and what it used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopProcess {
    /// Host id.
    pub host: String,
    /// Name.
    pub name: String,
    /// Samples in which a process of that name was active.
    pub active_samples_count: i64,
    /// Mean over those samples of its proportional memory, all processes of the name together.
    pub mean_bytes: f64,
    /// Largest.
    pub max_bytes: i64,
    /// CPU time used.
    pub cpu_s: f64,
}

/// A file and the page cache it held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopFile {
    /// Host id.
    pub host: String,
    /// Path where the host's owner allows it, else the file's id.
    pub file: String,
    /// Samples in which it was in use.
    pub samples_count: i64,
    /// Mean cached bytes over those samples.
    pub mean_cached_bytes: f64,
    /// Most cached bytes.
    pub max_cached_bytes: i64,
}

/// A time without samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Host id.
    pub host: String,
    /// Last sample before.
    pub from_time_ms: i64,
    /// First sample after.
    pub to_time_ms: i64,
    /// Length.
    pub duration_s: f64,
    /// Cause.
    pub cause: String,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absence {
    /// Host id.
    pub host: String,
    /// What.
    pub item: String,
    /// Why, in one word.
    pub reason: String,
    /// What the system said.
    pub detail: String,
    /// Samples in which it was absent.
    pub samples_count: i64,
}

/// A source of the owner's activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivitySource {
    /// Host id.
    pub host: String,
    /// Source.
    pub source: String,
    /// State.
    pub state: String,
    /// Samples in that state.
    pub samples_count: i64,
}

/// How far the two ways to count available memory differ on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// Host id.
    pub host: String,
    /// Mean of (what is left over − the sum of the parts).
    pub mean_bytes: f64,
    /// Largest absolute difference.
    pub max_abs_bytes: i64,
    /// The same as a share of physical memory.
    pub max_abs_share: f64,
}

/// What tracing cost one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentCost {
    /// Host id.
    pub host: String,
    /// Mean CPU time a sample.
    pub mean_cpu_ms: f64,
    /// Largest CPU time of a sample.
    pub max_cpu_ms: f64,
    /// Share of one CPU at the configured interval.
    pub cpu_share: Option<f64>,
    /// Most resident memory.
    pub max_rss_bytes: i64,
}

/// A measure that the dataset cannot give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// Key of the measure.
    pub measure: String,
    /// Host id, or `all`.
    pub host: String,
    /// Why.
    pub reason: String,
}
