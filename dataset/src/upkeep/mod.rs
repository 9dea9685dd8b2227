//! Upkeep of sealed files: verifies, repairs, merges, thins and drops them.

mod compact;
mod merge;
mod rebuild;
mod repair;
mod retain;
mod salvage;
mod thin;
mod verify;

pub use compact::{Compaction, CompactionStep};
pub use repair::{LostRows, RepairResult, repair};
pub use retain::{DETAILS, Policy, RetentionStep};
pub use verify::{Problem, ProblemKind, Verification};
