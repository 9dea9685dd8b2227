//! Record of the steps of an attachment.

use super::process::Process;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything that undoing it needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Name of the attachment.
    pub(crate) name: String,
    /// Socket of the server.
    pub(crate) socket: PathBuf,
    /// Unix time at which it was begun.
    pub(crate) since_ms: u64,
    /// Size of the device, in bytes.
    pub(crate) bytes: u64,
    /// Way by which the device was made; `None` before that.
    pub(crate) way: Option<DeviceWay>,
    /// The block device; none while it is made.
    pub(crate) device: Option<PathBuf>,
    /// Swap was, or is to be, turned on.
    pub(crate) is_swap: bool,
    /// The control group of the processes.
    pub(crate) group: Option<PathBuf>,
    /// Programs in the order of their start.
    pub(crate) processes: Vec<Process>,
    /// Missing safeguards, as texts.
    pub(crate) notes: Vec<String>,
}

/// Way from pages to a block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeviceWay {
    /// The kernel's nbd module.
    Kernel,
    /// nbdfuse and a loop device.
    Fuse {
        /// The number of its FUSE connection, once it is mounted: where that can be cut.
        connection: Option<u32>,
    },
}
