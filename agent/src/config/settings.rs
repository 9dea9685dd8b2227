//! Settings of the agent's rooms, resolved from files, environment and arguments.

use std::path::PathBuf;
use std::time::Duration;

/// Units of the kernel's files.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// Page size, in bytes.
    pub page_size_bytes: u64,
    /// Clock ticks a second.
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
    /// Page size and tick length of that host.
    pub units: Units,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Further names of always-active processes.
    pub always_active: Vec<String>,
    /// Names of others' memory servers that live from the quota.
    pub guest_processes: Vec<String>,
    /// Control groups of always-active processes, groups below them included.
    pub always_active_cgroups: Vec<String>,
    /// Reads DAMON's estimate where true.
    pub damon: bool,
    /// Watches every open of a file where true.
    pub opens: bool,
}

/// Limits on the records kept; the newest stretch from a whole state on (of one UTC day at most) always stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records older than this go.
    pub age: Duration,
    /// Size of the database, free pages not counted, beyond which the oldest records go.
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
