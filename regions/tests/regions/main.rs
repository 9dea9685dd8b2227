//! Regions on real memory servers, which are killed, stopped and made to lie.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bindings;
mod failures;
mod recruiter;
mod regions;
mod server;
