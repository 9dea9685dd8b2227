//! One process of a program, and what it does next.

use super::cluster::NEVER;
use crate::Request;

/// Next action of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It asks for its data.
    Ask,
    /// It reads or writes them, or all of the region for a storing, on disk.
    Disk,
    /// The disk's data go over the string.
    String,
    /// The region goes to its host.
    Store,
    /// Another process fetches the region.
    Parked,
}

/// One process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// Time at which it goes on.
    pub(super) at_ns: u64,
    pub(super) stage: Stage,
    pub(super) request: Request,
    pub(super) region: u32,
    /// The storing that it is about, if any.
    pub(super) storing: Option<u64>,
    /// Its answer does not come before: what is sent beside the disk's work.
    pub(super) not_before_ns: u64,
}

impl Process {
    /// One that has nothing to do.
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

    /// It waits for what another one fetches.
    pub(super) fn is_parked(&self) -> bool {
        self.stage == Stage::Parked
    }
}

/// Outcome of a step.
pub(super) enum Step {
    /// The request is answered.
    Answered(u64),
    /// It goes on with this.
    Next(Stage, u64),
    /// It goes on when another process has fetched the region.
    Park,
}
