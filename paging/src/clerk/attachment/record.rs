//! What was done for an attachment, as it is kept.

use super::process::Process;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything that undoing it needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// What it is called.
    pub(crate) name: String,
    /// Of the server.
    pub(crate) socket: PathBuf,
    /// Unix time at which it was begun.
    pub(crate) since_ms: u64,
    /// How large.
    pub(crate) bytes: u64,
    /// Which way the device was made. None: there is none yet.
    pub(crate) way: Option<Way>,
    /// The block device; none while it is made.
    pub(crate) device: Option<PathBuf>,
    /// Swap was, or is to be, turned on.
    pub(crate) is_swap: bool,
    /// The control group of the processes.
    pub(crate) group: Option<PathBuf>,
    /// In the order of their start.
    pub(crate) processes: Vec<Process>,
    /// What could not be had that would make it safer.
    pub(crate) notes: Vec<String>,
}

/// How pages become a block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// The kernel's nbd module.
    Kernel,
    /// nbdfuse and a loop device.
    Fuse {
        /// The number of its FUSE connection, once it is mounted: where that can be cut.
        connection: Option<u32>,
    },
}
