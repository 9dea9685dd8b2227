//! The owners: their absences, the memory that could be leased, and the cost of leases to owners (Acharya &
//! Setia, sections 2, 3.4 and Table 6).

use super::finding::{Finding, HostFields, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// An absence of one host's owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct IdlePeriod {
    /// Id of the host.
    pub host_id: String,
    /// Start of the absence: the last activity before it.
    pub from_time_ms: i64,
    /// End of the absence.
    pub to_time_ms: i64,
    /// Length of the absence.
    pub duration_s: f64,
    /// True if a gap or the trace's start cut the start of the absence.
    pub is_start_censored: bool,
    /// True if a gap or the trace's end cut the end of the absence.
    pub is_end_censored: bool,
}

impl Finding for IdlePeriod {
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Quota of one host at its last sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Quota {
    /// Id of the host.
    pub host_id: String,
    /// Time of the host's last sample.
    pub time_ms: i64,
    /// Memory that could be leased: if idle, the smaller of `paper_quota_bytes` and `harvestable_bytes` plus
    /// lent memory; else 0.
    pub quota_bytes: i64,
    /// The paper's quota if the host were idle: total − in use − reserve − headroom.
    pub paper_quota_bytes: i64,
    /// Memory that could be taken without paging out the owner's pages: MemAvailable less the headroom.
    pub harvestable_bytes: Option<i64>,
    /// Reason of the quota, in words.
    pub reason: String,
}

impl Finding for Quota {
    const PRINTED: Option<TablePlace> = printed(200, "Quota at the last sample");
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields {
            text: Some(&mut self.reason),
            ..HostFields::id(&mut self.host_id)
        }
    }
}

/// State of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OwnerState {
    /// Away, counted from the last activity: no activity and a low load for five minutes or more.
    Idle,
    /// Present, between two absences.
    Busy,
}

/// Lengths of owners' absences and presences, over the hosts of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct OwnerPeriodLengths {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// State of the owner: away or present.
    pub state: OwnerState,
    /// Number of periods. A visit between two samples is a period of no length.
    pub periods_count: i64,
    /// Number of periods cut by a gap, by an end of the trace or while the presence was unknown: of the
    /// lengths, only `restricted_mean_s` includes them.
    pub censored_count: i64,
    /// Mean length of the complete periods; absent without any.
    pub mean_s: Option<f64>,
    /// Median length of the complete periods; absent without any.
    pub median_s: Option<f64>,
    /// 90 % quantile of the lengths of the complete periods; absent without any.
    pub p90_s: Option<f64>,
    /// 99 % quantile of the lengths of the complete periods; absent without any.
    pub p99_s: Option<f64>,
    /// Maximum length of the complete periods; absent without any.
    pub max_s: Option<f64>,
    /// Kaplan-Meier mean of all periods, restricted to the longest observed length. It counts a cut period as
    /// at least as long as observed.
    pub restricted_mean_s: Option<f64>,
}

impl Finding for OwnerPeriodLengths {
    const PRINTED: Option<TablePlace> = printed(80, "Lengths of idle and busy periods");
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Rate at which lent memory would be reclaimed: idle periods of five minutes or more (the rule's minimum)
/// that the owner or the load ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Reclaims {
    /// Id of the host; absent where hosts are pooled.
    pub host_id: Option<String>,
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Hosts whose idleness is known.
    pub hosts_count: i64,
    /// Number of reclaims.
    pub reclaims_count: i64,
    /// Time in which the idleness was known, all hosts together.
    pub observed_days: f64,
    /// Reclaims per host and day of that time.
    pub reclaims_per_day: f64,
}

impl Finding for Reclaims {
    const PRINTED: Option<TablePlace> = printed(90, "Rate of reclaims by returning owners");
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Page cache of files that are used again soon, found by looking ahead in the trace, over the hosts of one
/// class. In a busy period: files accessed in that period. In an idle period: files accessed in that period
/// or in the next busy period. The paper found this cache's mean plus one standard deviation to be within 15
/// % of memory, which is the paper's headroom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct LiveFileCache {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Hosts for which the figure is known.
    pub hosts_count: i64,
    /// Samples for which the figure is known.
    pub samples_count: i64,
    /// Samples for which a gap, an end of the trace or unknown presence comes before the end of the next
    /// period: their figure is a lower bound.
    pub censored_samples_count: i64,
    /// Mean over samples.
    pub mean_bytes: f64,
    /// Standard deviation over samples (n − 1); absent with one sample.
    pub sd_bytes: Option<f64>,
    /// Median over the samples.
    pub median_bytes: f64,
    /// Maximum over the samples.
    pub max_bytes: i64,
    /// Mean share of physical memory.
    pub mean_share: f64,
    /// Standard deviation of the shares.
    pub sd_share: Option<f64>,
    /// Mean plus standard deviation of the shares: the paper's check.
    pub mean_plus_sd_share: Option<f64>,
    /// 99 % quantile of the shares.
    pub p99_share: f64,
    /// Share of the samples with a figure within the headroom.
    pub within_headroom_share: f64,
}

impl Finding for LiveFileCache {
    const PRINTED: Option<TablePlace> = printed(30, "Page cache of files that are used again soon");
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Mode of lending: the memory that a host lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LendingMode {
    /// The paper's mode: all memory not in use above the reserve and the headroom, idle processes' pages and
    /// unused cache included.
    Paper,
    /// Only the part of that memory that can be taken without paging out the owner's pages.
    Gentle,
}

/// Memory that a mode of lending would lend, and memory that would have to be paged in again when owners
/// return.
///
/// The memory context size of a return is max(0, A + G + K − (M − lotsfree)). A is the footprint of the
/// distinct processes that were active in the first 200 s after the return; each counts with its largest
/// proportional size in that window. If no sample lies in the window, the first sample after the return
/// stands for it. K is the memory of the kernel at that time (static, dynamic and balloon). G is the memory
/// that the mode would have lent at the last idle sample. M is physical memory. The paper's equation 1 lost
/// the inner parenthesis in print, as the equation's own condition shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MemoryContext {
    /// Id of the host; absent where hosts are pooled.
    pub host_id: Option<String>,
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Mode of lending.
    pub mode: LendingMode,
    /// Memory that could be lent: mean over the samples at which the host was idle.
    pub mean_quota_bytes: Option<f64>,
    /// Returns with a known memory context.
    pub returns_count: i64,
    /// Mean footprint A over the returns.
    pub mean_footprint_bytes: f64,
    /// Mean memory context size over returns.
    pub mean_bytes: f64,
    /// Median memory context size over returns.
    pub median_bytes: f64,
    /// 90 % quantile of the memory context size over returns.
    pub p90_bytes: f64,
    /// 99 % quantile of the memory context size over returns.
    pub p99_bytes: f64,
    /// Maximum memory context size over returns.
    pub max_bytes: i64,
    /// Mean of the paper's loose upper bound: the part of A that was cached while the host was idle. This
    /// part is the footprint of those processes of A that had started before the return, limited to available
    /// memory.
    pub mean_upper_bound_bytes: f64,
    /// Share of the returns with a memory context above 0.
    pub share_of_returns_with_any: f64,
}

impl Finding for MemoryContext {
    const PRINTED: Option<TablePlace> = printed(100, "Cost of reclaims to owners: memory context");

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Kind of window: the time in which a cost was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CostWindow {
    /// From the last idle sample to the last sample in the first 200 s after the return.
    Return,
    /// As many samples, from the middle of the owner's presence that began with the return, if the presence
    /// lasts long enough. It shows the same counters without a recent return.
    Busy,
}

/// Growth of the kernel's counters over the windows of one kind. A figure includes only windows for which it
/// is known: both samples of the window are of one boot, and the counter did not fall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct OwnerCost {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Kind of the windows.
    pub window: CostWindow,
    /// True if memory was lent at the window's first sample.
    pub had_guests: bool,
    /// Number of windows with any counter.
    pub windows_count: i64,
    /// Mean time between the two samples of a window.
    pub mean_window_s: f64,
    /// Mean memory lent at the window's first sample.
    pub mean_guest_bytes: f64,
    /// Mean memory context size, predicted from the memory that was in fact lent; only for windows of kind
    /// `return`, and only where processes were recorded.
    pub mean_memory_context_bytes: Option<f64>,
    /// Mean time in which some task waited for memory; absent if no window has the counter.
    pub mean_psi_memory_some_us: Option<f64>,
    /// Median time in which some task waited for memory; absent if no window has the counter.
    pub median_psi_memory_some_us: Option<f64>,
    /// 99 % quantile, over the windows, of the time in which some task waited for memory; absent if no window
    /// has the counter.
    pub p99_psi_memory_some_us: Option<f64>,
    /// Mean time in which all tasks waited for memory; absent if no window has the counter.
    pub mean_psi_memory_full_us: Option<f64>,
    /// Median time in which all tasks waited for memory; absent if no window has the counter.
    pub median_psi_memory_full_us: Option<f64>,
    /// 99 % quantile, over the windows, of the time in which all tasks waited for memory; absent if no window
    /// has the counter.
    pub p99_psi_memory_full_us: Option<f64>,
    /// Mean number of file pages read again soon after their eviction; absent if no window has the counter.
    pub mean_refault_file_count: Option<f64>,
    /// Median number of file pages read again soon after their eviction; absent if no window has the counter.
    pub median_refault_file_count: Option<f64>,
    /// 99 % quantile, over the windows, of the number of file pages read again soon after their eviction;
    /// absent if no window has the counter.
    pub p99_refault_file_count: Option<f64>,
    /// Mean number of anonymous pages swapped in soon after they were swapped out; absent if no window has
    /// the counter.
    pub mean_refault_anon_count: Option<f64>,
    /// Median number of anonymous pages swapped in soon after they were swapped out; absent if no window has
    /// the counter.
    pub median_refault_anon_count: Option<f64>,
    /// 99 % quantile, over the windows, of the number of anonymous pages swapped in soon after they were
    /// swapped out; absent if no window has the counter.
    pub p99_refault_anon_count: Option<f64>,
    /// Mean number of pages swapped in; absent if no window has the counter.
    pub mean_swap_in_count: Option<f64>,
    /// Median number of pages swapped in; absent if no window has the counter.
    pub median_swap_in_count: Option<f64>,
    /// 99 % quantile, over the windows, of the number of pages swapped in; absent if no window has the
    /// counter.
    pub p99_swap_in_count: Option<f64>,
    /// Mean number of major page faults; absent if no window has the counter.
    pub mean_major_fault_count: Option<f64>,
    /// Median number of major page faults; absent if no window has the counter.
    pub median_major_fault_count: Option<f64>,
    /// 99 % quantile, over the windows, of the number of major page faults; absent if no window has the
    /// counter.
    pub p99_major_fault_count: Option<f64>,
}

impl Finding for OwnerCost {
    const PRINTED: Option<TablePlace> = printed(110, "Measured cost of returns to owners");
}
