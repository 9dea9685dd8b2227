//! Exports read back, and synthetic clusters against what a real trace obeys.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)] // tests

mod by_host;
mod export;
mod import;
mod mending;
mod obeys;
mod synth;
