//! Guests' pages: anonymous memory in slabs of 2 MiB, which leases own one by one.
//!
//! Whatever reads and writes pages, and however slowly, memory is given back at once. Three rules make that so:
//!
//! - A slab's bytes are touched under its own lock, which is held for one copy at most. Giving back takes the slabs that
//!   are free of others first, and waits only then for the few in use.
//! - Whether a lease is over is asked under the slab's lock. Giving back says that it is over, and then takes every slab's
//!   lock once: whoever had the lock before leaves a slab that is found, and whoever has it later writes nothing.
//! - What was given back is gone for good ([`Error::Gone`]); it never reads as zeroes. A page that a lease has never
//!   written, or has discarded, does.

mod give_back;
mod mapping;
mod pages;

pub use give_back::GivenBack;
pub use mapping::Options;
pub use pages::Pages;

use gleaner_schemas::lending::SLAB_BYTES;
use mapping::Slabs;
use pages::Lease;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Unit of what a lease writes and discards within a slab.
pub const PAGE_BYTES: u64 = 4096;

/// More of them giving back only get in each other's way: all of them want the lock of the same memory zone.
const MOST_HANDS: usize = 4;

/// What can go wrong with guests' pages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No room in the address space, or the kernel was told never to promise more than it has.
    #[error(
        "reserve {bytes} bytes of address space: {source}; look at `ulimit -v` and vm.overcommit_memory"
    )]
    Reserve {
        /// So many.
        bytes: u64,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The lease is over, or this part of it was given back.
    #[error("these pages are gone: their memory was given back")]
    Gone,
    /// Beyond the lease's end.
    #[error("offset {offset} + {bytes} bytes lies beyond the lease")]
    Beyond {
        /// From here.
        offset: u64,
        /// So many.
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
    /// Threads that give back together.
    hands: usize,
    /// Slabs that no lease owns, the lowest last.
    free: Mutex<Vec<usize>>,
    /// No slab from here on was ever in use.
    used_until: AtomicUsize,
    held: AtomicUsize,
    /// Counts openings and first writes, so that the oldest are known.
    births: AtomicU64,
    leases: Mutex<BTreeMap<String, Arc<Lease>>>,
    /// Set once for all leases there are, so that revoking them waits for no lock.
    over: Mutex<Arc<AtomicBool>>,
}

/// What a slab's lock guards besides its bytes.
#[derive(Default)]
struct Slot {
    owner: Option<Owner>,
    /// One bit a page: written and not discarded. A page without it reads as zeroes, whatever is in it.
    written: [u64; 8],
}

/// Who owns a slab.
struct Owner {
    lease: Arc<Lease>,
    /// Which slab of the lease it is.
    index: usize,
    /// Place in the order of first writes.
    born: u64,
}

impl Store {
    /// Reserves room for `bytes`, rounded down to whole slabs. It takes up no memory before leases write to it.
    ///
    /// `generation` names the contents: other contents, another generation.
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

    /// Makes room for a lease of `client`: its pages read as zeroes. A lease of that id that is there stays as it is.
    pub fn open(&self, lease_id: &str, client: &str, bytes: u64) {
        let over = lock(&self.over);
        let mut leases = lock(&self.leases);
        let lease = || {
            let opened = self.births.fetch_add(1, Ordering::SeqCst);
            Arc::new(Lease::new(lease_id, client, opened, bytes, over.clone()))
        };
        leases.entry(lease_id.to_owned()).or_insert_with(lease);
    }

    /// The pages of a lease.
    ///
    /// # Errors
    /// [`Error::Gone`] where there is no such lease, or its pages were of another generation.
    pub fn pages(self: &Arc<Self>, lease_id: &str, generation: u64) -> Result<Pages, Error> {
        let lease = lock(&self.leases).get(lease_id).cloned();
        match lease {
            Some(lease) if generation == self.generation => Ok(Pages::new(self.clone(), lease)),
            _ => Err(Error::Gone),
        }
    }

    /// Whether its pages are locked in memory (never swapped).
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.slabs.is_locked()
    }

    /// To be called where the process was locked as a whole and its guests' pages are not to be.
    pub fn stay_unlocked(&self) {
        self.slabs.unlock();
    }

    /// Addresses of guests' pages, as /proc/self/smaps has them.
    #[must_use]
    pub fn addresses(&self) -> Range<usize> {
        self.slabs.range()
    }

    /// What guests' slabs hold, at most: a slab without a huge page takes up only what was written to it.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::SeqCst) as u64 * SLAB_BYTES
    }
}

/// What a panic elsewhere left is still whole: nothing here panics with the lock held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
mod tests;
