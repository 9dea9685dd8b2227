//! Events of a host's lending, and the actions that result.

use crate::accounting::Categories;
use crate::idle::Verdict;
use crate::quota::Limits;
use gleaner_schemas::lending::{OUTAGE_GRACE_MS, Outcome, Request};

/// Settings of a host's lending, all from the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Mode, headroom, and the administrator's cap. Every sample brings the agent's headroom too, and the
    /// larger of the two applies: 0 here leaves it to the agent.
    pub limits: Limits,
    /// Time for which memory must be available before the quota includes it, so that the quota does not
    /// flutter. The quota falls immediately.
    pub rise_after_ms: i64,
    /// Maximum term of a lease.
    pub max_term_ms: i64,
    /// Maximum bytes reclaimed in one step of a slow shrink, so that no request stalls for long.
    pub shrink_step_bytes: u64,
    /// Time between two such steps.
    pub shrink_every_ms: i64,
    /// Maximum time for which leases do not expire while no recruiter is reachable: a recruiter's outage
    /// costs no lease.
    pub outage_grace_ms: i64,
    /// Time without grants after the kernel reported pressure.
    pub pressure_pause_ms: i64,
    /// Maximum number of leases at a time: every announcement lists them all.
    pub most_leases_count: usize,
    /// True if this server grants leases; otherwise the quota is for other memory servers.
    pub grants_leases: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits {
                headroom_share: 0.0,
                ..Limits::default()
            },
            rise_after_ms: 180_000,
            max_term_ms: 3_600_000,
            shrink_step_bytes: 64 << 20,
            shrink_every_ms: 100,
            outage_grace_ms: OUTAGE_GRACE_MS,
            pressure_pause_ms: 60_000,
            most_leases_count: 1024,
            grants_leases: true,
        }
    }
}

/// Event for a host's lending.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The agent sent a sample.
    Sample {
        /// Division of physical memory; `guest_bytes` is the part that the agent attributes to Gleaner.
        categories: Categories,
        /// MemAvailable of the sample, in bytes.
        mem_available_bytes: Option<u64>,
        /// Share of physical memory that is never lent.
        headroom_share: f64,
        /// Verdict of the idle rule, with times on the clock of `now_ms`.
        verdict: Verdict,
    },
    /// The owner is back, or must be treated as back: all lent memory is reclaimed immediately. Exception: in
    /// mode `spare`, if the cause is [`Cause::Owner`] or [`Cause::Load`], the part that a host in use may
    /// lend stays lent. [`Cause::Ending`] is final.
    Returned(Cause),
    /// The agent reports that the host is idle.
    Idle {
        /// Start of the idle period, on the clock of `now_ms`.
        since_ms: i64,
    },
    /// Memory that the kernel has available now, read each second while memory is lent.
    Available {
        /// Current MemAvailable, in bytes.
        mem_available_bytes: u64,
        /// Guests' pages in memory at the same moment.
        resident_bytes: u64,
    },
    /// The kernel reported memory pressure (PSI).
    Pressure,
    /// The owner forbids lending, until `until_ms` or [`Event::Resume`].
    Pause {
        /// End of the pause, on the clock of `now_ms`; `None`: no end.
        until_ms: Option<i64>,
    },
    /// The owner allows lending again.
    Resume,
    /// The owner's own cap; `None`: only the administrator's applies.
    Cap(Option<u64>),
    /// A request that arrived over the recruiter link `link`. It carries an unguessable id, which a grant
    /// uses for its lease.
    Request {
        /// Number of the link, repeated in the answer.
        link: usize,
        /// The recruiter's request.
        request: Request,
        /// New unguessable id: 32 lower-case hex digits.
        fresh_id: String,
    },
    /// Certificates were revoked. The listed leases (by id) were read or written with these certificates, and
    /// end.
    CertificateRevoked(Vec<String>),
    /// Reachability of recruiters: true if at least one is reachable.
    Linked(bool),
    /// The administrator changed the settings. Existing leases continue, as far as the new quota allows.
    Settings(Settings),
    /// Bytes reclaimed from each lease after [`Action::Shrink`]. Required after each such action, even if
    /// empty: the next step waits for it.
    Shrunk(Vec<(String, u64)>),
    /// Time has passed: leases expire, pauses end, shrinking continues.
    Tick,
}

/// Reason why memory is reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The owner's first activity: a key, the mouse, a terminal.
    Owner,
    /// The load is too high for the host to count as idle.
    Load,
    /// The owner's activity is unknown, or samples are missing.
    OwnerUnknown,
    /// The agent fell silent or has ended.
    AgentLost,
    /// The owner paused lending.
    Paused,
    /// The quota fell below the lent memory.
    Quota,
    /// The kernel reported pressure.
    Pressure,
    /// The lease expired.
    Expired,
    /// The client released the lease.
    Released,
    /// The certificate of the lease's client was revoked.
    Revoked,
    /// The memory server is shutting down.
    Ending,
}

/// Actions to perform, in the order returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Return all guests' memory to the kernel, before any other action. All leases end; no
    /// [`Action::Revoke`] follows for single leases.
    RevokeAll(Cause),
    /// Return the remaining memory of a lease: the lease is over.
    Revoke {
        /// Id of the lease.
        lease_id: String,
        /// Reason of the revocation.
        cause: Cause,
    },
    /// Return `bytes` to the kernel, oldest slabs first, and report it ([`Event::Shrunk`]).
    Shrink {
        /// Bytes, in whole slabs.
        bytes: u64,
        /// Reason of the shrink.
        cause: Cause,
    },
    /// Make room for a lease: reserve its slabs. Comes before the lease's answer. If it fails, end the lease
    /// (by a release request without a client) and answer with that failure instead.
    Open {
        /// Id of the lease.
        lease_id: String,
        /// Client of the lease, the only one that may read its pages.
        client: String,
        /// Bytes, in whole slabs.
        bytes: u64,
    },
    /// Answer a request.
    Answer {
        /// Link of the request.
        link: usize,
        /// Id of the request.
        request_id: u64,
        /// Result of the request.
        outcome: Outcome,
    },
    /// Announce the quota and the leases, which have changed.
    Announce,
}

impl Action {
    /// Returns true if the action begins or ends leases.
    pub(super) const fn changes_leases(&self) -> bool {
        matches!(
            self,
            Self::RevokeAll(_) | Self::Revoke { .. } | Self::Open { .. }
        )
    }
}
