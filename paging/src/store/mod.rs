//! Guests' pages: anonymous memory in slabs of 2 MiB, which leases own one by one.
//!
//! Memory is given back at once, however slowly pages are read and written. Three rules ensure that:
//!
//! - A slab's bytes are touched under its own lock, which is held for one copy at most. Giving back takes the slabs that
//!   are free of others first, and waits only then for the few in use.
//! - The end of a lease is checked under the slab's lock. Giving back marks the lease as ended, and then takes every slab's
//!   lock once: whoever had the lock before leaves a slab that is found, and whoever has it later writes nothing.
//! - Memory given back is lost for good ([`Error::Gone`]); it never reads as zeroes. A page that a lease has never
//!   written, or has discarded, does.

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

/// Unit of what a lease writes and discards within a slab.
pub const PAGE_BYTES: u64 = 4096;

/// More of them giving back only get in each other's way: all of them want the lock of the same memory zone.
const MOST_HANDS: usize = 4;

/// Error of guests' pages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No room in the address space, or the kernel was told never to promise more than it has.
    #[error(
        "reserve {bytes} bytes of address space: {source}; look at `ulimit -v` and vm.overcommit_memory"
    )]
    Reserve {
        /// Number of bytes.
        bytes: u64,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The lease is over, or this part of it was given back.
    #[error("these pages are gone: their memory was given back")]
    Gone,
    /// Beyond the lease's end.
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

/// Data that a slab's lock guards besides its bytes.
#[derive(Default)]
struct Slot {
    owner: Option<Owner>,
    /// Bit of each page: written and not discarded. A page without it reads as zeroes, whatever its bytes.
    written: [u64; 8],
}

/// Owner of a slab.
struct Owner {
    lease: Arc<Lease>,
    /// Number of the slab within the lease.
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

    /// Returns true if its pages are locked in memory (never swapped).
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

    /// Upper bound of the memory of guests' slabs, in bytes: a slab without a huge page takes only the pages
    /// written.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::SeqCst) as u64 * SLAB_BYTES
    }
}

/// Ignores poisoning: nothing here panics with the lock held, so that the data are consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
mod tests;
