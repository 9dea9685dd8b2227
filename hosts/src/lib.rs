//! The common reading of hosts' traces, used by all programs that read traces: a host's records, and the
//! facts derived from them. Pure: no I/O and no clock. Readers of a dataset supply its rows, each in its own
//! memory layout.
//!
//! - [`recorded`]: the order of rows, the interval in force, gaps, runs of samples without a gap.
//! - [`derived`]: categories of a sample, idle and busy periods, returns, footprints at a return.
//!
//! Rooms, from the top; each uses only those after it: `derived`, `recorded`.

// Tests have lists of one run, which is a range.
#![cfg_attr(test, allow(clippy::single_range_in_vec_init))]

pub mod derived;
pub mod recorded;
