//! Reasons why a simulation of global memory has no results.

use super::check::Violation;
use crate::hosts::HostsError;

/// Failure of a simulation of global memory, or of reading its scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GmsError {
    /// The file is not a scenario.
    #[error("{}", .reason.trim_end())]
    File {
        /// Position in the file, and the fault.
        reason: String,
    },
    /// A setting outside its range.
    #[error("{key} = {value}: {reason}")]
    Setting {
        /// Key of the setting.
        key: &'static str,
        /// Value of the setting, or the sum that is limited.
        value: String,
        /// Range of valid values.
        reason: String,
    },
    /// A setting of the file outside its range.
    #[error("line {line}: {fault}")]
    Line {
        /// Line of the key in the file, from 1.
        line: usize,
        /// Fault of the setting.
        fault: Box<GmsError>,
    },
    /// A value of a swept setting that is invalid.
    #[error("sweep of {key}: {reason}")]
    Swept {
        /// Key of the setting.
        key: String,
        /// Description of the fault.
        reason: String,
    },
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
