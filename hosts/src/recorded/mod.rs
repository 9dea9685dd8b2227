//! Rows as a host recorded them: their order, the gaps between samples, and the runs without a gap.

mod databases;
mod intervals;
mod runs;

pub use databases::Databases;
pub use intervals::Intervals;
pub use runs::{Gap, SampleTime, covered_ms, runs};
