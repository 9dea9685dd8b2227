//! The agent's socket: tells local daemons of each sample and of the owner's return, as lines of JSON
//! ([`gleaner_schemas::live`], `docs/live.md`).
//!
//! [`Server`] is part of the loop in [`crate::run`]: it never blocks, and costs nothing while nobody
//! listens. [`watch`] is a listener, for people.

mod listener;
mod server;
mod socket;
pub mod watch;

pub(crate) use server::Server;
