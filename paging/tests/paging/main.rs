//! Drives the built programs. `gleaner-memoryd`: an agent of the test's own tells it of the owner, and the owner's socket asks.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod attach;
mod bystanders;
mod clerk;
mod giving_back;
mod granting;
mod host;
mod hostile;
mod interop;
mod load;
mod owner;
mod recruiter;
mod reload;
