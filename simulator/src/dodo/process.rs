//! A process of a program, with its next action.

use super::cluster::NEVER;
use crate::Request;

/// Next action of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The process requests its data.
    Ask,
    /// The disk reads or writes the process' data, or reads the whole region for a storing.
    Disk,
    /// The disk's data pass over the string.
    String,
    /// The client sends the region to its host.
    Store,
    /// The process waits while another one fetches the region.
    Parked,
}

/// State of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// Time of the process' next step.
    pub(super) at_ns: u64,
    pub(super) stage: Stage,
    pub(super) request: Request,
    pub(super) region: u32,
    /// Number of the storing that the process performs, if any.
    pub(super) storing: Option<u64>,
    /// Earliest time of the answer. It is the end of a transfer that runs at the same time as the disk's
    /// work.
    pub(super) not_before_ns: u64,
}

impl Process {
    /// A process without work.
    pub(super) const IDLE: Self = Self {
        at_ns: NEVER,
        stage: Stage::Ask,
        request: Request {
            object: 0,
            bytes: 0,
            is_write: false,
            think_ns: 0,
        },
        region: 0,
        storing: None,
        not_before_ns: 0,
    };

    /// Returns true if the process waits while another process fetches its region.
    pub(super) fn is_parked(&self) -> bool {
        self.stage == Stage::Parked
    }
}

/// Outcome of a step.
pub(super) enum Step {
    /// The request is answered at this time.
    Answered(u64),
    /// The process continues with this stage at this time.
    Next(Stage, u64),
    /// The process continues when another process has fetched the region.
    Park,
}
