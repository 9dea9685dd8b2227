//! Leases, from the side of those who borrow: asked of recruiters, renewed and given back.
//!
//! Blocking, and for any number of threads. Whoever grants is the host that has the memory; recruiters find it, so that any of them will do.

mod ask;
mod recruiters;
mod unreachable;

use gleaner_schemas::lending::Refusal;
use serde::{Deserialize, Serialize};

pub use recruiters::{Recruiters, Settings};
pub use unreachable::Unreachable;

/// What is wanted: docs/recruiter.md has each field's bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// Of each lease.
    pub bytes: u64,
    /// Leases, each on a host of its own: all of them or none.
    pub copies: u32,
    /// One for each request: asking again by the same key gives the same leases.
    pub key: String,
    /// For how long, unless renewed.
    pub term_ms: i64,
    /// For how long as much should stay free of its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_ms: Option<i64>,
    /// How hosts are chosen; `None`: as the recruiter is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Ids of hosts that could not be reached a moment ago; at most [`MOST_AVOIDED`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<String>,
}

/// Longest list of hosts to avoid that recruiters accept.
pub const MOST_AVOIDED: usize = 64;

/// A lease, as its recruiter tells it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Granted {
    /// 32 lower-case hex digits.
    pub lease_id: String,
    /// As it was asked for.
    pub key: String,
    /// Which host has it: the name on that host's certificate.
    pub host_id: String,
    /// Where that serves pages, as `HOST:PORT`; `None`: nowhere yet.
    #[serde(default)]
    pub address: Option<String>,
    /// Of the contents: another one means that what was stored before is gone.
    pub generation: u64,
    /// Whole slabs.
    pub granted_bytes: u64,
    /// What is left of it.
    pub held_bytes: u64,
    /// When it ends unless it is renewed.
    pub expires_in_ms: i64,
}

/// Why there is no lease.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BorrowError {
    /// Nobody can be asked like that.
    #[error("{what}")]
    Settings {
        /// What is wrong, and what to write.
        what: String,
    },
    /// A recruiter says no: why, and when to come again.
    #[error("{url}: {}", .refusal.detail)]
    Refused {
        /// Which recruiter.
        url: String,
        /// Its reason.
        refusal: Refusal,
    },
    /// No recruiter answers: this is what came of the last one.
    #[error("no answer from the recruiter at {url} ({reason}): is it running, and the network up?")]
    Unreachable {
        /// Which recruiter.
        url: String,
        /// What happened.
        reason: String,
    },
    /// Something else answers.
    #[error("what answers at {url} is no recruiter, or one of another release ({what})")]
    Foreign {
        /// Where.
        url: String,
        /// What was wrong with the answer.
        what: String,
    },
    /// That is the name of no lease.
    #[error("{lease_id:?} is no lease: 32 lower-case hex digits are")]
    NoLease {
        /// As it was given.
        lease_id: String,
    },
}

impl From<gleaner_trust::AddressError> for BorrowError {
    fn from(error: gleaner_trust::AddressError) -> Self {
        Self::Settings {
            what: error.to_string(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests;
