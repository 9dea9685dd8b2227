//! Leases of this host's own memory: requested as blocks fill them, renewed, and returned when other clients
//! need the memory. A quarter of the host's quota stays free for other clients.

use super::announced::{announced_frames, reachable_bytes};
use super::lease::BlockLease;
use super::pool::LeasePool;
use crate::catalog::BLOCK_BYTES;
use gleaner_paging::borrow::{self, BorrowError, Recruiters};
use gleaner_schemas::lending::{LeaseRequest, LeaseView, RefusalKind, SLAB_BYTES};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Size of a lease, unless there would be too many: each lease has connections of its own.
const LEASE_BYTES: u64 = 64 << 20;
/// Number of leases above which they are larger.
const MANY_LEASES: u64 = 16;
/// Term of a lease; it leaves time to repeat failed renewals. After it, leases of a killed service end.
const TERM_MS: i64 = 35_000;
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// Interval of checks whether the host has taken a lease back.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Pause after a refusal that states no time for a retry, and after the loss of a lease.
const PAUSE: Duration = Duration::from_secs(5);

/// Settings of the leases.
#[derive(Clone, Debug)]
pub struct HoldSettings {
    /// Id of this host.
    pub host_id: String,
    /// Most bytes of all leases.
    pub most_bytes: u64,
    /// Unique beginning of the keys of this service's requests.
    pub session: String,
}

struct KeptLease {
    lease_id: String,
    bytes: u64,
    lease: Arc<BlockLease>,
    renewed: Instant,
    probed: Instant,
}

/// Work on the leases, for one thread.
pub struct LeaseKeeper {
    recruiters: Recruiters,
    settings: HoldSettings,
    pool: Arc<LeasePool>,
    kept: Vec<KeptLease>,
    requests_count: u64,
    not_before: Instant,
    /// True after a refusal or a loss, until a lease is granted.
    is_short: bool,
    announced_frames: u32,
    said: String,
}

impl LeaseKeeper {
    /// Starts without leases.
    #[must_use]
    pub fn new(recruiters: Recruiters, settings: HoldSettings, pool: Arc<LeasePool>) -> Self {
        Self {
            recruiters,
            settings,
            pool,
            kept: Vec::new(),
            requests_count: 0,
            not_before: Instant::now(),
            is_short: false,
            announced_frames: 0,
            said: String::new(),
        }
    }

    /// Checks and renews the leases, and adjusts their number to the host's quota (`None`: unknown). Returns
    /// true if a lease was added or has ended.
    pub fn turn(&mut self, quota_bytes: Option<u64>) -> bool {
        for kept in &mut self.kept {
            if kept.probed.elapsed() >= PROBE_EVERY {
                kept.probed = Instant::now();
                kept.lease.probe();
            }
        }
        self.renew();
        let mut has_changed = self.remove_ended();
        if let Some(quota_bytes) = quota_bytes {
            has_changed |= self.suit(allowed_bytes(quota_bytes, self.settings.most_bytes));
        }
        has_changed
    }

    /// Blocks to announce as this host's weight among the homes: those that its leases hold, and those of leases
    /// that it can request when blocks fill these. Members change their homes less often by this than by the leases.
    pub fn announce(&mut self, quota_bytes: Option<u64>) -> u32 {
        let allowed_bytes = quota_bytes.map(|bytes| allowed_bytes(bytes, self.settings.most_bytes));
        let reachable_bytes = reachable_bytes(self.leased_bytes(), allowed_bytes, self.is_short);
        let reachable = u32::try_from(reachable_bytes / BLOCK_BYTES).unwrap_or(u32::MAX);
        self.announced_frames = announced_frames(self.announced_frames, reachable);
        self.announced_frames
    }

    fn leased_bytes(&self) -> u64 {
        self.kept.iter().map(|kept| kept.bytes).sum()
    }

    fn remove_ended(&mut self) -> bool {
        let ended: Vec<KeptLease> = self
            .kept
            .extract_if(.., |kept| kept.lease.is_over())
            .collect();
        for kept in &ended {
            self.pool.remove(&kept.lease);
            let _ = self.recruiters.release(&kept.lease_id); // on failure the lease expires by itself
            self.not_before = Instant::now() + PAUSE;
            self.is_short = true;
        }
        !ended.is_empty()
    }

    fn suit(&mut self, allowed_bytes: u64) -> bool {
        let leased_bytes = self.leased_bytes();
        if leased_bytes > allowed_bytes {
            // The emptiest lease costs the fewest blocks.
            let used = |kept: &&KeptLease| kept.lease.slots() - kept.lease.free_slots();
            if let Some(kept) = self.kept.iter().min_by_key(used) {
                kept.lease.end();
            }
            return self.remove_ended();
        }
        let lease_bytes = LEASE_BYTES.max(allowed_bytes / MANY_LEASES);
        let room_bytes = (allowed_bytes - leased_bytes).min(lease_bytes);
        let bytes = room_bytes - room_bytes % SLAB_BYTES;
        let last_slots = self.kept.last().map_or(0, |kept| kept.lease.slots());
        let is_filling =
            self.kept.is_empty() || self.is_short || self.pool.free_slots() < last_slots / 2;
        bytes > 0 && is_filling && Instant::now() >= self.not_before && self.ask(bytes)
    }

    /// Requests a lease; returns true if it was granted and can be used.
    fn ask(&mut self, bytes: u64) -> bool {
        let key = format!("{}-{}", self.settings.session, self.requests_count);
        self.requests_count += 1;
        let request = LeaseRequest {
            term_ms: TERM_MS,
            host_id: Some(self.settings.host_id.clone()),
            ..LeaseRequest::new(bytes, key)
        };
        match self.recruiters.lease(&request) {
            Ok(granted) => {
                self.is_short = false;
                self.tell("");
                let mut has_one = false;
                for view in granted {
                    has_one |= self.join(view, bytes);
                }
                has_one
            }
            Err(error) => {
                self.is_short = true;
                let asked_ms = match &error {
                    BorrowError::Refused { refusal, .. } => refusal.retry_in_ms,
                    _ => None,
                };
                let asked_ms = asked_ms.and_then(|ms| u64::try_from(ms).ok());
                self.not_before = Instant::now() + asked_ms.map_or(PAUSE, Duration::from_millis);
                self.tell(&format!("no memory for blocks of other hosts: {error}"));
                false
            }
        }
    }

    fn join(&mut self, view: LeaseView, bytes: u64) -> bool {
        let lease_id = view.lease.lease_id.clone();
        // The address of a lease of this host itself is a Unix socket, without TLS.
        match borrow::source(view, None) {
            Ok(source) => {
                let lease = Arc::new(BlockLease::new(source, bytes));
                self.pool.add(Arc::clone(&lease));
                self.kept.push(KeptLease {
                    lease_id,
                    bytes,
                    lease,
                    renewed: Instant::now(),
                    probed: Instant::now(),
                });
                true
            }
            Err(error) => {
                self.tell(&format!("lease {lease_id} cannot be used: {error}"));
                let _ = self.recruiters.release(&lease_id); // on failure the lease expires by itself
                self.not_before = Instant::now() + PAUSE;
                false
            }
        }
    }

    fn renew(&mut self) {
        let mut fault = None;
        for kept in &mut self.kept {
            if kept.renewed.elapsed() < RENEW_EVERY || kept.lease.is_over() {
                continue;
            }
            match self.recruiters.renew(&kept.lease_id, TERM_MS) {
                Ok(LeaseView { lease, .. }) => {
                    kept.renewed = Instant::now();
                    // The host takes memory back: the blocks can be read again from elsewhere.
                    if lease.remaining_bytes < lease.granted_bytes {
                        kept.lease.end();
                    }
                }
                Err(BorrowError::Refused { refusal, .. })
                    if refusal.kind == RefusalKind::UnknownLease =>
                {
                    kept.lease.end();
                }
                Err(error) => {
                    kept.renewed += Duration::from_secs(2); // retry soon
                    fault = Some(error.to_string());
                }
            }
        }
        if let Some(fault) = fault {
            self.tell(&format!(
                "a lease of this host's memory was not renewed: {fault}"
            ));
        }
    }

    /// Logs a line once, however often it occurs.
    fn tell(&mut self, said: &str) {
        if said != self.said && !said.is_empty() {
            eprintln!("gleaner-commons: {said}");
        }
        said.clone_into(&mut self.said);
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        for kept in &self.kept {
            kept.lease.end();
            let _ = self.recruiters.release(&kept.lease_id); // on failure the lease expires by itself
        }
    }
}

/// Bytes that blocks may use of a quota: a quarter of it stays free for other clients.
fn allowed_bytes(quota_bytes: u64, most_bytes: u64) -> u64 {
    (quota_bytes - quota_bytes / 4).min(most_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_quota_is_left_to_others() {
        assert_eq!(allowed_bytes(128 << 20, u64::MAX), 96 << 20);
        assert_eq!(allowed_bytes(128 << 20, 64 << 20), 64 << 20);
        assert_eq!(allowed_bytes(0, 64 << 20), 0);
        assert_eq!(allowed_bytes(u64::MAX, u64::MAX), u64::MAX - u64::MAX / 4);
    }
}
