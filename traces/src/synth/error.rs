//! What can go wrong with a synthetic cluster, and what to do about it.

use gleaner_dataset::DatasetError;
use std::io;
use std::path::PathBuf;

/// Why a synthetic cluster could not be made or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SynthError {
    /// A parameter that no cluster can have.
    #[error("{name} is {value}: it must be {allowed}")]
    Parameter {
        /// Which.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// A fleet that is none.
    #[error("fleet {name}: {detail}")]
    Fleet {
        /// Its file or name.
        name: String,
        /// What is wrong, and where.
        detail: String,
    },
    /// The folder is in use.
    #[error("{} is not empty; name a new folder for the synthetic dataset", folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder could not be looked into.
    #[error("cannot list folder {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The dataset could not be written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}
