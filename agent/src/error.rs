//! Errors of the agent, with the remedy in each message.

use std::path::{Path, PathBuf};

/// Reason why the agent cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that the agent needs cannot be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A file or folder that belongs to the agent cannot be written.
    #[error("cannot write {path}: {source}; give another place with --database", path = .path.display())]
    Write {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A file of the kernel lacks contents that every kernel provides.
    #[error("{path} is not what the kernel documents: {what}; is --proc-root right?", path = .path.display())]
    Kernel {
        /// Path of the file.
        path: PathBuf,
        /// Fault in the file.
        what: String,
    },
    /// Fault in the configuration.
    #[error(transparent)]
    Config(#[from] gleaner_daemon::config::ConfigError),
    /// Error of SQLite.
    #[error("{path}: {source}", path = .path.display())]
    Database {
        /// Path of the database.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The database's pages are not what SQLite wrote.
    #[error("{path} is damaged: {what}", path = .path.display())]
    Damaged {
        /// Path of the database.
        path: PathBuf,
        /// Damage that was found.
        what: String,
    },
    /// Several databases were damaged, one after the other.
    #[error("{path} was damaged {count} times, and each is kept beside it: check the disk, export what can be read of them with `gleaner-agent export --database FILE DATASET`, and move them away", path = .path.display())]
    DamagedAgain {
        /// Path of the database.
        path: PathBuf,
        /// Number of damaged databases kept beside it.
        count: usize,
    },
    /// There is no database yet.
    #[error("no trace at {path}: begin one with `gleaner-agent run`, or name another with --database", path = .path.display())]
    NoDatabase {
        /// Path at which the database was expected.
        path: PathBuf,
    },
    /// The database belongs to another program.
    #[error("{path} is a database of another program (application id {application_id:#x}): name another with --database", path = .path.display())]
    ForeignDatabase {
        /// Path of the database.
        path: PathBuf,
        /// Application id in its header.
        application_id: i32,
    },
    /// The database was written by a newer agent.
    #[error("{path} was written by a newer agent (schema version {found}, this one knows {known}): update gleaner-agent, or name another with --database", path = .path.display())]
    NewerDatabase {
        /// Path of the database.
        path: PathBuf,
        /// Schema version of the database.
        found: u32,
        /// Newest schema version that this agent knows.
        known: u32,
    },
    /// The database was brought from another host.
    #[error("{path} is the trace of another host (by /etc/machine-id): move it away, or name another with --database", path = .path.display())]
    OtherHost {
        /// Path of the database.
        path: PathBuf,
    },
    /// A second agent runs on the same database.
    #[error("another gleaner-agent is writing {path}: stop it first, or name another with --database", path = .path.display())]
    Locked {
        /// Path of the database.
        path: PathBuf,
    },
    /// A second shipper runs on the same database.
    #[error("another gleaner-agent is shipping {path}: stop it first, or name another with --database", path = .path.display())]
    Shipping {
        /// Path of the database.
        path: PathBuf,
    },
    /// No collector is configured, or its address is not allowed.
    #[error(
        "{what}; enrol this host with `gleaner-agent enroll`, or name a collector in the configuration (ship.collector)"
    )]
    Collector {
        /// Fault in the collector's configuration.
        what: String,
    },
    /// Some records could not be shipped.
    #[error("not all records are shipped: {why}")]
    Unshipped {
        /// Reason why the remaining records were not shipped.
        why: String,
    },
    /// The collector refused enrolment, or is unreachable.
    #[error("this host is not enrolled: {why}")]
    Enrolment {
        /// Reason of the refusal or failure.
        why: String,
    },
    /// A file in the folder of enrolment cannot be written.
    #[error("cannot write {path}: {source}; give another folder in the configuration (ship.folder)", path = .path.display())]
    Put {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Error of certificates or tokens.
    #[error(transparent)]
    Trust(#[from] gleaner_trust::TrustError),
    /// Timers or signals cannot be set up.
    #[error("cannot wait for the next sample: {source}")]
    Wait {
        /// Error of the system.
        source: std::io::Error,
    },
    /// A listener cannot connect to the agent's socket.
    #[error("cannot listen at {path}: {source}; is `gleaner-agent run` at work there? Name its socket with --socket", path = .path.display())]
    Listen {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The reporter of a desktop session cannot start.
    #[error(
        "{what}; run this inside the desktop session, as its user, with its WAYLAND_DISPLAY or DISPLAY, and XDG_RUNTIME_DIR"
    )]
    Session {
        /// Prerequisite that is missing.
        what: String,
    },
    /// A row does not fit its table.
    #[error("{path}: {table} holds a row that does not fit its schema: check it with `PRAGMA integrity_check`", path = .path.display())]
    Row {
        /// Path of the database.
        path: PathBuf,
        /// Name of the table.
        table: &'static str,
    },
    /// The dataset of an export cannot be written.
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
    /// Returns true if the error may pass by itself or after space is freed: a disk that is full,
    /// read-only or failing, or a database that another program has locked.
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

    /// Returns true if the error means that the database is damaged.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            Self::Damaged { .. } => true,
            Self::Database { source, .. } => match source {
                // A stored value no longer has the type of its column.
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

    /// Text of the error without the path, for a row that leaves the host.
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
