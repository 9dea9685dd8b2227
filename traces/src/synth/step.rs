//! What one step of a host's model is given.

use super::class::Class;

/// One step: from the sample before to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) class: &'a Class,
    /// The sample's time on the wall clock.
    pub(super) time_ms: i64,
    /// The same since boot.
    pub(super) boottime_ms: i64,
    /// Time that has passed, or a whole interval after a gap: nothing happens while a host sleeps.
    pub(super) interval_ms: i64,
    /// Whether the owner is at the keyboard.
    pub(super) is_present: bool,
    /// Whether standing rows are to be given whole.
    pub(super) is_whole: bool,
}
