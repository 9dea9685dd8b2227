//! Figures of one host in one cell of the grid.

use crate::derived::HostHistory;
use gleaner_hosts::derived::IdlePeriod;
use gleaner_hosts::derived::{self, unsigned};
use gleaner_policy::idle::Verdict;
use gleaner_policy::quota::{Limits, Mode, quota};
use gleaner_schemas::findings::{Category, Scope};
use std::ops::Range;

/// No machine has more memory; the limit keeps absurd figures from overflowing sums.
const LARGEST_BYTES: i64 = 1 << 56;

/// Figures of one host in a cell that its samples cover wholly. Means are weighted by time. In the means of
/// idle time, time that is not idle counts as 0, so that the sum over hosts is the memory that they have at
/// the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) physical_bytes: i64,
    pub(crate) available_bytes: i64,
    pub(crate) available_least_bytes: i64,
    /// Static and dynamic kernel memory. Like the other optional sizes, it is absent if it is unknown in any
    /// part of the cell.
    pub(crate) kernel_bytes: Option<i64>,
    pub(crate) process_bytes: Option<i64>,
    pub(crate) file_cache_bytes: Option<i64>,
    pub(crate) harvestable_bytes: Option<i64>,
    /// Maximum of memory that was not available.
    pub(crate) demand_most_bytes: i64,
    /// Minimum that the host may lend (available and lent memory less the headroom), idle or not; 0 while the
    /// network cannot reach the host.
    pub(crate) least_quota_bytes: i64,
    pub(crate) quota_at_start_bytes: i64,
    /// True if the host was idle all the time; `None` if idleness was unknown all the time.
    pub(crate) idle: Option<bool>,
    pub(crate) idle_ms: i64,
    pub(crate) idle_at_start: bool,
    /// True if the idle period at the cell's start ended in the cell: the owner returned, or the load rose.
    pub(crate) returned: bool,
    pub(crate) idle_available_bytes: i64,
    pub(crate) idle_paper_quota_bytes: i64,
    pub(crate) idle_harvestable_bytes: Option<i64>,
}

impl Cell {
    /// Memory that the host could lend throughout the cell. In scope `idle`, 0 if the host was not idle all
    /// the time; `None` if that is unknown.
    pub(crate) fn quota(&self, scope: Scope) -> Option<i64> {
        match (scope, self.idle) {
            (Scope::All, _) | (Scope::Idle, Some(true)) => Some(self.least_quota_bytes),
            (Scope::Idle, Some(false)) => Some(0),
            (Scope::Idle, None) => None,
        }
    }
}

/// Figures of one sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    physical: i64,
    available: i64,
    quota: i64,
    demand: i64,
    kernel: Option<i64>,
    process: Option<i64>,
    file_cache: Option<i64>,
    harvestable: Option<i64>,
    idle_is_known: bool,
}

impl Figures {
    pub(crate) fn of(
        host: &HostHistory<'_>,
        at: usize,
        headroom_share: f64,
        can_show_idle: bool,
    ) -> Self {
        let samples = &host.trace.samples;
        let bounded = |bytes: i64| bytes.clamp(0, LARGEST_BYTES);
        let of = |category| samples.category(category, at).map(bounded);
        let physical = bounded(samples.physical_bytes[at]);
        let available = bounded(samples.available_bytes[at]);
        let limits = Limits {
            mode: Mode::Paper,
            headroom_share,
            ..Limits::default()
        };
        // The paper's quota needs only these three categories, which every trace has.
        let categories = derived::Figures {
            physical_bytes: unsigned(physical),
            available_bytes: Some(unsigned(available)),
            guest_bytes: of(Category::Guest).map(unsigned),
            ..derived::Figures::default()
        };
        let verdict = host.idleness.verdicts[at];
        let quota = quota(&categories.known(), None, verdict, &limits);
        Self {
            physical,
            available,
            quota: gleaner_schemas::units::stored(quota.paper_quota_bytes),
            demand: (physical - available).max(0),
            // As in Table 2: an unknown static part counts in no category.
            kernel: of(Category::DynamicKernel)
                .map(|dynamic| dynamic + of(Category::StaticKernel).unwrap_or(0)),
            process: of(Category::Process),
            file_cache: of(Category::FileCache),
            harvestable: samples.harvestable_bytes[at].map(bounded),
            idle_is_known: can_show_idle && verdict != Verdict::Unknown,
        }
    }
}

/// A cell of which a part may have been added so far: sums in byte-milliseconds, and figures that are not
/// means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartialCell {
    first: Option<Figures>,
    idle_is_known: bool,
    idle_ms: i64,
    physical: i128,
    available: i128,
    kernel: Option<i128>,
    process: Option<i128>,
    file_cache: Option<i128>,
    harvestable: Option<i128>,
    idle_available: i128,
    idle_quota: i128,
    idle_harvestable: Option<i128>,
    available_least: i64,
    least_quota: i64,
    demand_most: i64,
}

impl Default for PartialCell {
    fn default() -> Self {
        Self {
            first: None,
            idle_is_known: true,
            idle_ms: 0,
            physical: 0,
            available: 0,
            kernel: Some(0),
            process: Some(0),
            file_cache: Some(0),
            harvestable: Some(0),
            idle_available: 0,
            idle_quota: 0,
            idle_harvestable: Some(0),
            available_least: i64::MAX,
            least_quota: i64::MAX,
            demand_most: 0,
        }
    }
}

impl PartialCell {
    /// Adds the time `during`, for which one sample's figures hold.
    pub(crate) fn add(&mut self, figures: &Figures, during: Range<i64>, periods: &[IdlePeriod]) {
        let ms = during.end - during.start;
        let idle_ms = if figures.idle_is_known {
            idle_ms(periods, &during)
        } else {
            0
        };
        let times = |bytes: i64, ms: i64| i128::from(bytes) * i128::from(ms);
        let add = |sum: &mut Option<i128>, bytes: Option<i64>, ms| {
            *sum = sum.zip(bytes).map(|(sum, bytes)| sum + times(bytes, ms));
        };
        self.first.get_or_insert(*figures);
        self.idle_is_known &= figures.idle_is_known;
        self.idle_ms += idle_ms;
        self.physical += times(figures.physical, ms);
        self.available += times(figures.available, ms);
        add(&mut self.kernel, figures.kernel, ms);
        add(&mut self.process, figures.process, ms);
        add(&mut self.file_cache, figures.file_cache, ms);
        add(&mut self.harvestable, figures.harvestable, ms);
        self.idle_available += times(figures.available, idle_ms);
        self.idle_quota += times(figures.quota, idle_ms);
        add(&mut self.idle_harvestable, figures.harvestable, idle_ms);
        self.available_least = self.available_least.min(figures.available);
        self.least_quota = self.least_quota.min(figures.quota);
        self.demand_most = self.demand_most.max(figures.demand);
    }

    /// The finished cell; all of its time must have been added.
    pub(crate) fn finish(&self, start_ms: i64, cell_ms: i64, periods: &[IdlePeriod]) -> Cell {
        let mean = |sum: i128| (sum / i128::from(cell_ms)) as i64;
        let next = periods.get(periods.partition_point(|p| p.to_ms <= start_ms));
        let open = next.filter(|p| p.from_ms <= start_ms && self.idle_is_known);
        let end_ms = start_ms.saturating_add(cell_ms);
        let returned = open.is_some_and(|p| p.end.is_some() && p.to_ms <= end_ms);
        // Two periods that touch are separate: the owner came and went between them.
        let idle = open.is_some_and(|p| p.to_ms >= end_ms && !returned);
        Cell {
            physical_bytes: mean(self.physical),
            available_bytes: mean(self.available),
            available_least_bytes: self.available_least,
            kernel_bytes: self.kernel.map(mean),
            process_bytes: self.process.map(mean),
            file_cache_bytes: self.file_cache.map(mean),
            harvestable_bytes: self.harvestable.map(mean),
            demand_most_bytes: self.demand_most,
            least_quota_bytes: self.least_quota,
            quota_at_start_bytes: self.first.map_or(0, |f| f.quota),
            idle: self.idle_is_known.then_some(idle),
            idle_ms: self.idle_ms,
            idle_at_start: open.is_some(),
            returned,
            idle_available_bytes: mean(self.idle_available),
            idle_paper_quota_bytes: mean(self.idle_quota),
            idle_harvestable_bytes: self.idle_harvestable.map(mean),
        }
    }
}

/// Part of `during` that lies in idle periods, which must be in order and disjoint.
fn idle_ms(periods: &[IdlePeriod], during: &Range<i64>) -> i64 {
    let first = periods.partition_point(|p| p.to_ms <= during.start);
    let inside = periods[first..]
        .iter()
        .take_while(|p| p.from_ms < during.end);
    inside
        .map(|p| p.to_ms.min(during.end) - p.from_ms.max(during.start))
        .sum()
}
