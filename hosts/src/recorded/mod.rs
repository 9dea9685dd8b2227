//! Rows as a host recorded them: their order, the gaps between samples, and the runs without a gap.

mod intervals;
mod order;
mod runs;

pub use intervals::Intervals;
pub use order::{Databases, order};
pub use runs::{Gap, SampleTime, covered_ms, gaps, runs};
