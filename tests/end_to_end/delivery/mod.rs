//! From a host's SQLite to the dataset by the built programs: whatever is killed, cut, slowed, filled or
//! broken on the way, every row is there once at the end, and with the same values.

mod clocks;
mod disk;
mod files;
mod kills;
pub(crate) mod network;
pub(crate) mod partitions;
mod relay;
pub(crate) mod running;
