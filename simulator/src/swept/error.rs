//! Faults of scenario files, which every system with settings as a table shares.

/// Fault of a scenario file or of its settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
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
        fault: Box<ScenarioError>,
    },
    /// A value of a swept setting that is invalid.
    #[error("sweep of {key}: {reason}")]
    Swept {
        /// Key of the setting.
        key: String,
        /// Description of the fault.
        reason: String,
    },
}
