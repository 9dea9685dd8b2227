//! A lease, and why there is none.

use serde::{Deserialize, Serialize};

/// Memory of one host, lent to one client for a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lease {
    /// 32 lower-case hex digits, never used twice.
    pub lease_id: String,
    /// Generation of the memory server's contents: a different one means that stored data are lost.
    pub generation: u64,
    /// Client that has it.
    #[serde(default)] // older recruiters left it out of their answers
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub client: String,
    /// Key of the client's request: repeating a request with the same key gives the same lease.
    pub key: String,
    /// Bytes granted; whole slabs.
    pub granted_bytes: u64,
    /// Bytes that are left of it: less than was granted once memory was wanted back.
    pub held_bytes: u64,
    /// Time until it ends unless it is renewed.
    pub expires_in_ms: i64,
}

/// Reason of a refusal, and the time to try again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refusal {
    /// Kind of the refusal, for programs.
    pub kind: RefusalKind,
    /// For people: what, where, and what to do.
    pub detail: String,
    /// Time to wait before the same request; absent: never.
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
    /// The owner is there, or has not been away for long enough.
    InUse,
    /// The owner has paused lending.
    Paused,
    /// Less is free than was asked for.
    NoMemory,
    /// The client has as much as one client may have.
    ClientLimit,
    /// The lease would use the reserve that is held back for all.
    Reserve,
    /// No memory is expected to be free for so long.
    TooLong,
    /// The lease does not exist, or no longer.
    UnknownLease,
    /// The lease is somebody else's.
    NotYours,
    /// The request contradicts itself, or an earlier one of the same key.
    Malformed,
    /// The host did not answer.
    Unreachable,
    /// The server is ending.
    Ending,
    /// The recruiter has just started, and has not heard of every host yet.
    Starting,
    /// The same request is being worked on, or too many others.
    Busy,
    /// A kind of a later version.
    #[default]
    #[serde(other)]
    Other,
}
