//! Reads a dataset, a part of one of its tables, or one writer's files.

mod dataset;
mod selection;
mod snapshot;
#[cfg(test)]
mod tests;

pub use dataset::Dataset;
pub use selection::{Selection, instant_ms};
pub use snapshot::Snapshot;
