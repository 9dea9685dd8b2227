//! Memory context size: memory that would have to be paged in again at an owner's return if memory had been
//! lent (Acharya & Setia, section 3.4; [`gleaner_policy::memory_context`] has the rule).
//!
//! The trace need not contain any lending: G is the memory that each mode would have lent at the last idle
//! sample, by [`quota`]'s rule. Each return gives one size per mode. The finding also has the mode's quota
//! while the host is idle: gain and cost in one record.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::owner::quota::categories;
use crate::statistics::distribution::Distribution;
use crate::statistics::mean::Mean;
use crate::trace::reads::ReadSet;
use crate::trace::samples::Samples;
use gleaner_hosts::derived::unsigned;
use gleaner_hosts::derived::{Footprint, Process, Return, returned_boottime_ms};
use gleaner_policy::idle::Verdict;
use gleaner_policy::memory_context::{Demand, memory_context_bytes, upper_bound_bytes};
use gleaner_policy::quota::{Limits, Mode, Reason, quota};
use gleaner_schemas::findings::{self, Findings, LendingMode, NotionSizes, Parameters};
use gleaner_schemas::units::stored;
use serde::{Deserialize, Serialize};
use std::ops::Range;

const MODES: [(LendingMode, Mode); 2] = [
    (LendingMode::Paper, Mode::Paper),
    (LendingMode::Gentle, Mode::Gentle),
];

/// Memory that the owner needs at a return, without guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReturnDemand {
    /// A, K and M of the rule; no G.
    pub(crate) demand: Demand,
    /// The part of A that belongs to processes started before the return.
    cached_footprint_bytes: u64,
}

/// Demand at each return; `None` if sizes are unknown.
pub(crate) fn return_demands(host: &HostHistory<'_>) -> Result<Vec<Option<ReturnDemand>>> {
    let by_sample = host.trace.processes.by_sample(host.trace.samples.len());
    let of_return = |back| return_demands_at(host, &by_sample, back);
    host.returns.iter().map(of_return).collect()
}

/// Demand at one return, which may come from a rule other than the trace's own; `by_sample` are the rows of
/// the processes by sample.
pub(crate) fn return_demands_at(
    host: &HostHistory<'_>,
    by_sample: &[Range<usize>],
    back: &Return,
) -> Result<Option<ReturnDemand>> {
    let Some(footprint) = footprint(host, by_sample, back)? else {
        return Ok(None);
    };
    let memory = categories(&host.trace.samples, *back.window.start());
    Ok(memory.map(|memory| ReturnDemand {
        demand: Demand::without_guests(&memory, footprint.bytes),
        cached_footprint_bytes: footprint.cached_bytes,
    }))
}

/// Footprint in the window after the return; `None` if sizes are unknown.
fn footprint(
    host: &HostHistory<'_>,
    by_sample: &[Range<usize>],
    back: &Return,
) -> Result<Option<Footprint>> {
    let rows = &host.trace.processes.rows;
    let column = |name| rows.integers(name);
    let (pids, starts) = (column("pid")?, column("start_boottime_ms")?);
    let parts = [
        column("anon_bytes")?,
        column("shmem_bytes")?,
        column("file_bytes")?,
    ];
    let rows_there = by_sample[back.window.clone()].iter().cloned().flatten();
    let process = |row| Process::new(pids.get(row), starts.get(row), parts.map(|p| p.get(row)));
    let first = *back.window.start();
    let (time_ms, boottime_ms) = (
        host.trace.samples.time_ms[first],
        host.trace.samples.boottime_ms[first],
    );
    Ok(Footprint::of(
        rows.rows_count() > 0,
        rows_there.map(process),
        returned_boottime_ms(time_ms, boottime_ms, back.at_ms),
    ))
}

/// Memory that `mode` would lend at a sample if the host were idle; `None` if unknown.
fn quota_bytes(samples: &Samples, at: usize, mode: Mode, parameters: &Parameters) -> Option<u64> {
    let limits = Limits {
        mode,
        headroom_share: parameters.headroom_share,
        ..Limits::default()
    };
    let found = quota(
        &categories(samples, at)?,
        samples.mem_available(at, parameters.headroom_share),
        Verdict::Unknown,
        &limits,
    );
    (found.reason != Reason::HarvestableUnknown).then_some(found.idle_quota_bytes)
}

/// The memory context sizes of both modes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MemoryContext([ModeSizes; 2]);

/// Figures in one lending mode.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ModeSizes {
    /// Quota: mean over samples.
    quota_bytes: Mean,
    /// Footprint: mean over returns. All fields below are over returns, too.
    footprint: Mean,
    cost: Distribution,
    upper_bound: Mean,
    with_any: i64,
}

impl Measure for MemoryContext {
    const OUTPUTS: &'static [MeasureOutput] = &[
        MeasureOutput::of::<findings::MemoryContext>(ReadSet::SAMPLES.and_processes()).on_returns(),
        MeasureOutput::of::<NotionSizes>(ReadSet::SAMPLES.and_processes()),
    ];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        let wanted = return_demands(host)?;
        let of_mode = |(_, mode)| ModeSizes::of_host(host, &wanted, mode, parameters);
        Ok(Self(MODES.map(of_mode)))
    }

    fn write_host(&self, host: &str, size_class: &str, _: &Parameters, findings: &mut Findings) {
        let records = self.records(Some(host), size_class);
        findings.memory_context.extend(records);
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.quota_bytes.merge(&theirs.quota_bytes);
            mine.footprint.merge(&theirs.footprint);
            mine.cost.merge(&theirs.cost);
            mine.upper_bound.merge(&theirs.upper_bound);
            mine.with_any += theirs.with_any;
        }
    }

    fn write(&self, size_class: &str, _: &Parameters, findings: &mut Findings) {
        findings
            .memory_context
            .extend(self.records(None, size_class));
    }
}

impl MemoryContext {
    /// Findings of one host (`host`), or of all pooled hosts (`None`).
    fn records(
        &self,
        host: Option<&str>,
        size_class: &str,
    ) -> impl Iterator<Item = findings::MemoryContext> {
        let modes = MODES.iter().zip(&self.0);
        modes.filter_map(move |(&(mode, _), sizes)| sizes.record(host, size_class, mode))
    }
}

impl ModeSizes {
    fn of_host(
        host: &HostHistory<'_>,
        wanted: &[Option<ReturnDemand>],
        mode: Mode,
        parameters: &Parameters,
    ) -> Self {
        let samples = &host.trace.samples;
        let quota_at = |at| quota_bytes(samples, at, mode, parameters);
        let idle = (host.idleness.verdicts.iter().enumerate()).filter(|(_, v)| v.is_idle());
        let while_idle = idle.filter_map(|(at, _)| Some(stored(quota_at(at)?)));
        let (mut footprints, mut costs, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
        for (back, wanted) in host.returns.iter().zip(wanted) {
            let (Some(wanted), Some(guest_bytes)) = (wanted, quota_at(back.last_idle)) else {
                continue;
            };
            let demand = Demand {
                guest_bytes,
                ..wanted.demand
            };
            let available = unsigned(samples.available_bytes[back.last_idle]);
            let bound = upper_bound_bytes(wanted.cached_footprint_bytes, available);
            footprints.push(stored(demand.footprint_bytes));
            costs.push((stored(memory_context_bytes(&demand)), 0));
            bounds.push(stored(bound));
        }
        Self {
            quota_bytes: Mean::of(while_idle),
            with_any: costs.iter().filter(|(bytes, _)| *bytes > 0).count() as i64,
            footprint: Mean::of(footprints.into_iter()),
            cost: Distribution::of(costs.into_iter()),
            upper_bound: Mean::of(bounds.into_iter()),
        }
    }

    /// Finding of one mode; `None` without a return.
    fn record(
        &self,
        host: Option<&str>,
        size_class: &str,
        mode: LendingMode,
    ) -> Option<findings::MemoryContext> {
        Some(findings::MemoryContext {
            host_id: host.map(str::to_owned),
            size_class: size_class.to_owned(),
            mode,
            mean_quota_bytes: self.quota_bytes.mean(),
            returns_count: self.cost.count,
            mean_footprint_bytes: self.footprint.mean()?,
            mean_bytes: self.cost.mean()?,
            median_bytes: self.cost.median()?,
            p90_bytes: self.cost.quantile(0.9)?,
            p99_bytes: self.cost.quantile(0.99)?,
            max_bytes: self.cost.max,
            mean_upper_bound_bytes: self.upper_bound.mean()?,
            share_of_returns_with_any: self.with_any as f64 / self.cost.count as f64,
        })
    }
}
