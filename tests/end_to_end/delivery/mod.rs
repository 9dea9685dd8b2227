//! Delivery from a host's SQLite database to the dataset, with the built programs. Whatever is killed, cut,
//! slowed, filled or broken on the way, the dataset finally has every row once, with the same values.

mod clocks;
mod disk;
mod files;
mod kills;
pub(crate) mod network;
pub(crate) mod partitions;
mod relay;
pub(crate) mod running;
