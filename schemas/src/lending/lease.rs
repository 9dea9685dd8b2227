//! A lease, and why there is none.

use serde::{Deserialize, Serialize};

/// Memory of one host, lent to one client for a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lease {
    /// 32 lower-case hex digits, never used twice.
    pub lease_id: String,
    /// Of the memory server's contents: another one means that what was stored before is gone.
    pub generation: u64,
    /// Client that has it.
    #[serde(default)] // older recruiters left it out of their answers
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub client: String,
    /// By which the client asked: asking again by the same key gets the same lease.
    pub key: String,
    /// As granted; whole slabs.
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
    /// For programs.
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
    /// It would touch what is held back for all.
    Reserve,
    /// No memory is expected to be free for so long.
    TooLong,
    /// There is no such lease (any more).
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
    /// Of a later version.
    #[default]
    #[serde(other)]
    Other,
}
