//! Guests' pages: anonymous memory in slabs of 2 MiB, each of which belongs to one lease or none.
//!
//! Memory is given back immediately, however slowly pages are read and written. Three rules ensure that:
//!
//! - A slab's bytes are touched under the slab's lock, which is held for one copy at most. A reclaim takes the unlocked
//!   slabs first, and only then waits for the few that are locked.
//! - The end of a lease is checked under the slab's lock. A reclaim marks the lease as ended, and then takes every
//!   slab's lock once: a writer that had the lock before leaves a slab that the reclaim finds, and a writer that gets it
//!   later writes nothing.
//! - Memory given back is lost for good ([`Error::Gone`]); it never reads as zeroes. A page that a lease has never
//!   written, or has discarded, reads as zeroes.

mod give_back;
mod mapping;
mod pages;

pub use give_back::ReclaimResult;
pub use mapping::Options;
pub use pages::Pages;

use gleaner_schemas::lending::SLAB_BYTES;
use mapping::Slabs;
use pages::Lease;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Unit within a slab for which writes and discards are recorded.
pub const PAGE_BYTES: u64 = 4096;

/// Maximum number of threads that give memory back together. More threads would only wait for the lock of the
/// same memory zone.
const MOST_HANDS: usize = 4;

/// Error of guests' pages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address space is too small, or the kernel may not overcommit memory.
    #[error(
        "reserve {bytes} bytes of address space: {source}; look at `ulimit -v` and vm.overcommit_memory"
    )]
    Reserve {
        /// Number of bytes.
        bytes: u64,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The lease has ended, or this part of it was given back.
    #[error("these pages are lost: their memory was returned to the owner")]
    Gone,
    /// The range is beyond the lease's end.
    #[error("offset {offset} + {bytes} bytes lies beyond the lease")]
    Beyond {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// Every slab is in use.
    #[error("no slab is free")]
    Full,
}

/// Guests' pages of one run of the memory server.
pub struct Store {
    slabs: Slabs<Slot>,
    generation: u64,
    /// Number of threads that give memory back together.
    hands: usize,
    /// Slabs that belong to no lease, in descending order: the lowest is used first.
    free: Mutex<Vec<usize>>,
    /// Number of slabs ever used: slabs from this number on were never used.
    used_until: AtomicUsize,
    held: AtomicUsize,
    /// Counts openings and first writes, to order them by age.
    births: AtomicU64,
    leases: Mutex<BTreeMap<String, Arc<Lease>>>,
    /// Flag shared by all present leases, so that revoking all of them waits for no lock.
    over: Mutex<Arc<AtomicBool>>,
}

/// Data that a slab's lock guards in addition to its bytes.
#[derive(Default)]
struct Slot {
    owner: Option<Owner>,
    /// Bit of each page: set if the page was written and not discarded. Other pages read as zeroes, whatever
    /// their bytes are.
    written: [u64; 8],
}

/// Owner of a slab.
struct Owner {
    lease: Arc<Lease>,
    /// Number of the slab within the lease.
    index: usize,
    /// Number in the order of first writes.
    born: u64,
}

impl Store {
    /// Reserves space for `bytes`, rounded down to whole slabs. No memory is used before leases write.
    ///
    /// `generation` identifies the contents. It must differ for each run of the memory server.
    ///
    /// # Errors
    /// [`Error::Reserve`].
    pub fn new(bytes: u64, generation: u64, options: Options) -> Result<Self, Error> {
        let count = usize::try_from(bytes / SLAB_BYTES).unwrap_or(usize::MAX);
        Ok(Self {
            slabs: Slabs::reserve(count, options)?,
            generation,
            hands: std::thread::available_parallelism()
                .map_or(1, |cpus| cpus.get().min(MOST_HANDS)),
            free: Mutex::new((0..count).rev().collect()),
            used_until: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            births: AtomicU64::new(0),
            leases: Mutex::default(),
            over: Mutex::default(),
        })
    }

    /// Opens a lease of `client`; its pages read as zeroes. If a lease of this id is open, it stays
    /// unchanged.
    pub fn open(&self, lease_id: &str, client: &str, bytes: u64) {
        let over = lock(&self.over);
        let mut leases = lock(&self.leases);
        let lease = || {
            let opened = self.births.fetch_add(1, Ordering::SeqCst);
            Arc::new(Lease::new(lease_id, client, opened, bytes, over.clone()))
        };
        leases.entry(lease_id.to_owned()).or_insert_with(lease);
    }

    /// Returns the pages of a lease.
    ///
    /// # Errors
    /// [`Error::Gone`] if there is no such lease, or its pages were of another generation.
    pub fn pages(self: &Arc<Self>, lease_id: &str, generation: u64) -> Result<Pages, Error> {
        let lease = lock(&self.leases).get(lease_id).cloned();
        match lease {
            Some(lease) if generation == self.generation => Ok(Pages::new(self.clone(), lease)),
            _ => Err(Error::Gone),
        }
    }

    /// Returns true if guests' pages are locked in memory (never swapped).
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.slabs.is_locked()
    }

    /// Unlocks guests' pages. Call this after locking the whole process, if guests' pages must not be locked.
    pub fn unlock_pages(&self) {
        self.slabs.unlock();
    }

    /// Addresses of guests' pages, as in /proc/self/smaps.
    #[must_use]
    pub fn addresses(&self) -> Range<usize> {
        self.slabs.range()
    }

    /// Returns an upper bound of the memory of guests' slabs, in bytes. A slab without a huge page uses only
    /// the pages that were written.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::SeqCst) as u64 * SLAB_BYTES
    }
}

/// Locks the mutex even if it is poisoned: no code panics with the lock held, so the data are consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
mod tests;
