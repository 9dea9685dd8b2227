//! Turns a dataset into findings: the availability study of Acharya & Setia, on any fleet.
//!
//! Hosts are processed on as many threads as there are CPUs. Each host is read ([`trace`], [`derived`]),
//! measured, and dropped, so that memory is bounded by the largest hosts rather than by the fleet. Each
//! host's parts of the measures ([`measure`]; all measures: [`measures`]) are merged in the order of host
//! ids: the same dataset gives the same figures. Hosts can also be analysed in parts, by several processes or
//! machines, and the parts merged ([`part`]).
//!
//! ```text
//! dataset ─► trace (one host as recorded: samples, runs without gaps, rows)
//!             └► derived (idle and busy periods, returns, live files)
//!              ├─ availability   usage, over time, dips, hours, periods ─┐
//!              ├─ owner          absences, returns, live files, cost     │
//!              ├─ what_if        other limits: gain and cost             │
//!              ├─ forecast       what stays available, how sure          ├─ host ─► fleet ─► Findings
//!              ├─ consumers      processes, files                        │
//!              ├─ cluster        all hosts on one grid of time           │
//!              ├─ quality        what could not be seen                  ┘
//!              ├─ explain        one sample ─► Explanation
//!              └─ by_host        periods of each host ─► HostAvailability, for exports
//! statistics: pure, under all of them
//! ```
//!
//! Rooms, from the top; each uses only those after it: `by_host`, `explain`, `part`, `fleet`, `host`,
//! `parameters`, `measures`, `cluster`, `consumers`, `forecast`, `sources`, `what_if`, `availability`, `in_order`,
//! `owner`, `quality`, `statistics`, `measure`, `derived`, `sizes`, `trace`, `error`.
//!
//! Definitions of all measures, their sources and their limits: docs/analysis.md.
//!
//! Invariant: nothing is assumed across a gap; what a host could not observe is in
//! [`Findings::missing_measures`], never a zero.

// A run of samples is a range: lists of one range are common in tests.
#![cfg_attr(test, allow(clippy::single_range_in_vec_init))]

mod availability;
mod by_host;
mod cluster;
mod consumers;
mod derived;
mod error;
mod explain;
mod fleet;
mod forecast;
mod host;
mod in_order;
mod measure;
mod measures;
mod owner;
mod parameters;
mod part;
mod quality;
mod sizes;
mod sources;
mod statistics;
mod trace;
mod what_if;

use availability::over_time::points_of_each;
pub use by_host::availability;
pub use error::{AnalysisError, PartError, Result};
pub use explain::explain;
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Parameters};
pub use part::{Part, Plan, Progress};

/// Analyses every host of a dataset, and calls `progress` after each.
///
/// # Errors
/// [`AnalysisError::NoSamples`] if there are no samples, [`AnalysisError::NoSamplesInSpan`] if there are none
/// in the requested time, [`AnalysisError::EmptySpan`] and [`AnalysisError::Parameter`] for parameters out of
/// range, [`AnalysisError::Cancelled`] if `progress` cancels the analysis; otherwise the table and host that could not be read.
pub fn analyze(
    dataset: &Dataset,
    parameters: &Parameters,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Findings> {
    analyze_together(&[dataset], parameters, progress)
}

/// Analyses the hosts of several datasets like [`analyze`], as if they were one dataset: the first one's
/// hosts, then the second one's. No host may be in two of them.
///
/// # Errors
/// The errors of [`analyze`].
pub fn analyze_together(
    datasets: &[&Dataset],
    parameters: &Parameters,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Findings> {
    let parameters = parameters::resolved(datasets, parameters)?;
    // Positions at which the hosts of each dataset end.
    let (mut hosts, mut ends) = (Vec::new(), Vec::new());
    for dataset in datasets {
        hosts.extend(dataset.hosts().map_err(AnalysisError::Hosts)?);
        ends.push(hosts.len());
    }
    let plan = Plan::of(parameters, hosts);
    let dataset_of = |at: usize| ends.partition_point(|&end| end <= at);
    let points_count = points_of_each(plan.hosts_count());
    Part::of_hosts(datasets, &plan, dataset_of, points_count, progress)?.finish()
}

/// Analyses the hosts of a plan, which is a part of the plan of a whole dataset ([`Plan::part`]). The parts of
/// all hosts, merged ([`Part::merge`]), give the findings of [`analyze`] to the byte.
///
/// # Errors
/// The errors of [`analyze`] but those about samples.
pub fn analyze_part(
    dataset: &Dataset,
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Part> {
    let points_count = points_of_each(plan.whole().0);
    part_with_points(dataset, plan, points_count, progress)
}

/// Analyses the hosts of a plan like [`analyze_part`]. The part serves for the findings of these hosts alone
/// ([`Part::finish_alone`]): each host has as many points over time as in an analysis of only these hosts.
///
/// # Errors
/// The errors of [`analyze_part`].
pub fn analyze_site(
    dataset: &Dataset,
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Part> {
    let points_count = points_of_each(plan.hosts_count());
    part_with_points(dataset, plan, points_count, progress)
}

fn part_with_points(
    dataset: &Dataset,
    plan: &Plan,
    points_count: usize,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Part> {
    parameters::check(&plan.parameters)?;
    Part::of_hosts(&[dataset], plan, |_| 0, points_count, progress)
}
