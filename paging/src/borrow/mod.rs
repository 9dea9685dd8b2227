//! Leases, from the side of those who borrow: asked of recruiters, renewed and given back.
//!
//! Blocking, and for any number of threads. Whoever grants is the host that has the memory; recruiters find it, so that any of them will do.

mod ask;
mod recruiters;
mod source;
mod unreachable;

use gleaner_schemas::lending::Refusal;

pub use recruiters::{Recruiters, Settings};
pub use source::{UnusableLease, source};
pub use unreachable::Unreachable;

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
