//! From a host's SQLite to the dataset with the built programs: whatever is killed, cut, slowed, filled
//! or broken on the way, every row is finally there once, with the same values.

mod clocks;
mod disk;
mod files;
mod kills;
pub(crate) mod network;
pub(crate) mod partitions;
mod relay;
pub(crate) mod running;
