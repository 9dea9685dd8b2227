//! The life of a host as the rows that an agent would store.

mod activity;
mod files;
mod memory;
mod processes;

pub(super) use activity::Sources;
pub(super) use files::FileRows;
pub(super) use memory::{HEADROOM_SHARE, Memory, nodes};
pub(super) use processes::ProcessRows;

/// A sample's place in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleMoment {
    /// On the wall clock.
    pub(super) time_ms: i64,
    /// Time since boot, in ms.
    pub(super) boottime_ms: i64,
    /// Time that has passed, or a whole interval after a gap: nothing happens while a host sleeps.
    pub(super) interval_ms: i64,
    /// True while the owner is at the keyboard.
    pub(super) is_present: bool,
    /// True if standing rows are to be stored completely.
    pub(super) is_whole: bool,
}
