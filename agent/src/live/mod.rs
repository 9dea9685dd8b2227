//! The agent's socket: sends local daemons each sample and the owner's returns as lines of JSON
//! ([`gleaner_schemas::live`], `docs/live.md`).
//!
//! [`Server`] is part of the loop in [`crate::run`]: it never blocks, and costs nothing while nobody
//! listens. [`watch`] is a listener that prints text.

mod listener;
mod server;
mod socket;
pub mod watch;

pub(crate) use server::Server;
