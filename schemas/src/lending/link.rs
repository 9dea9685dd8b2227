//! Messages between a memory server and the recruiter: one JSON object a WebSocket message (RFC 6455), over one
//! connection that the memory server opens. Fields and kinds are only added within a [`VERSION`].

use super::{HostQuota, Lease, Refusal};
use serde::{Deserialize, Serialize};

/// Version of the protocol, said in every announcement.
pub const VERSION: u32 = 1;

/// Time between two announcements when nothing happens (Anemone: 10 s).
pub const ANNOUNCE_EVERY_MS: i64 = 10_000;

/// A host that was silent for so long is gone: three announcements missed.
pub const GONE_AFTER_MS: i64 = 3 * ANNOUNCE_EVERY_MS;

/// While no recruiter can be reached a memory server lets leases go on for so long beyond their terms, unless it is
/// configured otherwise.
pub const OUTAGE_GRACE_MS: i64 = 3_600_000;

/// From the memory server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HostMessage {
    /// On connecting, every [`ANNOUNCE_EVERY_MS`], and whenever the quota or the leases have changed.
    Announcement(Box<Announcement>),
    /// To a request.
    Answer(Box<Answer>),
    /// A message of a later version.
    #[serde(other)]
    Other,
}

/// Complete state of a host's lending, from which alone a recruiter rebuilds its knowledge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Announcement {
    /// Version of the protocol ([`VERSION`]).
    pub version: u32,
    /// Version of the memory server.
    pub memoryd_version: String,
    /// Another one with each start of the memory server.
    pub incarnation: String,
    /// Memory that it may lend.
    pub quota: HostQuota,
    /// Address at which its pages are served, as `HOST:PORT`; absent: nowhere yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Load: page requests served a second, lately.
    pub requests_per_s: f64,
    /// Every lease there is.
    pub leases: Vec<Lease>,
    /// True where [`RecruiterMessage::Revocations`] is understood. Older memory servers take no message of that length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_revocations: bool,
}

/// From the recruiter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RecruiterMessage {
    /// On behalf of a client.
    Request(Request),
    /// Revocation lists that hold by now: after the first announcement, and whenever they change.
    Revocations(Revocations),
    /// Reason why the connection ends.
    Refused(Refusal),
    /// A message of a later version.
    #[serde(other)]
    Other,
}

/// Most bytes of [`Revocations::pem`]: about 20,000 revoked certificates.
pub const MOST_REVOCATIONS_BYTES: usize = 1 << 20;

/// Certificates that the deployment's authorities have revoked. The lists are signed: a recruiter can withhold one, and cannot forge it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// Revocation lists (RFC 5280) in PEM form, one after another; [`MOST_REVOCATIONS_BYTES`] at most.
    pub pem: String,
}

/// Request of a client to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Id of the request, repeated in the answer; unique on this connection only.
    pub request_id: u64,
    /// Command of the request.
    #[serde(flatten)]
    pub asked: RequestKind,
}

/// Kinds of request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum RequestKind {
    /// A lease; by a key that is there already, that lease.
    Grant(GrantRequest),
    /// Renews a lease.
    Renew {
        /// Client that asks; `None`: an administrator asks.
        client: Option<String>,
        /// Id of the lease.
        lease_id: String,
        /// For how long, from now.
        term_ms: i64,
    },
    /// The end of a lease; one that is gone counts as ended.
    Release {
        /// Client that asks; `None`: an administrator asks.
        client: Option<String>,
        /// Id of the lease.
        lease_id: String,
    },
}

/// Lease that a memory server is to grant, in the recruiter's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantRequest {
    /// Client that gets the lease.
    pub client: String,
    /// Key of the client's choice, one for each lease.
    pub key: String,
    /// Size; rounded up to whole slabs.
    pub bytes: u64,
    /// Time until the lease ends unless it is renewed.
    pub term_ms: i64,
}

/// Answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Id of the request.
    pub request_id: u64,
    /// Outcome of the request.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Free after it.
    pub free_bytes: u64,
    /// Load after it.
    pub requests_per_s: f64,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Granted, or granted before by the same key.
    Granted {
        /// The granted lease.
        lease: Lease,
    },
    /// The lease was renewed.
    Renewed {
        /// The renewed lease.
        lease: Lease,
    },
    /// Ended, now or before.
    Released {
        /// Id of the lease.
        lease_id: String,
    },
    /// The request is refused.
    Refused(Refusal),
}
