//! Tests of the recruiter as a built program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adapter;
mod commons;
mod hostile;
mod hosts;
mod leases;
mod quotas;
mod restarts;
mod roles;
mod running;
mod surfaces;
