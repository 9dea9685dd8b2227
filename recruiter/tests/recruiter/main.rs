//! The recruiter's promises, on the built program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adapter;
