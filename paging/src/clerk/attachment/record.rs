//! Record of the steps of an attachment.

use super::process::Process;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything needed to undo the attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Name of the attachment.
    pub(crate) name: String,
    /// Socket of the server.
    pub(crate) socket: PathBuf,
    /// Unix time at which attaching began.
    pub(crate) attached_time_ms: u64,
    /// Size of the device, in bytes.
    pub(crate) size_bytes: u64,
    /// Method of making the device; `None` until chosen.
    pub(crate) method: Option<MethodRecord>,
    /// Path of the block device; `None` until it exists.
    pub(crate) device: Option<PathBuf>,
    /// True if swap is to be turned on, or was.
    pub(crate) is_swap: bool,
    /// Control group of the processes.
    pub(crate) group: Option<PathBuf>,
    /// Programs in the order of their start.
    pub(crate) processes: Vec<Process>,
    /// Messages about missing safeguards.
    pub(crate) notes: Vec<String>,
}

/// Method of making the block device, with the data needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MethodRecord {
    /// The kernel's nbd module.
    Kernel,
    /// The export as a file, and a loop device.
    Fuse {
        /// Number of the FUSE connection, by which it can be cut; `None` before it is mounted.
        connection: Option<u32>,
    },
}
