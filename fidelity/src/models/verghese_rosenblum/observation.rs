//! Slowdowns of our workloads with less local memory, from their recordings.
//!
//! A workload of one process follows from its curve. Several processes are simulated with a common memory, from the
//! order of their page references.

use super::model::Model;
use super::workload::{self, Process, Recordings, Workload};
use crate::error::{FidelityError, Result};
use gleaner_simulator::models::ProgramCurve;
use gleaner_simulator::models::verghese_rosenblum::{
    CpuUse, PageFetch, SharedMemory, faults, local_s, now_slowdown, numa_slowdown, share_cpu,
    shared_cpu_slowdown, stalled_slowdown,
};
use gleaner_simulator::parallel;
use gleaner_simulator::references::{OrderReader, ReferencesError};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

/// Local memory of the slowdowns, in % of the footprint.
pub(super) const PERCENTS: [u32; 5] = [HALF, 60, 70, 80, 90];
pub(super) const HALF: u32 = 50;
/// Local memory among which the knee of the faults is searched.
const KNEE_PERCENTS: std::ops::RangeInclusive<u32> = HALF..=100;
/// Part of the faults of half the footprint that is left above the knee.
const KNEE_FAULTS: f64 = 0.1;
const MIB: f64 = 1_048_576.0;

/// Figures of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WorkloadFigures {
    pub(super) footprint_mib: f64,
    /// Cache misses in 1,000 instructions, with the paper's cache and with the larger one.
    pub(super) misses_per_1000: f64,
    pub(super) larger_misses_per_1000: f64,
    /// Share of the misses that are to local memory, by the memory in % of the footprint.
    pub(super) local_shares: BTreeMap<u32, f64>,
    /// Slowdowns by the local memory in % of the footprint.
    pub(super) slowdowns: BTreeMap<(u32, Model), f64>,
    /// Least memory, in % of the footprint, with few of the faults of half the footprint: of the first process alone.
    pub(super) knee_percent: Option<f64>,
    /// Use of CPU and link on MYRNOW with half of the footprint local; only for several processes.
    pub(super) shared_use: Option<SharedUse>,
}

/// Use of a CPU and a link by several processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SharedUse {
    pub(super) busy_percent: f64,
    pub(super) link_percent: f64,
    pub(super) slowdown: f64,
    /// Slowdown by mean values, which take the times as exponentially distributed; absent without faults.
    pub(super) estimated_slowdown: Option<f64>,
}

impl SharedUse {
    fn of(usage: &CpuUse, processes: usize, fetch: PageFetch) -> Self {
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let percent = |ns: u64| ns as f64 / usage.elapsed_ns.max(1) as f64 * 100.0;
        let between_faults_s = seconds(usage.busy_ns) / usage.faults as f64;
        let (link_s, delay_s) = (seconds(fetch.link_ns), seconds(fetch.delay_ns));
        let processes = u32::try_from(processes).ok().filter(|_| usage.faults > 0);
        Self {
            busy_percent: percent(usage.busy_ns),
            link_percent: percent(usage.link_ns),
            slowdown: usage.slowdown(),
            estimated_slowdown: processes.and_then(|processes| {
                shared_cpu_slowdown(processes, between_faults_s, link_s, delay_s).ok()
            }),
        }
    }
}

/// Figures of all workloads.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkloadObservations {
    pub(super) workloads: BTreeMap<Workload, WorkloadFigures>,
}

impl WorkloadObservations {
    /// Observes the workloads whose recordings are in a folder.
    ///
    /// # Errors
    /// A recording that is missing, cut or of something else, by path.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let recorded = workload::read(folder)?;
        let bar = gleaner_terminal::bar("fidelity", recorded.len() as u64);
        let mut workloads = BTreeMap::new();
        for of in &recorded {
            bar.set_message(of.workload.row());
            workloads.insert(of.workload, observed(of)?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(Self { workloads })
    }

    /// Slowdown of a workload.
    pub(super) fn slowdown(&self, workload: Workload, percent: u32, model: Model) -> Option<f64> {
        let slowdowns = &self.workloads.get(&workload)?.slowdowns;
        slowdowns.get(&(percent, model)).copied()
    }
}

fn observed(recorded: &Recordings) -> Result<WorkloadFigures> {
    let [misses_per_1000, larger_misses_per_1000] = [
        per_1000(recorded, |process| ProgramCurve(&process.misses)),
        per_1000(recorded, |process| ProgramCurve(&process.larger)),
    ];
    let first = recorded.processes.first();
    let observed = match recorded.processes.as_slice() {
        [process] => of_curve(process)?,
        _ => of_orders(recorded)?,
    };
    Ok(WorkloadFigures {
        misses_per_1000,
        larger_misses_per_1000,
        knee_percent: first.and_then(|process| knee_percent(ProgramCurve(&process.misses))),
        ..observed
    })
}

/// References of a curve: its cache misses.
fn misses(program: ProgramCurve<'_>) -> f64 {
    program.references_to_first(program.0.footprint_pages as f64)
}

fn per_1000<'a>(recorded: &'a Recordings, curve: impl Fn(&'a Process) -> ProgramCurve<'a>) -> f64 {
    let curves = || recorded.processes.iter().map(&curve);
    let instructions = curves().filter_map(|program| program.0.instructions_count);
    let instructions: u64 = instructions.sum();
    curves().map(misses).sum::<f64>() / instructions as f64 * 1000.0
}

/// A workload of one process, which has CPU and link for itself.
fn of_curve(process: &Process) -> Result<WorkloadFigures> {
    let curve = &process.misses;
    let program = ProgramCurve(curve);
    let mut observed = WorkloadFigures {
        footprint_mib: curve.footprint_pages as f64 * curve.page_bytes as f64 / MIB,
        ..WorkloadFigures::default()
    };
    for percent in PERCENTS {
        let pages = program.share_pages(f64::from(percent) / 100.0);
        let local_share = program.references_to_first(pages) / misses(program);
        observed.local_shares.insert(percent, local_share);
        for model in Model::ALL {
            let slowdown = match model.page_fetch()? {
                Some(fetch) => now_slowdown(program, pages, fetch.total_ns() as f64 * 1e-9),
                None => numa_slowdown(program, pages, model.remote_miss_s()?),
            };
            let place = (percent, model);
            observed
                .slowdowns
                .extend(slowdown.map(|slowdown| (place, slowdown)));
        }
    }
    Ok(observed)
}

/// A workload of several processes.
fn of_orders(recorded: &Recordings) -> Result<WorkloadFigures> {
    let at_once = recorded.workload.at_once();
    // With all memory local, the run has the footprint, the misses of each page, and LOCAL's duration.
    let mut memory = shared(recorded, u32::MAX, PageFetch::default())?;
    let local = share_cpu(&mut memory, recorded.processes.len(), at_once)?;
    check_orders(recorded, memory.references_count())?;
    let (footprint, all) = (memory.footprint_pages(), memory.references_count() as f64);
    let page_bytes = recorded
        .processes
        .first()
        .map_or(0, |p| p.misses.page_bytes);
    let mut observed = WorkloadFigures {
        footprint_mib: f64::from(footprint) * page_bytes as f64 / MIB,
        ..WorkloadFigures::default()
    };
    let mut jobs = Vec::new();
    for percent in PERCENTS {
        let pages = (f64::from(footprint) * f64::from(percent) / 100.0) as u32;
        let to_local = memory.references().to_first(&[u64::from(pages)]);
        let to_local = to_local.first().copied().unwrap_or(0) as f64;
        observed.local_shares.insert(percent, to_local / all);
        for model in Model::ALL {
            match model.page_fetch()? {
                Some(fetch) => jobs.push((percent, model, pages, fetch)),
                None => {
                    let local_s = local.busy_ns as f64 * 1e-9;
                    let miss_s = model.remote_miss_s()?;
                    let slowdown = stalled_slowdown(local_s, all - to_local, miss_s);
                    observed.slowdowns.insert((percent, model), slowdown);
                }
            }
        }
    }
    drop(memory);
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let found = parallel::each(threads, &jobs, |&(_, _, pages, fetch)| {
        let mut memory = shared(recorded, pages, fetch)?;
        share_cpu(&mut memory, recorded.processes.len(), at_once)
    })?;
    for ((percent, model, _, fetch), usage) in jobs.into_iter().zip(found) {
        let place = (percent, model);
        observed.slowdowns.insert(place, usage.slowdown());
        if place == (HALF, Model::MyrNow) {
            let processes = at_once.min(recorded.processes.len());
            observed.shared_use = Some(SharedUse::of(&usage, processes, fetch));
        }
    }
    Ok(observed)
}

/// The processes of a workload with a common memory.
fn shared(
    recorded: &Recordings,
    local_pages: u32,
    fetch: PageFetch,
) -> std::result::Result<SharedMemory<OrderReader>, ReferencesError> {
    let orders = recorded.processes.iter();
    let orders = orders.map(|process| OrderReader::open(&process.order));
    let orders = orders.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(SharedMemory::new(orders, local_pages, fetch))
}

/// Refuses orders of other recordings than the curves'.
fn check_orders(recorded: &Recordings, references: u64) -> Result<()> {
    let of_curves = recorded.processes.iter();
    let of_curves = of_curves.map(|process| misses(ProgramCurve(&process.misses)));
    let expected = of_curves.sum::<f64>();
    if references as f64 == expected {
        return Ok(());
    }
    let path = recorded
        .processes
        .first()
        .map(|process| process.order.clone());
    Err(FidelityError::Recording {
        path: path.unwrap_or_default(),
        fault: format!(
            "the processes' orders have {references} misses, and their curves have {expected}"
        ),
    })
}

/// Least memory, in % of the footprint, with a tenth of the faults of half the footprint.
fn knee_percent(program: ProgramCurve<'_>) -> Option<f64> {
    local_s(program)?;
    let faults = |percent: u32| faults(program, program.share_pages(f64::from(percent) / 100.0));
    let few = faults(HALF) * KNEE_FAULTS;
    let mut percents = KNEE_PERCENTS;
    let knee = percents.find(|percent| faults(*percent) <= few);
    knee.map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::curve::{Curve, FaultPoint, FirstTouch};
    use std::path::PathBuf;

    /// A process of 100 pages with 1,000 misses to each, and as many reuse faults below `knee` pages.
    fn process(knee: u64) -> Process {
        let pages = 1..=100_u64;
        let misses = Curve {
            page_bytes: 4096,
            footprint_pages: 100,
            instructions_count: Some(300_000_000),
            misses_of_bytes: Some(1 << 20),
            faults: pages
                .clone()
                .map(|memory_pages| FaultPoint {
                    memory_pages,
                    reuse_count: if memory_pages < knee { 50_000 } else { 0 },
                    write_backs_count: 0,
                })
                .collect(),
            first_touch: pages
                .map(|pages| FirstTouch {
                    pages,
                    references_count: 1000 * pages,
                })
                .collect(),
            ..Curve::default()
        };
        Process {
            larger: misses.clone(),
            misses,
            order: PathBuf::new(),
        }
    }

    #[test]
    fn use_of_a_cpu_and_a_link_by_hand() {
        let fetch = PageFetch {
            delay_ns: 20_000,
            link_ns: 80_000,
        };
        // Two processes, 100 µs between faults: by hand 1.410 by mean values.
        let usage = CpuUse {
            elapsed_ns: 280_000,
            busy_ns: 200_000,
            link_ns: 140_000,
            faults: 2,
        };
        let found = SharedUse::of(&usage, 2, fetch);
        assert!((found.busy_percent - 71.43).abs() < 0.01 && (found.slowdown - 1.4).abs() < 1e-9);
        assert!((found.link_percent - 50.0).abs() < 1e-9);
        assert!((found.estimated_slowdown.unwrap() - 1.41).abs() < 6e-4);
        let none = SharedUse::of(&CpuUse::default(), 2, fetch);
        assert_eq!((none.slowdown, none.estimated_slowdown), (1.0, None));
    }

    #[test]
    fn a_process_by_hand() {
        let observed = observed(&Recordings {
            workload: Workload::Delay,
            processes: vec![process(80)],
        });
        let observed = observed.unwrap();
        // LOCAL: 1 s, and 100,000 misses of 300 ns. With half: 50,000 reuse faults, and 50 of the warm start.
        let local_s = 1.03;
        let slowdown = |percent, model| observed.slowdowns[&(percent, model)];
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        };
        near(slowdown(HALF, Model::Now), 1.0 + 50_050.0 * 1e-3 / local_s);
        near(slowdown(90, Model::AtmNow), 1.0 + 10.0 * 220e-6 / local_s);
        near(
            slowdown(60, Model::CcNow),
            1.0 + 40_000.0 * 2.7e-6 / local_s,
        );
        near(observed.local_shares[&70], 0.7);
        near(observed.footprint_mib, 100.0 * 4096.0 / MIB);
        near(observed.misses_per_1000, 1.0 / 3.0);
        assert_eq!(observed.knee_percent, Some(80.0));
        assert_eq!(observed.slowdowns.len(), PERCENTS.len() * Model::ALL.len());
    }
}
