//! `gleaner-recruiter follow`: lets third-party memory servers (memcached, Redis) use memory that a host's
//! owner does not use.
//!
//! A source (`source/`) provides the host's quota, `limit` computes the server's limit from it, and a server
//! (`server/`) applies the limit.

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
