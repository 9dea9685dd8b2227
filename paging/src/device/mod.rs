//! A block device whose pages are in the memory of other hosts, protected from loss.

mod engine;
mod frames;
mod purpose;
pub mod run;
mod seal;
mod servers;
mod table;

pub use engine::{Action, Answer, Device, DeviceCounters, ServerState, Settings};
pub use frames::{PAGE, PageBytes};
pub use servers::{LeaseState, ServerCounters};

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
mod tests;
