//! Errors of a configuration, with their places.

use std::fmt;
use std::path::PathBuf;

/// Reason why a daemon's configuration is unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file does not exist, or may not be read.
    #[error("cannot read the configuration {}: {source}; name another by --config", path.display())]
    Read {
        /// The configuration file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The value is not allowed.
    #[error("{}", message_text(place, key.as_deref(), what))]
    Wrong {
        /// Place of the faulty setting.
        place: Place,
        /// Key with its table, like `ship.rate`.
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
        /// Line, counted from 1; `None`: the whole file.
        line: Option<usize>,
    },
    /// Environment variable with this name.
    Variable(String),
    /// Command-line argument with this name.
    Argument(&'static str),
    /// No place, since the value is a default: the daemon of this name has no configuration file.
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

fn message_text(place: &Place, key: Option<&str>, what: &str) -> String {
    match (place, key) {
        // The place already names the key.
        (Place::Variable(_) | Place::Argument(_), _) | (_, None) => format!("{place}: {what}"),
        // The text contains the key.
        _ if what.starts_with("unknown field") => format!("{place}: {what}"),
        (_, Some(key)) => format!("{place}: {key}: {what}"),
    }
}
