//! Commands of a host's owner to its memory server, over a Unix socket: one JSON object per line in each
//! direction.

use super::{HostQuota, Lease, Refusal};
use serde::{Deserialize, Serialize};

/// Command from the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum OwnerCommand {
    /// Pauses lending until [`Self::Resume`], or for some time. Every user of the host may pause lending,
    /// since a pause only returns memory.
    Pause {
        /// Length of the pause; absent: until resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<i64>,
    },
    /// Resumes lending after a pause.
    Resume,
    /// Limits the lent memory; absent: only the configuration limits it.
    Cap {
        /// Cap in bytes; `None` removes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    /// Requests the state of lending.
    Status,
    /// Requests the log: times at which memory was returned, and the time that it took.
    Log,
}

/// Reply to the owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum OwnerReply {
    /// State of lending after the command.
    Lending(Box<LendingState>),
    /// Entries of the log, the oldest first.
    Log {
        /// Log entries, one per line of the log.
        reclaims: Vec<ReclaimRecord>,
    },
    /// The command is refused.
    Refused(Refusal),
}

/// State of lending on one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LendingState {
    /// Time of the answer, in milliseconds since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Memory that may be lent, and the reason.
    pub quota: HostQuota,
    /// Every lease on the host; empty where [`Self::are_leases_hidden`].
    pub leases: Vec<Lease>,
    /// True if the user who asked is neither root nor in the socket's group: leases, clients and the owner's
    /// times are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub are_leases_hidden: bool,
    /// Memory that guests' pages occupy now.
    pub resident_bytes: u64,
    /// Part of `resident_bytes` in huge pages.
    pub huge_page_bytes: u64,
    /// True if that memory is locked (never swapped).
    pub is_locked: bool,
    /// Memory that the daemon needs for itself.
    pub daemon_bytes: u64,
    /// True if the owner has paused lending.
    pub is_paused: bool,
    /// End of the pause; absent: until resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until_time_ms: Option<i64>,
    /// The owner's limit of lent memory; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_bytes: Option<u64>,
    /// True if the agent's messages arrive.
    pub is_agent_connected: bool,
    /// Configured recruiters to which the memory server has a link.
    pub linked_recruiters: Vec<String>,
    /// Page requests of the clients that hold leases; absent: the host serves no pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PagesServed>,
    /// Certificate revocation lists that the memory server applies to clients; absent: none has arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocations: Option<RevocationCount>,
    /// Memory that the command has reclaimed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaimed: Option<ReclaimRecord>,
}

/// Summary of the revocation lists that a memory server holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevocationCount {
    /// Date of the newest list, in milliseconds since 1970-01-01 UTC.
    pub issued_time_ms: i64,
    /// Revoked certificates, over all lists.
    pub certificates_count: u64,
}

/// Requests for pages since the memory server started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesServed {
    /// Number of clients' connections now.
    pub connections_count: u64,
    /// Number of requests answered.
    pub requests_count: u64,
    /// Number of requests answered with an error: lease ended, address beyond the lease's end, malformed.
    pub failed_count: u64,
    /// Requests by latency, from their arrival to the sending of their answer; the shortest class first.
    pub latency: Vec<LatencyClass>,
}

/// Requests that took at most `at_most_us`, and longer than those of the class before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyClass {
    /// Maximum latency of the class; absent: no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_us: Option<u64>,
    /// Number of requests in the class.
    pub requests_count: u64,
}

impl PagesServed {
    /// Returns the maximum latency of the class that contains this quantile of all requests. `None` without
    /// requests, and in the last class, which has no maximum.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.requests_count as f64).ceil().max(1.0);
        let mut counted = 0;
        let class = self.latency.iter().find(|class| {
            counted += class.requests_count;
            counted as f64 >= wanted
        })?;
        class.at_most_us
    }
}

/// Reclaimed memory: a line of the lending log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimRecord {
    /// Time of the reclaim, in milliseconds since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Time since which memory had been lent.
    pub lent_since_time_ms: i64,
    /// Maximum number of bytes leased since then.
    pub peak_lent_bytes: u64,
    /// Cause: `owner`, `load`, `owner_unknown`, `agent_lost`, `paused`, `quota`, `pressure`, `expired`,
    /// `released`, `revoked`, `ending`.
    pub cause: String,
    /// Reclaimed memory, in whole slabs.
    pub bytes: u64,
    /// Memory that was still leased after the reclaim.
    pub remaining_lent_bytes: u64,
    /// Time from memoryd's receipt of the cause to the first memory's return to the kernel.
    pub first_reclaim_us: u64,
    /// Time from the same receipt to the last memory's return; with several steps, the time of the longest
    /// step.
    pub full_reclaim_us: u64,
    /// Number of reclaims that this line of the log combines: the steps of one reclaim, or leases that ended
    /// one after another; else 1.
    pub steps_count: u64,
    /// Clients that had leases; of more than 32 clients, the first 32 by name.
    pub clients: Vec<String>,
}
