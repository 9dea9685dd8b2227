//! A lease, and the reasons for refusing one.

use serde::{Deserialize, Serialize};

/// Memory of one host, promised to one client for a term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lease {
    /// Id: 32 lower-case hex digits, never used twice.
    pub lease_id: String,
    /// Generation of the memory server's contents: a different one means that stored data are lost.
    pub generation: u64,
    /// Client that holds the lease.
    #[serde(default)] // older recruiters left it out of their answers
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub client: String,
    /// Key of the client's request: repeating a request with the same key gives the same lease.
    pub key: String,
    /// Granted bytes, in whole slabs.
    pub granted_bytes: u64,
    /// Remaining bytes of the lease: fewer than were granted once the host has reclaimed some.
    pub remaining_bytes: u64,
    /// Time until the lease ends unless it is renewed.
    pub expires_in_ms: i64,
}

/// Reason of a refusal, and the time after which to retry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refusal {
    /// Kind of the refusal, for programs.
    pub kind: RefusalKind,
    /// Explanation for people: the failure, its place, and the remedy.
    pub detail: String,
    /// Time to wait before the same request; absent: do not retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<i64>,
}

/// Kinds of refusal.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The owner is present, or has not been away for long enough.
    InUse,
    /// The owner has paused lending.
    Paused,
    /// The host has less free memory than requested.
    NoMemory,
    /// The client already has as much as one client may have.
    ClientLimit,
    /// The lease would use the reserve that is kept for all clients.
    Reserve,
    /// No memory is expected to stay available for the requested time.
    TooLong,
    /// The lease does not exist, or no longer exists.
    UnknownLease,
    /// The lease belongs to another client.
    NotYours,
    /// The request contradicts itself, or an earlier request with the same key.
    Malformed,
    /// The host did not answer.
    Unreachable,
    /// The server is shutting down.
    Ending,
    /// The recruiter has just started, and has not yet received an announcement from every host.
    Starting,
    /// The same request is already in progress, or too many others are.
    Busy,
    /// A kind of a later version.
    #[default]
    #[serde(other)]
    Other,
}
