//! Converts the life of a host into the rows that an agent would store.

mod activity;
mod files;
mod memory;
mod processes;

pub(super) use activity::Sources;
pub(super) use files::FileRows;
pub(super) use memory::{HEADROOM_SHARE, Memory, numa_nodes};
pub(super) use processes::ProcessRows;

/// Times and state of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleMoment {
    /// Time of the sample on the wall clock, ms since 1970-01-01 UTC.
    pub(super) time_ms: i64,
    /// Time since boot, in ms.
    pub(super) boottime_ms: i64,
    /// Time during which the host ran since the previous sample, or a whole interval after a gap. Nothing
    /// happens while a host sleeps.
    pub(super) interval_ms: i64,
    /// True while the owner is at the keyboard.
    pub(super) is_present: bool,
    /// True if the state must be complete: unchanged rows are then stored, too.
    pub(super) is_whole: bool,
}
