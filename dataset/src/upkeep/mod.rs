//! What is done to files that were sealed: looked through, mended, merged, thinned, dropped.

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
