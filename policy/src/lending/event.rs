//! Events of a host's lending, and the actions that follow.

use crate::accounting::Categories;
use crate::idle::Verdict;
use crate::quota::Limits;
use gleaner_schemas::lending::{OUTAGE_GRACE_MS, Outcome, Request};

/// Settings of a host's lending. All of it comes from the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Mode, headroom, and the administrator's cap. Of this headroom and the agent's, which comes with every sample, the
    /// larger holds: 0 leaves it to the agent.
    pub limits: Limits,
    /// Time for which memory must have been available before the quota rises to it, so that it does not
    /// flutter; the quota falls at once.
    pub rise_after_ms: i64,
    /// The longest term of a lease.
    pub most_term_ms: i64,
    /// Most that is given back in one step while shrinking slowly, so that nothing stalls for long.
    pub shrink_step_bytes: u64,
    /// Time between two such steps.
    pub shrink_every_ms: i64,
    /// While no recruiter can be reached leases do not run out, for so long at most: an outage of the
    /// recruiter costs no lease.
    pub outage_grace_ms: i64,
    /// Time without grants after the kernel reported pressure.
    pub pressure_pause_ms: i64,
    /// Most leases at a time: every announcement names them all.
    pub most_leases_count: usize,
    /// True if leases are granted; otherwise the quota is for others' memory servers.
    pub grants: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits {
                headroom_share: 0.0,
                ..Limits::default()
            },
            rise_after_ms: 180_000,
            most_term_ms: 3_600_000,
            shrink_step_bytes: 64 << 20,
            shrink_every_ms: 100,
            outage_grace_ms: OUTAGE_GRACE_MS,
            pressure_pause_ms: 60_000,
            most_leases_count: 1024,
            grants: true,
        }
    }
}

/// Event that has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A sample of the agent's.
    Sample {
        /// Division of physical memory; `guest_bytes` is what the agent saw of ours.
        categories: Categories,
        /// MemAvailable of the sample, in bytes.
        mem_available_bytes: Option<u64>,
        /// Share of physical memory that is never lent.
        headroom_share: f64,
        /// Verdict of the idle rule, with times on the clock of `now_ms`.
        verdict: Verdict,
    },
    /// The owner is back, or counts as back: all of it is given back, at once. (Mode `spare` keeps what it may lend of
    /// a host in use, if the cause is [`Cause::Owner`] or [`Cause::Load`].) [`Cause::Ending`] is for good.
    Returned(Cause),
    /// The agent says that the host is idle.
    Idle {
        /// On the clock of `now_ms`.
        since_ms: i64,
    },
    /// Memory that the kernel has available now, looked up each second while memory is lent.
    Available {
        /// Present MemAvailable, in bytes.
        mem_available_bytes: u64,
        /// Guests' pages in memory at the same moment.
        resident_bytes: u64,
    },
    /// The kernel reported memory pressure (PSI).
    Pressure,
    /// The owner wants nothing lent, until then or until [`Event::Resume`].
    Pause {
        /// On the clock of `now_ms`.
        until_ms: Option<i64>,
    },
    /// The owner lets lending go on.
    Resume,
    /// The owner's own cap; `None`: the administrator's alone.
    Cap(Option<u64>),
    /// A request, from the recruiter link `link`, with an id and (for a grant) a number nobody can guess to name the lease by.
    Request {
        /// Number of the link, repeated with the answer.
        link: usize,
        /// Request of the recruiter.
        request: Request,
        /// 32 lower-case hex digits, fresh.
        fresh_id: String,
    },
    /// Certificates were revoked by which these leases were read or written, by id: the leases end.
    CertificateRevoked(Vec<String>),
    /// True if any recruiter can be reached.
    Linked(bool),
    /// The administrator wants it otherwise from now on. Leases that there are go on, as far as the new quota lets them.
    Settings(Settings),
    /// Bytes given back from each lease after [`Action::Shrink`]. Due after each, even if empty: the next
    /// step waits for it.
    Shrunk(Vec<(String, u64)>),
    /// Time has passed: leases run out, pauses end, shrinking goes on.
    Tick,
}

/// Reason why memory is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The owner's first sign: a key, the mouse, a terminal.
    Owner,
    /// The host is too loaded to count as idle.
    Load,
    /// The owner can no longer be seen, or samples are missing.
    Unseen,
    /// The agent fell silent or is gone.
    AgentLost,
    /// The owner said so.
    Paused,
    /// The quota fell below the lent memory.
    Quota,
    /// The kernel reported pressure.
    Pressure,
    /// The lease ran out.
    Expired,
    /// The client has no more use for it.
    Released,
    /// The certificate of the lease's client was revoked.
    Revoked,
    /// The memory server ends.
    Ending,
}

/// Actions to be done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Give all guests' memory back to the kernel, before anything else; no lease is left, and none is named.
    RevokeAll(Cause),
    /// Give the remaining memory of a lease back: the lease is over.
    Revoke {
        /// Id of the lease.
        lease_id: String,
        /// Reason of the revocation.
        cause: Cause,
    },
    /// Gives back this much, the oldest slabs first, and reports it ([`Event::Shrunk`]).
    Shrink {
        /// Whole slabs, in bytes.
        bytes: u64,
        /// Reason for taking part of it.
        cause: Cause,
    },
    /// Makes room for a lease: reserves its slabs. Comes before its answer. If that fails, end the lease
    /// (with a request to release it, of no client) and answer with that instead.
    Open {
        /// Id of the lease.
        lease_id: String,
        /// Client of the lease, the only one that may read its pages.
        client: String,
        /// Whole slabs, in bytes.
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
    /// The quota or the leases have changed: announce them.
    Announce,
}

impl Action {
    /// Returns true if leases begin or end by it.
    pub(super) const fn is_of_leases(&self) -> bool {
        matches!(
            self,
            Self::RevokeAll(_) | Self::Revoke { .. } | Self::Open { .. }
        )
    }
}
