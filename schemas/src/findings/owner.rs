//! The owners: when away, what could be leased, and what leasing would cost them (Acharya & Setia, sections 2, 3.4
//! and Table 6).

use super::finding::{Finding, HostFields, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// A time in which one host's owner was away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct IdlePeriod {
    /// Host id.
    pub host: String,
    /// Start of the period, backdated to the last activity seen.
    pub from_time_ms: i64,
    /// End of the period.
    pub to_time_ms: i64,
    /// Length.
    pub duration_s: f64,
    /// True if its start was cut by a gap or the trace's start.
    pub start_censored: bool,
    /// True if its end was cut by a gap or the trace's end.
    pub end_censored: bool,
}

impl Finding for IdlePeriod {
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// Memory that one host could lease at its last sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Quota {
    /// Host id.
    pub host: String,
    /// The sample.
    pub time_ms: i64,
    /// Memory that could be leased now: the smaller of the two below when idle, else 0.
    pub quota_bytes: i64,
    /// The paper's recruited memory, were the host idle: total − in use − reserve − headroom.
    pub recruitable_bytes: i64,
    /// Memory that could be taken without pushing the owner's pages out.
    pub harvestable_bytes: Option<i64>,
    /// Reason of the quota, in words.
    pub reason: String,
}

impl Finding for Quota {
    const PRINTED: Option<TablePlace> = printed(200, "What could be lent at the last sample");
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields {
            text: Some(&mut self.reason),
            ..HostFields::id(&mut self.host)
        }
    }
}

/// State of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OwnerState {
    /// Away: no activity, and a low load, for five minutes or more; from the last activity on.
    Idle,
    /// Between two absences.
    Busy,
}

/// Times that owners are away, and times that they are there, over the hosts of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AbsenceLengths {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Away or there.
    pub state: OwnerState,
    /// Periods seen. A visit between two samples is one of no length.
    pub periods: i64,
    /// Number of those cut by a gap, an end of the trace or the loss of sight: in no figure but the last.
    pub censored: i64,
    /// Mean length of those seen from start to end; absent without any, as all below.
    pub mean_s: Option<f64>,
    /// Median.
    pub median_s: Option<f64>,
    /// A tenth lasts longer.
    pub p90_s: Option<f64>,
    /// One in a hundred lasts longer.
    pub p99_s: Option<f64>,
    /// Longest.
    pub max_s: Option<f64>,
    /// Kaplan-Meier mean, restricted to the longest length seen: counts what the cut periods at least lasted.
    pub restricted_mean_s: Option<f64>,
}

impl Finding for AbsenceLengths {
    const PRINTED: Option<TablePlace> = printed(80, "How long owners are away, and there");
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Rate at which lent memory would be taken back: absences of at least the rule's five minutes that the owner or the
/// load ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Reclaims {
    /// Host id; absent where hosts are pooled.
    pub host: Option<String>,
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Hosts that can tell.
    pub hosts_count: i64,
    /// Reclaims.
    pub reclaims: i64,
    /// Time in which it could be told whether the owner was away, of all hosts together.
    pub observed_days: f64,
    /// Reclaims per host and day of that time.
    pub reclaims_per_day: f64,
}

impl Finding for Reclaims {
    const PRINTED: Option<TablePlace> = printed(90, "How often owners take memory back");
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// Page cache of files that are used again soon, by lookahead, over the hosts of one class: in a busy period the files
/// accessed anywhere in it, in an idle one those accessed in it or in the busy period that follows. The paper found its
/// mean and one deviation to be within 15 % of memory, which is its headroom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct LiveFileCache {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Hosts that have it.
    pub hosts_count: i64,
    /// Samples that have it.
    pub samples_count: i64,
    /// Number of those cut by a gap, an end of the trace or a loss of sight before the end of their period
    /// and the next: for them the figure is a lower bound.
    pub cut_samples_count: i64,
    /// Mean over samples.
    pub mean_bytes: f64,
    /// Standard deviation over samples (n − 1); absent with one sample.
    pub sd_bytes: Option<f64>,
    /// Median.
    pub median_bytes: f64,
    /// Largest.
    pub max_bytes: i64,
    /// Mean share of physical memory.
    pub mean_share: f64,
    /// Standard deviation of the shares.
    pub sd_share: Option<f64>,
    /// Mean plus standard deviation as a share: the paper's check.
    pub mean_plus_sd_share: Option<f64>,
    /// One sample in a hundred has a larger share.
    pub p99_share: f64,
    /// Share of the samples in which it was within the headroom.
    pub within_headroom_share: f64,
}

impl Finding for LiveFileCache {
    const PRINTED: Option<TablePlace> = printed(30, "Page cache of files that are used again soon");
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Extent to which lending goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LendingMode {
    /// The paper's: everything not in use above the reserve and the headroom, idle processes' pages and unused cache
    /// included.
    Paper,
    /// Part of it that can be taken without pushing the owner's pages out.
    Gentle,
}

/// Memory that a mode of lending would give, and memory that would have to be paged in again when owners return.
///
/// At each return: A is the footprint of the distinct processes that were active in the first 200 s (the largest
/// proportional size of each there; where samples are too far apart for it, the first after the return stands for the
/// window), K the kernel's memory then, static, dynamic and a balloon's, G what the mode would have lent at the last
/// idle sample, M physical memory. The memory context size is max(0, A + G + K − (M − lotsfree)): the paper's equation 1
/// lost that parenthesis in print, as its own condition shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MemoryContext {
    /// Host id; absent where hosts are pooled.
    pub host: Option<String>,
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Extent to which lending goes.
    pub mode: LendingMode,
    /// Memory that could be lent: mean over the samples in which the rule called the host idle.
    pub mean_lendable_bytes: Option<f64>,
    /// Returns of which it can be told.
    pub returns: i64,
    /// Mean of A.
    pub mean_footprint_bytes: f64,
    /// Mean memory context size over returns.
    pub mean_bytes: f64,
    /// Median.
    pub median_bytes: f64,
    /// One return in ten has a larger one.
    pub p90_bytes: f64,
    /// One in a hundred has.
    pub p99_bytes: f64,
    /// Largest.
    pub max_bytes: i64,
    /// Mean of the paper's loose upper bound: the part of A that was cached while the host was idle, which is the
    /// footprint of those processes of A that had started before the return, as far as memory was available.
    pub upper_bound_mean_bytes: f64,
    /// Share of the returns with any memory context at all.
    pub share_of_returns_with_any: f64,
}

impl Finding for MemoryContext {
    const PRINTED: Option<TablePlace> = printed(100, "What that would cost them: memory context");

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// Time that a cost was measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CostWindow {
    /// From the last idle sample to the last in the first 200 s after the return.
    Return,
    /// As many samples from the middle of the presence that began with the return, if it lasts long enough:
    /// the same counters without a recent return.
    Busy,
}

/// Growth of the kernel's counters in one kind of time. Each figure is over the windows that have it: both
/// samples are of one boot, and the counter did not fall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct OwnerCost {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Time of the measurement.
    pub window: CostWindow,
    /// True if memory was lent at the sample that the window begins with.
    pub lent: bool,
    /// Windows with any counter.
    pub windows: i64,
    /// Mean time between the two samples of a window.
    pub mean_window_s: f64,
    /// Mean memory lent at its first.
    pub mean_guest_bytes: f64,
    /// Mean memory context size that the memory lent in fact predicts; of returns alone, and only where
    /// processes were recorded.
    pub mean_memory_context_bytes: Option<f64>,
    /// Time in which some task waited for memory: mean; absent where no window has it, as all below.
    pub mean_psi_memory_some_us: Option<f64>,
    /// Median.
    pub median_psi_memory_some_us: Option<f64>,
    /// One window in a hundred has more.
    pub p99_psi_memory_some_us: Option<f64>,
    /// Time in which all tasks waited for memory: mean.
    pub mean_psi_memory_full_us: Option<f64>,
    /// Median.
    pub median_psi_memory_full_us: Option<f64>,
    /// One window in a hundred has more.
    pub p99_psi_memory_full_us: Option<f64>,
    /// File pages read again soon after they were evicted: mean.
    pub mean_refault_file_count: Option<f64>,
    /// Median.
    pub median_refault_file_count: Option<f64>,
    /// One window in a hundred has more.
    pub p99_refault_file_count: Option<f64>,
    /// Anonymous pages swapped in soon after they were swapped out: mean.
    pub mean_refault_anon_count: Option<f64>,
    /// Median.
    pub median_refault_anon_count: Option<f64>,
    /// One window in a hundred has more.
    pub p99_refault_anon_count: Option<f64>,
    /// Pages swapped in: mean.
    pub mean_swap_in_count: Option<f64>,
    /// Median.
    pub median_swap_in_count: Option<f64>,
    /// One window in a hundred has more.
    pub p99_swap_in_count: Option<f64>,
    /// Major page faults: mean.
    pub mean_major_fault_count: Option<f64>,
    /// Median.
    pub median_major_fault_count: Option<f64>,
    /// One window in a hundred has more.
    pub p99_major_fault_count: Option<f64>,
}

impl Finding for OwnerCost {
    const PRINTED: Option<TablePlace> = printed(110, "What returns cost them as measured");
}
