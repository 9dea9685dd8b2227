//! Memory servers of others.

mod memcached;
mod redis;

use super::{Failure, FollowArgs};
use std::time::Duration;

/// Longest time of an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// State of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// Bytes of the host's memory that it has.
    pub(super) used_bytes: u64,
    /// Bytes that it may have; 0: as much as it likes.
    pub(super) limit_bytes: u64,
}

/// A server whose limit is kept. It is connected to when needed, and again after a failure.
pub(super) enum Server {
    Memcached(memcached::Memcached),
    Redis(Box<redis::Redis>),
}

impl Server {
    /// # Errors
    /// [`Failure::File`] where the password cannot be read.
    pub(super) fn new(args: &FollowArgs) -> Result<Self, Failure> {
        Ok(match (&args.memcached, &args.redis) {
            (Some(address), _) => Self::Memcached(memcached::Memcached::new(address)),
            (None, address) => {
                let address = address.as_deref().unwrap_or_default();
                Self::Redis(Box::new(redis::Redis::new(address, args)?))
            }
        })
    }

    /// State of the server now.
    pub(super) fn state(&mut self) -> Result<State, Failure> {
        match self {
            Self::Memcached(server) => server.state(),
            Self::Redis(server) => server.state(),
        }
    }

    /// The nearest limit that it can be given.
    pub(super) fn nearest(&self, bytes: u64) -> u64 {
        match self {
            Self::Memcached(_) => memcached::nearest(bytes),
            Self::Redis(_) => bytes.max(1), // 0 would be no limit
        }
    }

    /// Sets its limit.
    pub(super) fn set_limit(&mut self, bytes: u64) -> Result<(), Failure> {
        match self {
            Self::Memcached(server) => server.set_limit(bytes),
            Self::Redis(server) => server.set_limit(bytes),
        }
    }

    /// Makes the server give back, for a while, memory above its limit.
    pub(super) fn give_back(&mut self) -> Result<(), Failure> {
        match self {
            Self::Memcached(server) => server.give_back(),
            Self::Redis(server) => server.give_back(),
        }
    }

    /// Returns true if the server gives back more when asked again at once.
    pub(super) fn gives_back_by_and_by(&self) -> bool {
        matches!(self, Self::Memcached(_))
    }

    /// Returns true if the server evicts data above its limit.
    pub(super) fn evicts(&mut self) -> Result<bool, Failure> {
        match self {
            Self::Memcached(_) => Ok(true),
            Self::Redis(server) => server.evicts(),
        }
    }

    /// `memcached at 127.0.0.1:11211`.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Memcached(server) => server.name(),
            Self::Redis(server) => server.name(),
        }
    }
}
