//! Reasons why a simulation of servers has no results.

use super::laws::BrokenLaw;

/// Failure of a simulation of servers, or of reading its scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServersError {
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
        fault: Box<ServersError>,
    },
    /// A value of a swept setting that is invalid.
    #[error("sweep of {key}: {reason}")]
    Swept {
        /// Key of the setting.
        key: String,
        /// Description of the fault.
        reason: String,
    },
    /// A law that every simulation obeys is violated: a defect of the simulation.
    #[error("a conservation law is violated: please report this, with the scenario")]
    Law(#[from] BrokenLaw),
}
