//! What returns cost, as the kernel measured it: stalls for memory, refaults, swap-ins and major faults.
//!
//! A window reaches from the last idle sample to the last within 200 s of the return; where the first sample comes
//! later than that, it ends the window. Samples are what there is: a window holds up to one interval of idle time, and
//! is as long as [`findings::OwnerCost::mean_window_s`] says. The base line is taken the same way from the
//! middle of busy periods that last twice the window or more, so that it lies inside them and after the owner has
//! settled.

use crate::error::Result;
use crate::measure::Measure;
use crate::owner::busy::BusyPeriod;
use crate::owner::memory_context::wanted;
use crate::owner::returns;
use crate::statistics::distribution::Distribution;
use crate::trace::HostTrace;
use crate::trace::samples::{COUNTERS, unsigned};
use gleaner_policy::memory_context::{Demand, memory_context_bytes};
use gleaner_schemas::findings::{self, Category, CostWindow, Findings, Parameters};
use gleaner_schemas::units::stored;

/// The kinds of time that are told apart, with and without memory lent.
const KINDS: [(CostWindow, bool); 4] = [
    (CostWindow::Return, true),
    (CostWindow::Return, false),
    (CostWindow::Busy, true),
    (CostWindow::Busy, false),
];

/// Growth of the counters in each of [`KINDS`].
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnerCost([OfKind; KINDS.len()]);

/// Growth in one kind of time, over windows.
#[derive(Clone, Debug, Default)]
struct OfKind {
    length_ms: Distribution,
    guest: Distribution,
    memory_context: Distribution,
    counters: [Distribution; COUNTERS.len()],
}

/// One window, from one sample to another.
struct Window {
    kind: CostWindow,
    from: usize,
    to: usize,
    /// What the owner wants at a return, where it is known.
    demand: Option<Demand>,
}

impl Measure for OwnerCost {
    fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Result<Self> {
        let mut windows = after_returns(trace)?;
        windows.extend(amid_presences(trace, parameters));
        Ok(Self(
            KINDS.map(|kind| OfKind::of_host(trace, &windows, kind)),
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

fn after_returns(trace: &HostTrace<'_>) -> Result<Vec<Window>> {
    let returns = trace.returns.iter().zip(wanted(trace)?);
    Ok(returns
        .map(|(back, wanted)| Window {
            kind: CostWindow::Return,
            from: back.last_idle,
            to: *back.window.end(),
            demand: wanted.map(|w| w.demand),
        })
        .collect())
}

fn amid_presences(trace: &HostTrace<'_>, parameters: &Parameters) -> Vec<Window> {
    let time_ms = &trace.samples.time_ms;
    let window_ms = (parameters.return_window_s * 1000.0) as i64;
    let of_period = |period: &BusyPeriod| {
        let length_ms = period.to_ms.saturating_sub(period.from_ms);
        let middle_ms = period.from_ms + length_ms / 2;
        if length_ms == 0 || length_ms < window_ms.saturating_mul(2) {
            return None;
        }
        let before = time_ms[period.samples.clone()].partition_point(|&t| t <= middle_ms);
        let first = period.samples.start + before;
        let window = returns::window(time_ms, &trace.segments, first, middle_ms, window_ms)?;
        Some(Window {
            kind: CostWindow::Busy,
            from: first - 1,
            to: *window.end(),
            demand: None,
        })
    };
    trace.busy_periods.iter().filter_map(of_period).collect()
}

impl OfKind {
    fn of_host(trace: &HostTrace<'_>, windows: &[Window], kind: (CostWindow, bool)) -> Self {
        let samples = &trace.samples;
        let guest = |at| samples.category(Category::Guest, at).unwrap_or(0).max(0);
        let of_kind = windows
            .iter()
            .filter(|w| (w.kind, guest(w.from) > 0) == kind);
        let grown = of_kind.map(|w| (w, samples.growth(w.from, w.to)));
        let measured: Vec<_> = grown
            .filter(|(_, growth)| growth.iter().any(Option::is_some))
            .collect();
        let over = |value: &dyn Fn(&Window) -> Option<i64>| {
            let values = measured.iter().filter_map(|(w, _)| Some((value(w)?, 0)));
            Distribution::of(values)
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

    /// `None` without a window.
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
            lent,
            windows: self.length_ms.count,
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
