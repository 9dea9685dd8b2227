//! A block device whose pages are in the memory of other hosts, and what keeps them from being lost.

mod engine;
mod fetched;
mod frames;
pub mod run;
mod seal;
mod servers;
mod table;

pub use engine::{Action, Answer, Device, Revocation, ServerState, Settings, Totals};
pub use frames::{PAGE, PageBytes};
pub use servers::{Counters, Standing};

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
mod tests;
