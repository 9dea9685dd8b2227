//! The only reading of a host's trace, for everything that reads traces: the records of a host, and the facts
//! derived from them. Pure: no I/O and no clock. Readers of a dataset bring its rows, each in its own layout
//! of memory.
//!
//! - [`recorded`]: the order of rows, the interval in force, gaps, runs of samples without a gap.
//! - [`derived`]: categories of a sample, idle and busy periods, returns, footprints at a return.
//!
//! Rooms, from the top; each uses only those after it: `derived`, `recorded`.

// A test's list of one run.
#![cfg_attr(test, allow(clippy::single_range_in_vec_init))]

pub mod derived;
pub mod recorded;
