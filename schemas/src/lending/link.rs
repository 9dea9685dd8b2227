//! Messages between a memory server and the recruiter: one JSON object per WebSocket message (RFC 6455), over
//! one connection that the memory server opens. Within a [`VERSION`], fields and kinds are only added.

use super::{HostQuota, Lease, Refusal};
use serde::{Deserialize, Serialize};

/// Version of the protocol, sent in every announcement.
pub const VERSION: u32 = 1;

/// Time between two announcements when nothing happens (Anemone: 10 s).
pub const ANNOUNCE_EVERY_MS: i64 = 10_000;

/// Time without messages after which a host is unreachable: three announcements missed.
pub const GONE_AFTER_MS: i64 = 3 * ANNOUNCE_EVERY_MS;

/// Time by which a memory server extends leases beyond their terms while no recruiter is reachable, unless
/// configured otherwise.
pub const OUTAGE_GRACE_MS: i64 = 3_600_000;

/// Message from the memory server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HostMessage {
    /// State of lending: sent on connecting, every [`ANNOUNCE_EVERY_MS`], and whenever the quota or the
    /// leases have changed.
    Announcement(Box<Announcement>),
    /// Answer to a request.
    Answer(Box<Answer>),
    /// A message of a later version.
    #[serde(other)]
    Other,
}

/// Complete state of a host's lending. Announcements alone let a recruiter rebuild its knowledge after a
/// restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Announcement {
    /// Version of the protocol ([`VERSION`]).
    pub version: u32,
    /// Version of the memory server.
    pub memoryd_version: String,
    /// Id of the memory server's process: a new one at each start.
    pub incarnation: String,
    /// Memory that the host may lend.
    pub quota: HostQuota,
    /// Address at which the host serves pages, as `HOST:PORT`; absent: the host serves no pages yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Path of the Unix socket at which the host serves the pages of its own leases; absent: it serves none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_socket: Option<String>,
    /// Load: page requests recently served per second.
    pub requests_per_s: f64,
    /// Every lease on the host.
    pub leases: Vec<Lease>,
    /// True where the memory server accepts [`RecruiterMessage::Revocations`]. Older memory servers
    /// reject messages of that length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepts_revocation_lists: bool,
}

/// Message from the recruiter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RecruiterMessage {
    /// Request on behalf of a client.
    Request(Request),
    /// Current revocation lists: sent after the first announcement, and whenever they change.
    Revocations(Revocations),
    /// Reason why the recruiter ends the connection.
    Refused(Refusal),
    /// A message of a later version.
    #[serde(other)]
    Other,
}

/// Maximum length of [`Revocations::pem`], in bytes: about 20,000 revoked certificates.
pub const MOST_REVOCATIONS_BYTES: usize = 1 << 20;

/// Certificates that the deployment's authorities have revoked. The lists are signed: a recruiter can
/// withhold a list, but cannot forge one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// Revocation lists (RFC 5280) in PEM form, one after another; at most [`MOST_REVOCATIONS_BYTES`].
    pub pem: String,
}

/// Request of a client to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Id of the request, repeated in the answer; unique on this connection only.
    pub request_id: u64,
    /// Kind of the request, with its parameters.
    #[serde(flatten)]
    pub asked: RequestKind,
}

/// Kinds of request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum RequestKind {
    /// Grants a lease; if a lease with the same key exists, returns that lease.
    Grant(GrantRequest),
    /// Renews a lease.
    Renew {
        /// Client that sent the request; `None`: an administrator sent it.
        client: Option<String>,
        /// Id of the lease.
        lease_id: String,
        /// Time from now until the lease ends.
        term_ms: i64,
    },
    /// Ends a lease; a lease that no longer exists counts as ended.
    Release {
        /// Client that sent the request; `None`: an administrator sent it.
        client: Option<String>,
        /// Id of the lease.
        lease_id: String,
    },
}

/// Lease that a memory server is to grant, as the recruiter requests it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantRequest {
    /// Client that gets the lease.
    pub client: String,
    /// Key of the client's choice, one for each lease.
    pub key: String,
    /// Size of the lease; rounded up to whole slabs.
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
    /// Unleased bytes of the quota after the request.
    pub unleased_bytes: u64,
    /// Page requests served per second, after the request.
    pub requests_per_s: f64,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The lease was granted now, or earlier by a request with the same key.
    Granted {
        /// The granted lease.
        lease: Lease,
    },
    /// The lease was renewed.
    Renewed {
        /// The renewed lease.
        lease: Lease,
    },
    /// The lease was ended, now or earlier.
    Released {
        /// Id of the lease.
        lease_id: String,
    },
    /// The request is refused.
    Refused(Refusal),
}
