//! `gleaner-recruiter follow`: memory servers of others (memcached, Redis) on memory that a host's owner does not use.
//!
//! A source (`source/`) tells what the host may lend, `limit` says how much of that the server may have, and a
//! server (`server/`) is told so.

mod args;
mod failure;
mod follow;
mod limit;
mod report;
mod server;
mod source;

pub use args::Follow;
pub use failure::Failure;
pub use follow::run;
