//! Errors of synthetic clusters; each has a remedy.

use gleaner_dataset::DatasetError;
use std::io;
use std::path::PathBuf;

/// Reason why a synthetic cluster could not be generated or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SynthError {
    /// A parameter with an invalid value.
    #[error("{name} is {value}: it must be {allowed}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// Value of the parameter.
        value: String,
        /// Values that are allowed.
        allowed: &'static str,
    },
    /// An invalid fleet.
    #[error("fleet {name}: {detail}")]
    Fleet {
        /// File or name of the fleet.
        name: String,
        /// Description and place of the fault.
        detail: String,
    },
    /// The folder is not empty.
    #[error("{} is not empty; name a new folder for the synthetic dataset", folder.display())]
    NotEmpty {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// The folder cannot be listed.
    #[error("cannot list folder {}: {source}", folder.display())]
    Folder {
        /// Path of the folder.
        folder: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The dataset could not be written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}
