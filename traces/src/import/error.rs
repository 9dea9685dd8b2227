//! What can go wrong with an import, where, and what to do about it.

use gleaner_dataset::DatasetError;
use std::io;
use std::path::PathBuf;

/// Why a trace could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is nothing to import.
    #[error(
        "there is no .csv file in {}; name the folder that holds them, one a machine", folder.display()
    )]
    NoFiles {
        /// The folder.
        folder: PathBuf,
    },
    /// The file is not of the source.
    #[error("{} line 1: {found}; expected a header of columns with ';' between, among them {expected}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is there instead.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A line without which nothing can be made of the rest.
    #[error("{} line {line}: {found}; {advice}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is there.
        found: String,
        /// What to do about it.
        advice: String,
    },
    /// What is there is nothing that the source has.
    #[error("{}: {found}; {advice}", path.display())]
    Unfit {
        /// The file or folder.
        path: PathBuf,
        /// What is there, by line where there are lines.
        found: String,
        /// What to do about it.
        advice: String,
    },
    /// The program that reads the source's files is not there.
    #[error("{} is read by {tool}, which is not on the PATH; install it (Debian's package {package})", path.display())]
    NoTool {
        /// The file.
        path: PathBuf,
        /// The program.
        tool: String,
        /// Where it is found.
        package: &'static str,
    },
    /// The program that reads the source's files failed.
    #[error("{} cannot be read; {said}", path.display())]
    Tool {
        /// The file.
        path: PathBuf,
        /// Its name, and what it said.
        said: String,
    },
    /// A name that no id can be made from.
    #[error("{}: its name is not UTF-8; rename the file", path.display())]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// What should name machines does not.
    #[error(
        "{origin} names more than {limit} machines; the column that is taken for the machine holds something else"
    )]
    TooManyMachines {
        /// What was read: a path or an address.
        origin: String,
        /// How many there may be.
        limit: usize,
    },
    /// No machine has a sample.
    #[error("none of the {machines} machines in {origin} has a row that could be imported{first}")]
    NoSamples {
        /// What was read: a path or an address.
        origin: String,
        /// How many machines there are.
        machines: usize,
        /// The first of them, and what became of it, in words; empty where there are none.
        first: String,
    },
    /// A file could not be read.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Prometheus' samples could not be had.
    #[error(transparent)]
    Prometheus(#[from] super::prometheus::PrometheusError),
    /// The dataset could not be written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl ImportError {
    /// For `map_err`: `action` on `path` failed.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
