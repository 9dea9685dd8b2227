//! What can go wrong, and what to do about it.

use std::path::{Path, PathBuf};

/// Why the agent cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that nothing works without.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file or folder of the agent's own.
    #[error("cannot write {path}: {source}; give another place with --database", path = .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The kernel's own file without what every kernel gives.
    #[error("{path} is not what the kernel documents: {what}; is --proc-root right?", path = .path.display())]
    Kernel {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The configuration.
    #[error(transparent)]
    Config(#[from] gleaner_daemon::config::ConfigError),
    /// SQLite.
    #[error("{path}: {source}", path = .path.display())]
    Database {
        /// Which database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A database whose pages are not what SQLite wrote.
    #[error("{path} is damaged: {what}", path = .path.display())]
    Damaged {
        /// Which database.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// One damaged database after the other.
    #[error("{path} was damaged {count} times, and each is kept beside it: check the disk, export what can be read of them with `gleaner-agent export --database FILE DATASET`, and move them away", path = .path.display())]
    DamagedAgain {
        /// Which database.
        path: PathBuf,
        /// How many lie there.
        count: usize,
    },
    /// No database yet.
    #[error("no trace at {path}: begin one with `gleaner-agent run`, or name another with --database", path = .path.display())]
    NoDatabase {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A database of another program.
    #[error("{path} is a database of another program (application id {application_id:#x}): name another with --database", path = .path.display())]
    ForeignDatabase {
        /// Which.
        path: PathBuf,
        /// Whose.
        application_id: i32,
    },
    /// A database of a newer agent.
    #[error("{path} was written by a newer agent (schema version {found}, this one knows {known}): update gleaner-agent, or name another with --database", path = .path.display())]
    NewerDatabase {
        /// Which.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// A database that was brought from another host.
    #[error("{path} is the trace of another host (by /etc/machine-id): move it away, or name another with --database", path = .path.display())]
    OtherHost {
        /// Which.
        path: PathBuf,
    },
    /// A second agent on the same database.
    #[error("another gleaner-agent is writing {path}: stop it first, or name another with --database", path = .path.display())]
    Locked {
        /// Which.
        path: PathBuf,
    },
    /// A second shipper of the same database.
    #[error("another gleaner-agent is shipping {path}: stop it first, or name another with --database", path = .path.display())]
    Shipping {
        /// Which.
        path: PathBuf,
    },
    /// No collector, or one that may not be spoken to.
    #[error(
        "{what}; enrol this host with `gleaner-agent enroll`, or name a collector in the configuration (ship.collector)"
    )]
    Collector {
        /// What is wrong.
        what: String,
    },
    /// Not all records could be shipped.
    #[error("not all is shipped: {why}")]
    Unshipped {
        /// What is in the way.
        why: String,
    },
    /// Enrolment that the collector refused, or that could not be asked for.
    #[error("this host is not enrolled: {why}")]
    Enrolment {
        /// Why.
        why: String,
    },
    /// A file of the folder of enrolment.
    #[error("cannot write {path}: {source}; give another folder in the configuration (ship.folder)", path = .path.display())]
    Put {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Certificates and tokens.
    #[error(transparent)]
    Trust(#[from] gleaner_trust::TrustError),
    /// Timers and signals.
    #[error("cannot wait for the next sample: {source}")]
    Wait {
        /// Why.
        source: std::io::Error,
    },
    /// The agent's socket, as a listener finds it.
    #[error("cannot listen at {path}: {source}; is `gleaner-agent run` at work there? Name its socket with --socket", path = .path.display())]
    Listen {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The reporter of a desktop session.
    #[error(
        "{what}; run this inside the desktop session, as its user, with its WAYLAND_DISPLAY or DISPLAY, and XDG_RUNTIME_DIR"
    )]
    Session {
        /// What is missing.
        what: String,
    },
    /// Rows that do not fit their table.
    #[error("{path}: {table} holds a row that does not fit its schema: check it with `PRAGMA integrity_check`", path = .path.display())]
    Row {
        /// Which database.
        path: PathBuf,
        /// Which table.
        table: &'static str,
    },
    /// The dataset that the trace is exported to.
    #[error(transparent)]
    Dataset(#[from] gleaner_dataset::DatasetError),
}

impl From<gleaner_trust::AddressError> for Error {
    fn from(error: gleaner_trust::AddressError) -> Self {
        Self::Collector {
            what: error.to_string(),
        }
    }
}

impl Error {
    /// Whether it passes by itself, or when somebody makes room: a disk that is full, read-only or failing,
    /// a database that another program holds.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, ReadOnly, SystemIoFailure,
        };
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match self {
            Self::Write { source, .. } => {
                let kinds = [FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull];
                kinds.contains(&source.kind()) || source.raw_os_error() == Some(libc::EIO)
            }
            Self::Database { source, .. } => source.sqlite_error_code().is_some_and(|code| {
                matches!(
                    code,
                    CannotOpen
                        | DatabaseBusy
                        | DatabaseLocked
                        | DiskFull
                        | ReadOnly
                        | SystemIoFailure
                )
            }),
            _ => false,
        }
    }

    /// Whether the database is no longer what SQLite wrote.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            Self::Damaged { .. } => true,
            Self::Database { source, .. } => match source {
                // A value of ours that is no longer of its kind.
                rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..) => true,
                _ => {
                    let code = source.sqlite_error_code();
                    code.is_some_and(|code| matches!(code, DatabaseCorrupt | NotADatabase))
                }
            },
            _ => false,
        }
    }

    /// What went wrong, without the path: fit for a row that leaves the host.
    #[must_use]
    pub fn without_path(&self) -> String {
        match self {
            Self::Write { source, .. } => source.to_string(),
            Self::Database { source, .. } => source.to_string(),
            Self::Damaged { what, .. } => what.clone(),
            _ => "see the agent's log".to_owned(),
        }
    }

    /// For `map_err`: a file of the folder of enrolment could not be written.
    pub(crate) fn put(path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Put {
            path: path.to_owned(),
            source,
        }
    }

    /// For `map_err`: SQLite failed on the database at `path`.
    pub(crate) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self {
        move |source| Self::Database {
            path: path.to_owned(),
            source,
        }
    }
}
