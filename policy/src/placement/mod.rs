//! Placement: the choice of the hosts from which leases are requested.
//!
//! One enum of policies with one exhaustive match. All follow the common rules: enough room, no host twice,
//! and no host that failed recently.

mod choose;
mod state;
#[cfg(test)]
mod tests;

pub use gleaner_schemas::lending::{Placement, UnknownPlacement};
pub use state::State;

use gleaner_schemas::lending::SLAB_BYTES;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Default time for which a failed host is avoided (Dodo: one minute).
pub const REFRACTION_MS: i64 = 60_000;

/// Length of an epoch; hosts' weights are determined at its start (GMS: 5 to 10 s).
pub const EPOCH_MS: i64 = 5000;

/// A host that could be asked for a lease.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Id of the host.
    pub host_id: Arc<str>,
    /// Unleased bytes of the host's quota.
    pub unleased_bytes: u64,
    /// Bytes that are leased on the host.
    pub lent_bytes: u64,
    /// Page requests served per second.
    pub requests_per_s: f64,
    /// Bytes that this client has leased on the host.
    pub client_bytes: u64,
    /// Time for which the host has been idle.
    pub idle_for_ms: Option<i64>,
    /// Probability that the requested memory stays for the requested time, if the forecast has one.
    pub stays: Option<f64>,
    /// Time of the host's last failure, on the clock of `now_ms`.
    pub failed_ms: Option<i64>,
}

/// A client's request for memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// Client that makes the request.
    pub client: &'a str,
    /// Size of each copy; hosts grant whole slabs.
    pub bytes: u64,
    /// Number of copies, each on a different host.
    pub copies: usize,
}

/// Details of a failure to find as many hosts as copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// Hosts with room that could be asked now.
    pub hosts_with_room: usize,
    /// Hosts with room that failed too recently to be asked.
    pub hosts_that_failed: usize,
    /// Most unleased bytes on one host that could be asked.
    pub largest_unleased_bytes: u64,
    /// Time until the first failed host may be asked again.
    pub retry_in_ms: Option<i64>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use gleaner_schemas::units::{Bytes, Seconds};
        let largest = Bytes::from(self.largest_unleased_bytes);
        let count = self.hosts_with_room;
        write!(
            f,
            "{count} hosts have so much free, at most {largest} on one"
        )?;
        match self.retry_in_ms {
            Some(ms) => write!(
                f,
                "; {} more failed lately, and are asked again in {} at the earliest",
                self.hosts_that_failed,
                Seconds::from_ms(ms)
            ),
            None => Ok(()),
        }
    }
}

/// Chooses `request.copies` hosts, the best first; returns their indexes in `candidates`.
///
/// A host that failed within the refraction period is never chosen, even if there is no other: its clients
/// would only wait again, and the [`Shortage`] says when it may be asked. `random` returns uniform numbers
/// over all of `u64`; only policies that need numbers call it.
pub fn place(
    placement: Placement,
    state: &mut State,
    request: &Request<'_>,
    candidates: &[Candidate],
    random: &mut dyn FnMut() -> u64,
    now_ms: i64,
) -> Result<Vec<usize>, Shortage> {
    // If rounding up overflows, no host has room.
    let bytes = request.bytes.max(1).checked_next_multiple_of(SLAB_BYTES);
    let has_room = |c: &Candidate| bytes.is_some_and(|bytes| c.unleased_bytes >= bytes);
    let mut shortage = Shortage::default();
    let mut hosts = BTreeSet::new();
    let mut eligible = Vec::new();
    for (i, candidate) in candidates.iter().enumerate() {
        if !hosts.insert(&candidate.host_id) {
            continue;
        }
        let rests_ms = state.refraction_left_ms(candidate.failed_ms, now_ms);
        if rests_ms == 0 {
            shortage.largest_unleased_bytes = shortage
                .largest_unleased_bytes
                .max(candidate.unleased_bytes);
        }
        match (has_room(candidate), rests_ms) {
            (true, 0) => eligible.push(i),
            (true, ms) => {
                shortage.hosts_that_failed += 1;
                shortage.retry_in_ms = Some(shortage.retry_in_ms.map_or(ms, |r| r.min(ms)));
            }
            (false, _) => {}
        }
    }
    shortage.hosts_with_room = eligible.len();
    if eligible.len() < request.copies {
        return Err(shortage);
    }
    let choice = choose::Choice {
        request,
        bytes: bytes.unwrap_or(u64::MAX),
        candidates,
        eligible,
        now_ms,
    };
    Ok(choice.of(placement, state, random))
}
