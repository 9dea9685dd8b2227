//! Exports are read back; synthetic clusters are checked by the rules of real traces.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)] // tests

mod alibaba;
mod by_host;
mod csv;
mod export;
mod import;
mod kernel;
mod materna;
mod obeys;
mod pcp;
mod prometheus;
mod repairs;
mod synth;
mod sysstat;
