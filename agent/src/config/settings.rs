//! Settings of the agent's rooms, resolved from files, environment and arguments.

use std::path::PathBuf;
use std::time::Duration;

/// Units of the kernel's files.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// Page size, in bytes.
    pub page_size_bytes: u64,
    /// Clock ticks per second.
    pub ticks_per_second: u64,
}

/// Settings of sampling: roots, units, names and switches.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `/proc`, or a captured tree.
    pub proc_root: PathBuf,
    /// `/sys`, or a captured tree.
    pub sys_root: PathBuf,
    /// `/dev`, or a captured tree.
    pub dev_root: PathBuf,
    /// `/run`, or a captured tree.
    pub run_root: PathBuf,
    /// Page size and tick length of the sampled host.
    pub units: Units,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Further names of always-active processes.
    pub always_active: Vec<String>,
    /// Names of third-party memory servers that use the quota.
    pub guest_processes: Vec<String>,
    /// Control groups of always-active processes, including groups below them.
    pub always_active_cgroups: Vec<String>,
    /// True to read DAMON's estimate.
    pub damon: bool,
    /// True to watch every open of a file.
    pub opens: bool,
}

/// Limits on the records kept. The newest records are never deleted: those since the last sample that was
/// stored with a whole state (at most one UTC day).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum age of records.
    pub age: Duration,
    /// Maximum size of the database without its free pages; beyond it the oldest records are deleted.
    pub database_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            age: Duration::from_secs(60 * 24 * 3600),
            database_bytes: 512 << 20,
        }
    }
}
