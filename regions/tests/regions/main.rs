//! Regions on real memory servers that are killed or stopped, or that lie.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bindings;
mod failures;
mod recruiter;
mod regions;
mod server;
