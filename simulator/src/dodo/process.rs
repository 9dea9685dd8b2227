//! A process of a program, and its next action.

use super::cluster::NEVER;
use crate::Request;

/// Next action of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The process asks for its data.
    Ask,
    /// The process reads or writes its data on disk, or all of the region for a storing.
    Disk,
    /// The disk's data go over the string.
    String,
    /// The region goes to its host.
    Store,
    /// Another process fetches the region.
    Parked,
}

/// State of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// Time of its next step.
    pub(super) at_ns: u64,
    pub(super) stage: Stage,
    pub(super) request: Request,
    pub(super) region: u32,
    /// Number of the storing that it performs, if any.
    pub(super) storing: Option<u64>,
    /// Earliest time of its answer: the end of the transfer that runs beside the disk's work.
    pub(super) not_before_ns: u64,
}

impl Process {
    /// A process that has nothing to do.
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

    /// Returns true if the process waits for a region that another one fetches.
    pub(super) fn is_parked(&self) -> bool {
        self.stage == Stage::Parked
    }
}

/// Outcome of a step.
pub(super) enum Step {
    /// The request is answered.
    Answered(u64),
    /// The process goes on with this stage at this time.
    Next(Stage, u64),
    /// The process goes on when another one has fetched the region.
    Park,
}
