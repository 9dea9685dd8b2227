//! From a dataset to findings: the availability study of Acharya & Setia, on any fleet.
//!
//! One pass a host ([`analyze`] reads a host, takes what it adds, and lets it go), so that memory is
//! bounded by the largest host rather than by the fleet. What hosts add is mergeable (`fleet.rs`).
//!
//! ```text
//! dataset ─ reader, frame ─► samples ─ segments ─► idle ─► periods ─► survival
//!                               │                                       │
//!                               ├─ usage, dips, over_time, quota, cost  ├─ host ─► fleet ─► Findings
//!                               └─ processes, files, sight, missing     │
//! ```
//!
//! Invariant: nothing is assumed across a gap; what a host could not see is in
//! [`Findings::not_measured`], never a zero.

// A run of samples is a range: lists of one are common in tests.
#![cfg_attr(test, allow(clippy::single_range_in_vec_init))]

mod cost;
mod dips;
mod distribution;
mod error;
mod files;
mod fleet;
mod frame;
mod host;
mod idle;
mod intervals;
mod inventory;
mod missing;
mod over_time;
mod parameters;
mod periods;
mod processes;
mod quota;
mod reader;
mod samples;
mod segments;
mod sight;
mod sizes;
mod standing;
mod statistics;
mod survival;
mod usage;

pub use error::{AnalysisError, Result};
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Parameters};

/// How far an analysis has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Hosts done.
    pub hosts_done: usize,
    /// Hosts in all.
    pub hosts_count: usize,
}

/// Analyses every host of a dataset, and calls `progress` after each.
///
/// # Errors
/// [`AnalysisError::NoSamples`] when there is nothing to analyse, [`AnalysisError::Parameter`] for a
/// parameter that no figure could rest on; else what went wrong with which table of which host.
pub fn analyze(
    dataset: &Dataset,
    parameters: &Parameters,
    progress: &mut dyn FnMut(Progress),
) -> Result<Findings> {
    let parameters = parameters::resolved(dataset, parameters)?;
    let hosts = dataset.hosts().map_err(AnalysisError::Hosts)?;
    let hosts_count = hosts.len();
    let mut fleet = fleet::Fleet::default();
    for (done, host) in hosts.iter().enumerate() {
        fleet.add(host::analyze_host(dataset, host, &parameters)?);
        progress(Progress {
            hosts_done: done + 1,
            hosts_count,
        });
    }
    fleet
        .finish(parameters)
        .ok_or(AnalysisError::NoSamples { hosts_count })
}
