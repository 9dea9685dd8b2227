//! `gleaner-recruiter follow`: memory servers of others (memcached, Redis) on memory that a host's owner does not use.
//!
//! A source (`source/`) gives the host's quota, `limit` computes the server's limit from it, and a server
//! (`server/`) gets that limit.

mod args;
mod failure;
mod follow;
mod limit;
mod report;
mod server;
mod source;

pub use args::FollowArgs;
pub use failure::Failure;
pub use follow::run;
