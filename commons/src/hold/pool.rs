//! Leases of this host's own memory as one pool of slots for blocks.

use super::lease::{BlockLease, Slot, lock};
use crate::catalog::BLOCK_BYTES;
use crate::store::Block;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

/// Most blocks that wait to be written to a lease; further ones find no place.
const MOST_UNWRITTEN: usize = 256;

/// Figures of the leases that hold blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolCounters {
    /// Number of leases of this host's own memory.
    pub leases_count: u64,
    /// Bytes of these leases.
    pub leased_bytes: u64,
    /// Bytes of their slots that hold blocks.
    pub leased_used_bytes: u64,
}

/// Slots of all leases.
pub struct LeasePool {
    leases: Mutex<Vec<Arc<BlockLease>>>,
    unwritten: SyncSender<Weak<Slot>>,
}

impl LeasePool {
    /// Starts a pool without leases, and the thread that writes blocks to leases. The thread ends with the pool.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn start() -> io::Result<Arc<Self>> {
        let (unwritten, waiting) = sync_channel(MOST_UNWRITTEN);
        let thread = thread::Builder::new().name("hold".to_owned());
        thread.spawn(move || write_until_end(&waiting))?;
        Ok(Arc::new(Self {
            leases: Mutex::default(),
            unwritten,
        }))
    }

    /// Number of blocks that fit in the leases.
    #[must_use]
    pub fn frames(&self) -> u32 {
        let leases = lock(&self.leases);
        leases.iter().map(|lease| lease.slots()).sum()
    }

    /// Finds a place for a block; `None`: there is none.
    #[must_use]
    pub fn place(&self, block: &Block) -> Option<Arc<Slot>> {
        if block.len() as u64 > BLOCK_BYTES {
            return None;
        }
        let leases = lock(&self.leases);
        let mut taken = leases
            .iter()
            .filter_map(|lease| Slot::take(lease, Arc::clone(block)));
        let slot = Arc::new(taken.next()?);
        drop(leases);
        self.unwritten.try_send(Arc::downgrade(&slot)).ok()?;
        Some(slot)
    }

    /// Figures of the leases now.
    #[must_use]
    pub fn counters(&self) -> PoolCounters {
        let leases = lock(&self.leases);
        let sum = |count: &dyn Fn(&BlockLease) -> u32| -> u64 {
            leases.iter().map(|lease| u64::from(count(lease))).sum()
        };
        PoolCounters {
            leases_count: leases.len() as u64,
            leased_bytes: sum(&BlockLease::slots) * BLOCK_BYTES,
            leased_used_bytes: sum(&|lease: &BlockLease| lease.slots() - lease.free_slots())
                * BLOCK_BYTES,
        }
    }

    /// Number of slots without a block.
    pub(super) fn free_slots(&self) -> u32 {
        let leases = lock(&self.leases);
        leases.iter().map(|lease| lease.free_slots()).sum()
    }

    pub(super) fn add(&self, lease: Arc<BlockLease>) {
        lock(&self.leases).push(lease);
    }

    pub(super) fn remove(&self, lease: &Arc<BlockLease>) {
        lock(&self.leases).retain(|other| !Arc::ptr_eq(other, lease));
    }
}

fn write_until_end(waiting: &Receiver<Weak<Slot>>) {
    while let Ok(slot) = waiting.recv() {
        // The slot of a block that has left meanwhile is free for another one.
        if let Some(slot) = slot.upgrade() {
            slot.write();
        }
    }
}
