//! The recruiter's promises, on the built program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adapter;
mod hostile;
mod hosts;
mod leases;
#[allow(unreachable_pub)] // of the end-to-end tests, which would be a circle as a dependency
#[path = "../../../tests/src/mutate.rs"]
mod mutate;
mod quotas;
mod restarts;
mod roles;
mod running;
mod surfaces;
