//! Reasons why a simulation of global memory has no results.

use super::check::Violation;
use crate::hosts::HostsError;
use crate::swept::ScenarioError;

/// Failure of a simulation of global memory, or of reading its scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GmsError {
    /// Fault of the scenario file, or of a setting.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A dataset's hosts cannot be read.
    #[error("dataset {name}")]
    Hosts {
        /// Name of the dataset.
        name: String,
        /// Error of reading the hosts.
        source: HostsError,
    },
    /// The scenario names a dataset that was not opened.
    #[error("dataset {name} is not open: name its folder in [datasets], or by --dataset")]
    NoDataset {
        /// Name of the dataset.
        name: String,
    },
    /// The clients do not end within the recorded time of the hosts.
    #[error(
        "the clients have not ended after the {hours} recorded hours of the hosts: choose fewer counted_faults, or more days"
    )]
    TooShort {
        /// Length of the recorded time.
        hours: f64,
    },
    /// The clients do not end within the longest simulated time.
    #[error("the clients have not ended after {days} simulated days: choose fewer counted_faults")]
    Unfinished {
        /// Longest simulated time.
        days: u64,
    },
    /// A law that every simulation obeys is violated: a defect of the simulation.
    #[error("a conservation law is violated: please report this, with the scenario")]
    Violation(#[from] Violation),
}
