//! Commands of a host's owner to its memory server, over a Unix socket: one JSON object a line each way.

use super::{HostQuota, Lease, Refusal};
use serde::{Deserialize, Serialize};

/// From the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum OwnerCommand {
    /// Pauses lending until [`Self::Resume`], or for some time. Every user of the host may do it, since it
    /// only returns memory.
    Pause {
        /// For how long; absent: until resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        for_ms: Option<i64>,
    },
    /// Lending goes on.
    Resume,
    /// Never more than this; absent: as much as the configuration lets.
    Cap {
        /// Cap in bytes; `None` removes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    /// State of lending.
    Status,
    /// Times at which memory was given back, and how fast.
    Log,
}

/// To the owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum OwnerReply {
    /// State after the command.
    Lending(Box<LendingState>),
    /// Entries of the log, the oldest first.
    Log {
        /// A line each.
        given_back: Vec<ReclaimRecord>,
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
    /// Every lease; none where [`Self::are_leases_hidden`].
    pub leases: Vec<Lease>,
    /// The user who asked is neither root nor of the socket's group: leases, clients and the owner's times are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub are_leases_hidden: bool,
    /// Memory that guests' pages take up now.
    pub resident_bytes: u64,
    /// Part of it in huge pages.
    pub huge_bytes: u64,
    /// True if it is locked (never swapped).
    pub is_locked: bool,
    /// Memory that the daemon needs for itself.
    pub own_bytes: u64,
    /// Paused by the owner.
    pub is_paused: bool,
    /// Until then; absent: until resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until_time_ms: Option<i64>,
    /// The owner's cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_bytes: Option<u64>,
    /// True if the agent's messages arrive.
    pub hears_agent: bool,
    /// Recruiters that it is linked with, of those configured.
    pub recruiters: Vec<String>,
    /// Requests of leases' clients; absent: their pages are served nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PagesServed>,
    /// Revocation lists in force for leases' clients; absent: none has arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocations: Option<RevocationCount>,
    /// Memory that the command has given back, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_back: Option<ReclaimRecord>,
}

/// Summary of the revocation lists that a memory server holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevocationCount {
    /// Date of the newest list, in milliseconds since 1970-01-01 UTC.
    pub made_time_ms: i64,
    /// Revoked certificates, over all lists.
    pub certificates_count: u64,
}

/// Requests for pages, since the memory server started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesServed {
    /// Clients' connections now.
    pub connections_count: u64,
    /// Number of requests answered.
    pub requests_count: u64,
    /// Number of requests answered with an error: lease ended, beyond its end, malformed.
    pub failed_count: u64,
    /// Requests by the time from their arrival to the sending of their answer, the shortest first.
    pub latency: Vec<LatencyClass>,
}

/// Requests that took up to so long, and longer than those of the class before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyClass {
    /// Longest time; absent: none is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_us: Option<u64>,
    /// Number of requests.
    pub requests_count: u64,
}

impl PagesServed {
    /// The class that holds this share of all requests, and those before it: its longest time. `None` without requests, and beyond the last
    /// class that has one.
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

/// Memory that was lent and given back: a line of the lending log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimRecord {
    /// Time of giving back, in milliseconds since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Time since which memory had been lent.
    pub lent_since_time_ms: i64,
    /// Most that was leased since then.
    pub peak_lent_bytes: u64,
    /// Cause: `owner`, `load`, `unseen`, `agent_lost`, `paused`, `quota`, `pressure`, `expired`, `released`, `revoked`, `ending`.
    pub cause: String,
    /// Memory, in whole slabs.
    pub bytes: u64,
    /// Memory that was still leased afterwards.
    pub left_lent_bytes: u64,
    /// From memoryd's receipt of what made it so to the first memory's return to the kernel.
    pub first_us: u64,
    /// To the last memory's return; of several steps, the longest step.
    pub all_us: u64,
    /// Steps in which it went, or leases that ended one after the other; else 1.
    pub steps_count: u64,
    /// Clients whose leases there were; of more than 32 the first 32 by name.
    pub clients: Vec<String>,
}
