//! The borrower's side of leases: requesting them from recruiters, renewing and releasing them.
//!
//! Calls block, and may come from any number of threads. A lease is granted by the host with the memory.
//! Recruiters only find that host, so a client may ask any recruiter.

mod ask;
mod recruiters;
mod source;
mod unreachable;

use gleaner_schemas::lending::Refusal;

pub use recruiters::{Recruiters, Settings};
pub use source::{UnusableLease, source};
pub use unreachable::UnreachableHosts;

/// Reason why a request got no lease.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BorrowError {
    /// A setting is missing or wrong.
    #[error("{what}")]
    Settings {
        /// Fault and remedy.
        what: String,
    },
    /// The recruiter refuses. The refusal has the reason, and the time after which to retry.
    #[error("{url}: {}", .refusal.detail)]
    Refused {
        /// URL of the recruiter.
        url: String,
        /// The recruiter's refusal.
        refusal: Refusal,
    },
    /// No recruiter answers; the fields are those of the last one tried.
    #[error("no answer from the recruiter at {url} ({reason}): is it running, and the network up?")]
    Unreachable {
        /// URL of the recruiter.
        url: String,
        /// Reason why that recruiter did not answer.
        reason: String,
    },
    /// The answer is not a recruiter's.
    #[error("the server at {url} is no recruiter, or of another release ({what})")]
    Foreign {
        /// URL of the recruiter.
        url: String,
        /// Fault of the answer.
        what: String,
    },
    /// The text is no lease id.
    #[error("{lease_id:?} is no lease id: it must have 32 lower-case hex digits")]
    NoLease {
        /// Text as given.
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
