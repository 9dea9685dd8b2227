//! Datasets built row by row and analysed through the public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alone;
mod by_host;
mod by_hour;
mod cluster;
mod edges;
mod explain;
mod forecasts;
mod hand_worked;
mod hours;
mod leases;
mod notions;
mod one_reading;
mod owner;
mod parts;
mod recording;
mod span;
mod thinned;
mod what_if;
mod worst_dips;
