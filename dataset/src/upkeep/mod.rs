//! Upkeep of sealed files: verifying, repairing, merging, thinning and dropping them.

mod compact;
mod merge;
mod rebuild;
mod repair;
mod retain;
mod salvage;
mod thin;
mod verify;

pub use compact::{Compacted, Compaction};
pub use repair::{Lost, Repaired, repair};
pub use retain::{DETAILS, Policy, Retained};
pub use verify::{Problem, ProblemKind, Verified};
