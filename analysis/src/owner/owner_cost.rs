//! Cost of returns as the kernel measured it: stalls for memory, refaults, swap-ins and major faults.
//!
//! A window lasts from the last idle sample to the last sample within 200 s of the return, or to the first
//! sample after the return if that comes later. Windows are bounded by samples: a window holds up to one
//! interval of idle time, and [`findings::OwnerCost::mean_window_s`] is its mean length. The base line is a
//! window of as many samples in the presence after the return, from its middle on; it must lie wholly after
//! the return's window and within the presence.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::owner::memory_context::return_demands;
use crate::statistics::distribution::Distribution;
use crate::statistics::mean::Mean;
use crate::trace::reads::ReadSet;
use crate::trace::samples::COUNTERS;
use gleaner_hosts::derived::Return;
use gleaner_hosts::derived::unsigned;
use gleaner_policy::memory_context::{Demand, memory_context_bytes};
use gleaner_schemas::findings::{self, Category, CostWindow, Findings, Parameters};
use gleaner_schemas::units::stored;
use serde::{Deserialize, Serialize};

/// Kinds of window, with and without lent memory.
const KINDS: [(CostWindow, bool); 4] = [
    (CostWindow::Return, true),
    (CostWindow::Return, false),
    (CostWindow::Busy, true),
    (CostWindow::Busy, false),
];

/// Growth of the counters in each of [`KINDS`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OwnerCost([CounterGrowth; KINDS.len()]);

/// Growth of the counters over the windows of one of [`KINDS`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct CounterGrowth {
    length_ms: Mean,
    guest: Mean,
    memory_context: Mean,
    counters: [Distribution; COUNTERS.len()],
}

/// A window, from one sample to another.
struct Window {
    kind: CostWindow,
    from: usize,
    to: usize,
    /// Memory that the owner needs at the return; `None` if unknown or in a base line.
    demand: Option<Demand>,
}

impl Measure for OwnerCost {
    const OUTPUTS: &'static [MeasureOutput] =
        &[MeasureOutput::of::<findings::OwnerCost>(ReadSet::SAMPLES.and_processes()).on_returns()];

    fn of_host(host: &HostHistory<'_>, _: &Parameters) -> Result<Self> {
        let windows = windows(host)?;
        Ok(Self(
            KINDS.map(|kind| CounterGrowth::of_host(host, &windows, kind)),
        ))
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.length_ms.merge(&theirs.length_ms);
            mine.guest.merge(&theirs.guest);
            mine.memory_context.merge(&theirs.memory_context);
            for (mine, theirs) in mine.counters.iter_mut().zip(&theirs.counters) {
                mine.merge(theirs);
            }
        }
    }

    fn write(&self, size_class: &str, _: &Parameters, findings: &mut Findings) {
        let kinds = KINDS.iter().zip(&self.0);
        let records = kinds.filter_map(|(kind, growth)| growth.record(size_class, *kind));
        findings.owner_cost.extend(records);
    }
}

fn windows(host: &HostHistory<'_>) -> Result<Vec<Window>> {
    let mut windows = Vec::new();
    for (back, wanted) in host.returns.iter().zip(return_demands(host)?) {
        windows.push(Window {
            kind: CostWindow::Return,
            from: back.last_idle,
            to: *back.window.end(),
            demand: wanted.map(|w| w.demand),
        });
        windows.extend(base_line(host, back));
    }
    Ok(windows)
}

/// Base line: a window from the middle of the presence that the return began. A visit between two samples has
/// none.
fn base_line(host: &HostHistory<'_>, back: &Return) -> Option<Window> {
    let periods = &host.busy_periods;
    let first = *back.window.start();
    let presence = periods.get(periods.partition_point(|p| p.samples.end <= first))?;
    if presence.samples.start != first {
        return None;
    }
    let length_ms = presence.to_ms.saturating_sub(presence.from_ms);
    let middle_ms = presence.from_ms.saturating_add(length_ms / 2);
    let inside = &host.trace.samples.time_ms[presence.samples.clone()];
    let until_middle = inside.partition_point(|&t| t <= middle_ms);
    let from = (presence.samples.start + until_middle).checked_sub(1)?;
    let to = from + (back.window.end() - back.last_idle);
    let fits = from >= *back.window.end() && to < presence.samples.end;
    fits.then_some(Window {
        kind: CostWindow::Busy,
        from,
        to,
        demand: None,
    })
}

impl CounterGrowth {
    fn of_host(host: &HostHistory<'_>, windows: &[Window], kind: (CostWindow, bool)) -> Self {
        let samples = &host.trace.samples;
        let guest = |at| samples.category(Category::Guest, at).unwrap_or(0).max(0);
        let of_kind = windows
            .iter()
            .filter(|w| (w.kind, guest(w.from) > 0) == kind);
        let grown = of_kind.map(|w| (w, samples.growth(w.from, w.to)));
        let measured: Vec<_> = grown
            .filter(|(_, growth)| growth.iter().any(Option::is_some))
            .collect();
        let over = |value: &dyn Fn(&Window) -> Option<i64>| {
            let values = measured.iter().filter_map(|(w, _)| value(w));
            Mean::of(values)
        };
        Self {
            length_ms: over(&|w| samples.time_ms[w.to].checked_sub(samples.time_ms[w.from])),
            guest: over(&|w| Some(guest(w.from))),
            memory_context: over(&|w| {
                let demand = Demand {
                    guest_bytes: unsigned(guest(w.from)),
                    ..w.demand?
                };
                Some(stored(memory_context_bytes(&demand)))
            }),
            counters: std::array::from_fn(|counter| {
                let values = measured.iter().filter_map(|(_, growth)| growth[counter]);
                Distribution::of(values.map(|grown| (grown, 0)))
            }),
        }
    }

    /// Finding for one kind of window; `None` without a window.
    fn record(
        &self,
        size_class: &str,
        (window, lent): (CostWindow, bool),
    ) -> Option<findings::OwnerCost> {
        let [
            psi_some,
            psi_full,
            refault_file,
            refault_anon,
            swap_in,
            major_fault,
        ] = &self.counters;
        let p99 = |growth: &Distribution| growth.quantile(0.99);
        Some(findings::OwnerCost {
            size_class: size_class.to_owned(),
            window,
            had_guests: lent,
            windows_count: self.length_ms.count,
            mean_window_s: self.length_ms.mean()? / 1000.0,
            mean_guest_bytes: self.guest.mean()?,
            mean_memory_context_bytes: self.memory_context.mean(),
            mean_psi_memory_some_us: psi_some.mean(),
            median_psi_memory_some_us: psi_some.median(),
            p99_psi_memory_some_us: p99(psi_some),
            mean_psi_memory_full_us: psi_full.mean(),
            median_psi_memory_full_us: psi_full.median(),
            p99_psi_memory_full_us: p99(psi_full),
            mean_refault_file_count: refault_file.mean(),
            median_refault_file_count: refault_file.median(),
            p99_refault_file_count: p99(refault_file),
            mean_refault_anon_count: refault_anon.mean(),
            median_refault_anon_count: refault_anon.median(),
            p99_refault_anon_count: p99(refault_anon),
            mean_swap_in_count: swap_in.mean(),
            median_swap_in_count: swap_in.median(),
            p99_swap_in_count: p99(swap_in),
            mean_major_fault_count: major_fault.mean(),
            median_major_fault_count: major_fault.median(),
            p99_major_fault_count: p99(major_fault),
        })
    }
}
