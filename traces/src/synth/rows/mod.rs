//! What happens on a host, as the rows that an agent would store.

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
pub(super) struct At {
    /// On the wall clock.
    pub(super) time_ms: i64,
    /// Since boot.
    pub(super) boottime_ms: i64,
    /// Time that has passed, or a whole interval after a gap: nothing happens while a host sleeps.
    pub(super) interval_ms: i64,
    /// Whether the owner is at the keyboard.
    pub(super) is_present: bool,
    /// Whether standing rows are to be given whole.
    pub(super) is_whole: bool,
}
