//! The memory shared by a program's regions: its nodes, its growth, and the handling of failed nodes.

use crate::keeper::Keeper;
use crate::lock;
use crate::node::Node;
use crate::transfer::NodeFailure;
use crate::{RegionError, Settings};
use gleaner_paging::borrow::{self, Recruiters, UnreachableHosts};
use gleaner_paging::nbd::client::{Source, connect};
use gleaner_policy::refraction::Refraction;
use gleaner_schemas::lending::{LeaseRequest, LeaseView, SLAB_BYTES};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Minimum size of a lease. Small regions share a lease.
const LEASE_BYTES: u64 = 16 << 20;
/// Maximum number of hosts tried for one region. For each unreachable host the caller waits up to
/// [`Settings::patience`].
const MOST_HOSTS_TRIED: usize = 3;

/// Memory of all regions of a [`Regions`](crate::Regions).
pub(crate) struct Pool {
    pub(crate) settings: Settings,
    /// Secret key of the checksums; never leaves this process.
    pub(crate) key: [u8; 32],
    pub(crate) from_memory_pages: AtomicU64,
    pub(crate) from_file_pages: AtomicU64,
    pub(crate) wrong_pages: AtomicU64,
    pub(crate) recruiters: Option<Recruiters>,
    pub(crate) servers: Vec<Source>,
    /// Random name of this pool. The key of each lease request begins with it.
    pub(crate) session: String,
    pub(crate) state: Mutex<State>,
    /// Held by the thread that requests memory. Only one thread requests at a time, so that all others can
    /// share the result.
    pub(crate) asking: Mutex<()>,
    pub(crate) keeper: Mutex<Option<Keeper>>,
    pub(crate) began: Instant,
}

pub(crate) struct State {
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) refraction: Refraction,
    pub(crate) unreachable: UnreachableHosts,
    pub(crate) failed_nodes: u64,
    pub(crate) asked_count: u64,
    pub(crate) last_failure: Option<String>,
}

impl Pool {
    pub(crate) fn room(&self, bytes: u64) -> Result<(Arc<Node>, u64), RegionError> {
        if let Some(place) = self.place(bytes) {
            return Ok(place);
        }
        let _alone = lock(&self.asking);
        if let Some(place) = self.place(bytes) {
            return Ok(place); // another thread's lease was granted in between
        }
        let no_memory = |why: String| RegionError::NoMemory { why };
        let left_ms = lock(&self.state).refraction.remaining_ms(self.now_ms());
        if left_ms > 0 {
            let why = format!(
                "asked in vain lately, and again in {} s",
                left_ms / 1000 + 1
            );
            return Err(no_memory(why));
        }
        let node = self.ask(bytes).map_err(|why| {
            lock(&self.state).refraction.refused(self.now_ms());
            no_memory(why)
        })?;
        let taken = lock(&node.room).take(bytes);
        // This never fails: leases and exports that are smaller than requested were not accepted.
        let at = taken.ok_or_else(|| no_memory("less than was asked for".to_owned()))?;
        lock(&self.state).nodes.push(Arc::clone(&node));
        Ok((node, at))
    }

    /// Takes a free range on an existing node.
    fn place(&self, bytes: u64) -> Option<(Arc<Node>, u64)> {
        let state = lock(&self.state);
        state.nodes.iter().find_map(|node| {
            let at = lock(&node.room).take(bytes)?;
            Some((Arc::clone(node), at))
        })
    }

    /// Requests memory: from the servers that the program names first, then from the recruiters. The error is
    /// the reason of the failure.
    fn ask(&self, bytes: u64) -> Result<Arc<Node>, String> {
        let mut why = String::new();
        for source in &self.servers {
            let is_used = |node: &Arc<Node>| node.host == source.host;
            if lock(&self.state).nodes.iter().any(is_used) {
                why = format!("{}: no room for {bytes} bytes", source.host);
                continue;
            }
            lock(&self.state).asked_count += 1;
            match self.connect(source, bytes) {
                Ok(node) => return Ok(node),
                Err(e) => why = e,
            }
        }
        match &self.recruiters {
            Some(recruiters) => self.lease(recruiters, bytes),
            None => Err(why),
        }
    }

    /// Gets a lease from the first host that can be reached. Each request excludes the hosts that could not
    /// be reached.
    fn lease(&self, recruiters: &Recruiters, bytes: u64) -> Result<Arc<Node>, String> {
        let mut failed: Option<(String, String)> = None;
        for _ in 0..MOST_HOSTS_TRIED {
            let lease = match self.granted(recruiters, bytes) {
                Ok(lease) => lease,
                // If a host could not be reached before, its error is returned: an administrator can fix that
                // one.
                Err(why) => return Err(failed.map_or(why, |(_, why)| why)),
            };
            let (id, host) = (lease.lease.lease_id.clone(), lease.host_id.clone());
            let why = match self.node_of(lease, bytes) {
                Ok(node) => return Ok(node),
                Err(why) => why,
            };
            let _ = recruiters.release(&id); // if this fails, the lease expires
            let unreachable = &mut lock(&self.state).unreachable;
            unreachable.add(host.clone(), self.now_ms());
            let is_again = failed.is_some_and(|(before, _)| before == host);
            failed = Some((host, why));
            if is_again {
                break; // an older recruiter, which does not know `avoided_host_ids`
            }
        }
        Err(failed.map_or_else(|| "no lease".to_owned(), |(_, why)| why))
    }

    fn granted(&self, recruiters: &Recruiters, bytes: u64) -> Result<LeaseView, String> {
        let (n, avoided_host_ids) = {
            let mut state = lock(&self.state);
            state.asked_count += 1;
            (state.asked_count, state.unreachable.hosts(self.now_ms()))
        };
        let bytes = bytes.max(LEASE_BYTES).next_multiple_of(SLAB_BYTES);
        let request = LeaseRequest {
            term_ms: self.term_ms(),
            avoided_host_ids,
            ..LeaseRequest::new(bytes, format!("{}-{n}", self.session))
        };
        let leases = recruiters.lease(&request).map_err(|e| e.to_string())?;
        leases
            .into_iter()
            .next()
            .ok_or_else(|| "no lease".to_owned())
    }

    fn node_of(&self, view: LeaseView, bytes: u64) -> Result<Arc<Node>, String> {
        let source = borrow::source(view, self.settings.trust.as_deref());
        self.connect(&source.map_err(|e| e.to_string())?, bytes)
    }

    fn connect(&self, source: &Source, bytes: u64) -> Result<Arc<Node>, String> {
        let (host, patience) = (&source.host, self.settings.patience);
        let failed = |e: &dyn std::error::Error| format!("{host}: {e}");
        let made = connect(
            &source.server,
            &source.export,
            source.tls.as_ref(),
            patience,
        );
        let made = made.map_err(|e| failed(&e))?;
        if made.1.bytes < bytes {
            return Err(format!("{host}: {} bytes are all there is", made.1.bytes));
        }
        let node = Node::new(host.clone(), source.lease.clone(), made, patience);
        node.map(Arc::new).map_err(|e| failed(&e))
    }

    /// Handles a failed node. Dodo's rule: after the first failure the node is dropped, and all regions on it
    /// lose their remote memory.
    pub(crate) fn failed(&self, node: &Node, why: &NodeFailure) {
        if matches!(why, NodeFailure::Before) {
            return;
        }
        let mut state = lock(&self.state);
        let of_it = |other: &Arc<Node>| other.host == node.host;
        let gone: Vec<_> = state.nodes.extract_if(.., |other| of_it(other)).collect();
        let news = gone.iter().filter(|node| node.abandon()).count();
        // Another region's failure may have removed the node from the list before.
        let news = news + usize::from(node.abandon());
        if news > 0 {
            state.failed_nodes += news as u64;
            state.refraction.refused(self.now_ms());
            state.last_failure = Some(format!("{}: {why}", node.host));
        }
    }

    pub(crate) fn term_ms(&self) -> i64 {
        ms((self.settings.renew_every * 3).max(Duration::from_secs(1)))
    }

    /// Time since the pool was made, on a clock that never goes back.
    fn now_ms(&self) -> i64 {
        ms(self.began.elapsed())
    }

    /// Does one round of the keeper: renews leases, and returns those that no region has used since the last
    /// round.
    pub(crate) fn keep(&self) {
        let Some(recruiters) = &self.recruiters else {
            return;
        };
        let nodes = lock(&self.state).nodes.clone(); // copied, so that the lock is not held in what follows
        for node in nodes {
            let Some(lease_id) = &node.lease_id else {
                continue;
            };
            if self.is_done_with(&node) {
                node.abandon();
                let _ = recruiters.release(lease_id); // if this fails, the lease expires
            } else if let Err(why) = recruiters.renew(lease_id, self.term_ms())
                && is_over(&why)
            {
                self.failed(&node, &NodeFailure::Over);
            }
        }
    }

    fn is_done_with(&self, node: &Arc<Node>) -> bool {
        let mut state = lock(&self.state); // locked, so that no region takes memory now
        let is_unused = lock(&node.room).is_unused();
        let was_unused = node.was_unused.swap(is_unused, Ordering::Relaxed);
        if is_unused && was_unused {
            state.nodes.retain(|other| !Arc::ptr_eq(other, node));
        }
        is_unused && was_unused
    }
}

pub(crate) fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Returns true if the error means that the lease has ended. An unreachable recruiter does not mean that:
/// client and host can still exchange pages.
fn is_over(why: &borrow::BorrowError) -> bool {
    use gleaner_schemas::lending::RefusalKind;
    let borrow::BorrowError::Refused { refusal, .. } = why else {
        return false;
    };
    matches!(
        refusal.kind,
        RefusalKind::UnknownLease | RefusalKind::NotYours
    )
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(lock(&self.keeper).take());
        let nodes = std::mem::take(&mut lock(&self.state).nodes);
        for node in nodes {
            node.abandon();
            if let (Some(recruiters), Some(lease_id)) = (&self.recruiters, &node.lease_id) {
                let _ = recruiters.release(lease_id); // if this fails, the lease expires
            }
        }
    }
}
