//! Datasets built row by row, analysed through the public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cluster;
mod edges;
mod hand_worked;
mod recording;
mod thinned;
