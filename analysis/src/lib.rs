//! Turns a dataset into findings: the availability study of Acharya & Setia, on any fleet.
//!
//! Hosts are processed on as many threads as there are CPUs. Each host is read ([`trace`], [`derived`]),
//! measured, and dropped, so that memory is bounded by the largest hosts rather than by the fleet. Each
//! host's parts of the measures ([`measure`]; all measures: [`measures`]) are merged in the order of host
//! ids: the same dataset gives the same figures.
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
//! Rooms, from the top; each uses only those after it: `by_host`, `explain`, `fleet`, `host`, `parameters`,
//! `measures`, `cluster`, `consumers`, `forecast`, `sources`, `what_if`, `availability`, `in_order`,
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
mod quality;
mod sizes;
mod sources;
mod statistics;
mod trace;
mod what_if;

use availability::over_time;
pub use by_host::availability;
pub use error::{AnalysisError, Result};
pub use explain::explain;
use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::{Findings, Parameters};
use gleaner_schemas::rows::SampleRow;
use host::HostFindings;
use measure::Pass;
use sizes::Classes;
use trace::calendar::Calendar;

/// Progress of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of hosts done.
    pub hosts_done: usize,
    /// Number of hosts in all.
    pub hosts_count: usize,
}

/// Analyses every host of a dataset, and calls `progress` after each.
///
/// # Errors
/// [`AnalysisError::NoSamples`] if there are no samples, [`AnalysisError::NoSamplesInSpan`] if there are none
/// in the requested time, [`AnalysisError::EmptySpan`] and [`AnalysisError::Parameter`] for parameters out of
/// range; otherwise the table and host that could not be read.
pub fn analyze(
    dataset: &Dataset,
    parameters: &Parameters,
    progress: &mut dyn FnMut(Progress),
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
    progress: &mut dyn FnMut(Progress),
) -> Result<Findings> {
    let parameters = parameters::resolved(datasets, parameters)?;
    let mut hosts = Vec::new();
    for &dataset in datasets {
        let of_dataset = dataset.hosts().map_err(AnalysisError::Hosts)?;
        hosts.extend(of_dataset.into_iter().map(|host| (dataset, host)));
    }
    let hosts_count = hosts.len();
    let classes = Classes::new(&parameters.size_class_bytes);
    let pass = Pass {
        parameters: &parameters,
        classes: &classes,
        calendar: &Calendar::new(&parameters.time_zone)?,
        reads: measures::reads(&parameters),
        wants_returns: measures::wants_returns(&parameters),
        points_count: over_time::points_of_each(hosts_count),
    };
    let mut fleet = fleet::Fleet::new(&classes);
    let mut hosts_done = 0;
    in_order::each(
        &hosts,
        |(dataset, host)| HostFindings::of(dataset, host, &pass),
        |found| {
            fleet.add(found);
            hosts_done += 1;
            progress(Progress {
                hosts_done,
                hosts_count,
            });
            Ok::<(), AnalysisError>(())
        },
    )?;
    let (from_ms, until_ms) = (parameters.from_time_ms, parameters.until_time_ms);
    let findings = fleet.finish(parameters).map(|mut findings| {
        findings.sources = sources::of(datasets, &findings.hosts);
        findings
    });
    findings.ok_or_else(|| {
        let files = datasets.iter().flat_map(|d| &d.manifest().files);
        let samples = files.filter(|file| file.table == SampleRow::TABLE.name);
        let times = samples.map(|file| (file.first_time_ms, file.last_time_ms));
        match times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) {
            Some((first_ms, last_ms)) => AnalysisError::NoSamplesInSpan {
                from_ms,
                until_ms,
                first_ms,
                last_ms,
            },
            None => AnalysisError::NoSamples { hosts_count },
        }
    })
}
