//! Errors of a configuration, with their place.

use std::fmt;
use std::path::PathBuf;

/// Reason why a daemon cannot do as it is configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is not there, or may not be read.
    #[error("cannot read the configuration {}: {source}; name another by --config", path.display())]
    Read {
        /// The configuration file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The value is not allowed.
    #[error("{}", said(place, key.as_deref(), what))]
    Wrong {
        /// Place of the faulty setting.
        place: Place,
        /// The key, with its table: `ship.rate`.
        key: Option<String>,
        /// Description of the expected value.
        what: String,
    },
}

/// Place at which a setting was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Key in a file.
    File {
        /// The configuration file.
        path: PathBuf,
        /// Line, from 1 on; `None`: the file as a whole.
        line: Option<usize>,
    },
    /// Variable of this name in the environment.
    Variable(String),
    /// On the command line, by this name.
    Argument(&'static str),
    /// Nowhere: the default, in a daemon of this name that has no file.
    Default(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::File {
                path,
                line: Some(line),
            } => write!(f, "{}, line {line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Argument(name) => f.write_str(name),
            Self::Default(daemon) => write!(f, "the configuration of gleaner-{daemon}"),
        }
    }
}

fn said(place: &Place, key: Option<&str>, what: &str) -> String {
    match (place, key) {
        // The place is named by the key itself.
        (Place::Variable(_) | Place::Argument(_), _) | (_, None) => format!("{place}: {what}"),
        // The text contains the key.
        _ if what.starts_with("unknown field") => format!("{place}: {what}"),
        (_, Some(key)) => format!("{place}: {key}: {what}"),
    }
}
