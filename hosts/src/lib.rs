//! The reading of hosts' traces that all programs share: a host's records in order, and the facts derived
//! from them. This crate is pure: no I/O and no clock. Readers of a dataset supply its rows, each reader in
//! its own memory layout.
//!
//! - [`recorded`]: the order of rows, the interval in force, gaps, runs of samples without a gap.
//! - [`derived`]: categories of a sample, idle and busy periods, returns, footprints at a return.
//!
//! Rooms, from the top; each uses only those after it: `derived`, `recorded`.

// Tests use lists with one run. A run is a range, and the lint takes such a list for a mistake.
#![cfg_attr(test, allow(clippy::single_range_in_vec_init))]

pub mod derived;
pub mod recorded;
