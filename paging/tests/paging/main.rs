//! Tests of the built programs. For `gleaner-memoryd`, the test plays the agent and uses the owner's socket.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod attach;
mod bystanders;
mod clerk;
mod encrypted;
mod export_file;
mod giving_back;
mod granting;
mod host;
mod hostile;
mod interop;
mod load;
mod owner;
mod recruiter;
mod reload;
