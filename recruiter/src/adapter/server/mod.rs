//! Third-party memory servers whose limits `follow` sets.

mod memcached;
mod redis;

use super::{Failure, FollowArgs};
use std::time::Duration;

/// Timeout of a server's answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// State of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// Bytes of the host's memory that the server uses.
    pub(super) used_bytes: u64,
    /// Memory limit of the server in bytes; 0: no limit.
    pub(super) limit_bytes: u64,
}

/// A server whose limit `follow` sets. It is connected when needed, and connected again after a failure.
pub(super) enum Server {
    Memcached(memcached::Memcached),
    Redis(Box<redis::Redis>),
}

impl Server {
    /// # Errors
    /// [`Failure::File`] if the password cannot be read.
    pub(super) fn new(args: &FollowArgs) -> Result<Self, Failure> {
        Ok(match (&args.memcached, &args.redis) {
            (Some(address), _) => Self::Memcached(memcached::Memcached::new(address)),
            (None, address) => {
                let address = address.as_deref().unwrap_or_default();
                Self::Redis(Box::new(redis::Redis::new(address, args)?))
            }
        })
    }

    /// Reads the present state of the server.
    pub(super) fn state(&mut self) -> Result<State, Failure> {
        match self {
            Self::Memcached(server) => server.state(),
            Self::Redis(server) => server.state(),
        }
    }

    /// Nearest limit that the server accepts.
    pub(super) fn nearest(&self, bytes: u64) -> u64 {
        match self {
            Self::Memcached(_) => memcached::nearest(bytes),
            Self::Redis(_) => bytes.max(1), // 0 would be no limit
        }
    }

    /// Sets the server's memory limit.
    pub(super) fn set_limit(&mut self, bytes: u64) -> Result<(), Failure> {
        match self {
            Self::Memcached(server) => server.set_limit(bytes),
            Self::Redis(server) => server.set_limit(bytes),
        }
    }

    /// Makes the server return memory above its limit, for a short time.
    pub(super) fn shrink_to_limit(&mut self) -> Result<(), Failure> {
        match self {
            Self::Memcached(server) => server.shrink_to_limit(),
            Self::Redis(server) => server.shrink_to_limit(),
        }
    }

    /// Returns true if another immediate call of [`Self::shrink_to_limit`] returns more memory.
    pub(super) fn reclaims_gradually(&self) -> bool {
        matches!(self, Self::Memcached(_))
    }

    /// Returns true if the server evicts data when it is above its limit.
    pub(super) fn evicts(&mut self) -> Result<bool, Failure> {
        match self {
            Self::Memcached(_) => Ok(true),
            Self::Redis(server) => server.evicts(),
        }
    }

    /// Name and address of the server, like `memcached at 127.0.0.1:11211`.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Memcached(server) => server.name(),
            Self::Redis(server) => server.name(),
        }
    }
}
