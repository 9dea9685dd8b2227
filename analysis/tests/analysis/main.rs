//! Datasets built row by row, analysed through the public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod edges;
mod explain;
mod hand_worked;
mod hours;
mod leases;
mod recording;
mod thinned;
