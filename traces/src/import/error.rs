//! Errors of imports; each has its place and a remedy.

use gleaner_dataset::DatasetError;
use std::io;
use std::path::PathBuf;

/// Reason why a trace could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Nothing to import was found.
    #[error(
        "there is no .csv file in {}; name the folder that holds them, one a machine", folder.display()
    )]
    NoFiles {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// The file is not from this source.
    #[error("{} line 1: {found}; expected a header of columns with ';' between, among them {expected}", path.display())]
    Header {
        /// Path of the file.
        path: PathBuf,
        /// Text that was found.
        found: String,
        /// Text that was expected.
        expected: String,
    },
    /// A fault in a line; the rest of the file is then unusable.
    #[error("{} line {line}: {found}; {advice}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Text that was found.
        found: String,
        /// Remedy, as an instruction.
        advice: String,
    },
    /// The content cannot come from this source.
    #[error("{}: {found}; {advice}", path.display())]
    Unfit {
        /// The file or folder.
        path: PathBuf,
        /// Text that was found, for each line if there are lines.
        found: String,
        /// Remedy, as an instruction.
        advice: String,
    },
    /// The program that reads the source's files is not installed.
    #[error("{} is read by {tool}, which is not on the PATH; install it (Debian's package {package})", path.display())]
    NoTool {
        /// Path of the file.
        path: PathBuf,
        /// Name of the program.
        tool: String,
        /// Package that contains the program.
        package: &'static str,
    },
    /// The program that reads the source's files failed.
    #[error("{} cannot be read; {said}", path.display())]
    Tool {
        /// Path of the file.
        path: PathBuf,
        /// Name and error output of the program.
        said: String,
    },
    /// A file name that is not UTF-8, so that no host id can be derived from it.
    #[error("{}: its name is not UTF-8; rename the file", path.display())]
    Name {
        /// Path of the file.
        path: PathBuf,
    },
    /// The machine column does not name machines.
    #[error(
        "{origin} names more than {limit} machines; the column that is taken for the machine holds something else"
    )]
    TooManyMachines {
        /// Source that was read: a path or an address.
        origin: String,
        /// Largest number of machines allowed.
        limit: usize,
    },
    /// No machine has a sample.
    #[error("none of the {machines} machines in {origin} has a row that could be imported{first}")]
    NoSamples {
        /// Source that was read: a path or an address.
        origin: String,
        /// Number of machines.
        machines: usize,
        /// Description of the first machine's outcome; empty without machines.
        first: String,
    },
    /// A file could not be read.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path that the action was for.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Prometheus' samples could not be fetched.
    #[error(transparent)]
    Prometheus(#[from] super::prometheus::PrometheusError),
    /// The dataset could not be written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl ImportError {
    /// Returns a function for `map_err`: `action` on `path` failed.
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
