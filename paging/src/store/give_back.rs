//! Gives memory back to the kernel.

use super::mapping::ExclusiveSlab;
use super::{Slot, Store, lock};
use gleaner_schemas::lending::SLAB_BYTES;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Number of slabs that one system call gives back. Fewer would need more calls, and more would delay readers
/// of other slabs.
const RUN: usize = 16;
/// Minimum number of slabs for which further threads are used: two threads give 4 KiB pages back nearly twice
/// as fast, and huge pages a third faster.
const WORTH_HELP: usize = 64;

/// Memory given back, and the time that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimResult {
    /// Bytes of whole slabs, including pages that were never written.
    pub bytes: u64,
    /// Time from the call to the first slab's return to the kernel.
    pub first_reclaim_us: u64,
    /// Time from the call to the return of the last slab to the kernel.
    pub full_reclaim_us: u64,
}

/// A reclaim in progress.
struct Round<'a, W> {
    store: &'a Store,
    is_wanted: W,
    began: Instant,
    /// First slab that no thread has examined yet.
    next: AtomicUsize,
    until: usize,
    first_reclaim_us: AtomicU64,
    freed: Mutex<Vec<usize>>,
}

impl Store {
    /// Ends every lease and gives its memory back. Returns when all memory is back.
    pub fn revoke_all(&self) -> ReclaimResult {
        let began = Instant::now();
        // Leases opened from now on get a new flag, and so are not affected.
        let over = std::mem::take(&mut *lock(&self.over));
        over.store(true, Ordering::SeqCst);
        let given = self.reclaim_slabs(began, |slot| {
            slot.owner
                .as_ref()
                .is_some_and(|owner| owner.lease.is_over())
        });
        lock(&self.leases).retain(|_, lease| !lease.is_over());
        given
    }

    /// Ends a lease and gives its memory back; does nothing if there is no such lease.
    pub fn revoke(&self, lease_id: &str) -> ReclaimResult {
        let began = Instant::now();
        let Some(lease) = lock(&self.leases).remove(lease_id) else {
            return ReclaimResult::default();
        };
        lease.end();
        self.reclaim_slabs(began, |slot| {
            let owner = slot.owner.as_ref();
            owner.is_some_and(|owner| Arc::ptr_eq(&owner.lease, &lease))
        })
    }

    /// Gives `bytes` back, rounded up to whole slabs, beginning with the slabs whose first write is oldest.
    /// Returns the number of bytes that each lease loses. The lost part of a lease stays lost; its remainder
    /// stays usable.
    ///
    /// If the leases have written fewer bytes, they then also lose promised space that was never written. The
    /// [`ReclaimResult`] does not count such space.
    pub fn shrink(&self, bytes: u64) -> (Vec<(String, u64)>, ReclaimResult) {
        let began = Instant::now();
        let wanted = usize::try_from(bytes.div_ceil(SLAB_BYTES)).unwrap_or(usize::MAX);
        let mut oldest = self.by_age();
        oldest.truncate(wanted);
        oldest.sort_unstable_by_key(|(_, slab)| *slab);
        let mut of_leases = BTreeMap::<String, u64>::new();
        let (mut freed, mut first_reclaim_us) = (Vec::new(), 0);
        for (born, slab) in oldest {
            let Some(mut alone) = self.slabs.exclusive(slab) else {
                continue;
            };
            let Some(owner) = alone.note.owner.take_if(|owner| owner.born == born) else {
                continue; // the slab was discarded in the meantime
            };
            owner.lease.lose(owner.index);
            self.slabs.release(std::slice::from_ref(&alone));
            self.held.fetch_sub(1, Ordering::SeqCst);
            drop(alone);
            if freed.is_empty() {
                first_reclaim_us = micros(began);
            }
            freed.push(slab);
            *of_leases.entry(owner.lease.id.clone()).or_default() += SLAB_BYTES;
        }
        let mut promised = wanted.saturating_sub(freed.len());
        let given = self.settle(freed, began, first_reclaim_us);
        let mut leases: Vec<_> = lock(&self.leases).values().cloned().collect();
        leases.sort_unstable_by_key(|lease| lease.opened);
        for lease in leases {
            let taken = lease.reclaim_unwritten(promised);
            promised -= taken;
            if taken > 0 {
                *of_leases.entry(lease.id.clone()).or_default() += taken as u64 * SLAB_BYTES;
            }
        }
        (of_leases.into_iter().collect(), given)
    }

    /// Gives back a slab that its lease no longer uses.
    pub(super) fn reclaim_slab(&self, mut alone: ExclusiveSlab<'_, Slot>) {
        alone.note.owner = None;
        self.slabs.release(std::slice::from_ref(&alone));
        self.held.fetch_sub(1, Ordering::SeqCst);
        let slab = alone.slab;
        drop(alone);
        self.settle(vec![slab], Instant::now(), 0);
    }

    /// Returns the slabs in use, each with the number of its first write, the oldest first.
    fn by_age(&self) -> Vec<(u64, usize)> {
        let until = self.used_until.load(Ordering::SeqCst);
        let born = |slab| {
            let shared = self.slabs.shared(slab)?;
            shared.note.owner.as_ref().map(|owner| (owner.born, slab))
        };
        let mut all: Vec<(u64, usize)> = (0..until).filter_map(born).collect();
        all.sort_unstable();
        all
    }

    fn reclaim_slabs(
        &self,
        began: Instant,
        is_wanted: impl Fn(&Slot) -> bool + Sync,
    ) -> ReclaimResult {
        let round = Round {
            store: self,
            is_wanted,
            began,
            next: AtomicUsize::new(0),
            until: self.used_until.load(Ordering::SeqCst),
            first_reclaim_us: AtomicU64::new(0),
            freed: Mutex::default(),
        };
        let busy = Mutex::new(round.run());
        if self.held.load(Ordering::SeqCst) >= WORTH_HELP && self.hands > 1 {
            // Threads are started only now: an earlier start would cost memory and time before the first byte
            // is given back.
            std::thread::scope(|scope| {
                for _ in 1..self.hands {
                    let help = || lock(&busy).extend(round.runs());
                    // If no thread can be started, this thread does all the work.
                    let _ = std::thread::Builder::new().spawn_scoped(scope, help);
                }
                let found = round.runs();
                lock(&busy).extend(found);
            });
        } else {
            let found = round.runs();
            lock(&busy).extend(found);
        }
        for slab in std::mem::take(&mut *lock(&busy)) {
            round.release(self.slabs.exclusive(slab).into_iter().collect());
        }
        let freed = std::mem::take(&mut *lock(&round.freed));
        self.settle(freed, began, round.first_reclaim_us.into_inner())
    }

    /// Makes slabs that were given back available to other leases.
    fn settle(&self, freed: Vec<usize>, began: Instant, first_reclaim_us: u64) -> ReclaimResult {
        let full_reclaim_us = micros(began);
        let bytes = freed.len() as u64 * SLAB_BYTES;
        let mut free = lock(&self.free);
        free.extend(freed);
        if bytes > SLAB_BYTES {
            // The lowest slabs are used first, so that used slabs stay together.
            free.sort_unstable_by(|a, b| b.cmp(a));
        }
        ReclaimResult {
            bytes,
            first_reclaim_us,
            full_reclaim_us,
        }
    }
}

impl<W: Fn(&Slot) -> bool + Sync> Round<'_, W> {
    /// Works until no slab is left. Returns the slabs that other threads had locked.
    fn runs(&self) -> Vec<usize> {
        let mut busy = Vec::new();
        while self.next.load(Ordering::Relaxed) < self.until {
            busy.extend(self.run());
        }
        busy
    }

    /// Handles the next slabs. Returns those that other threads had locked.
    fn run(&self) -> Vec<usize> {
        let first = self.next.fetch_add(RUN, Ordering::Relaxed);
        let slabs = first..self.until.min(first.saturating_add(RUN));
        let (mut mine, mut busy) = (Vec::with_capacity(RUN), Vec::new());
        for slab in slabs {
            match self.store.slabs.try_exclusive(slab) {
                Some(alone) => mine.push(alone),
                None => busy.push(slab),
            }
        }
        self.release(mine);
        busy
    }

    fn release(&self, mut slabs: Vec<ExclusiveSlab<'_, Slot>>) {
        slabs.retain_mut(|alone| {
            let is_wanted = (self.is_wanted)(&alone.note);
            if is_wanted {
                alone.note.owner = None;
            }
            is_wanted
        });
        if slabs.is_empty() {
            return;
        }
        // The very first slab is released alone, so that some memory is back early.
        let alone_first = usize::from(self.first_reclaim_us.load(Ordering::Relaxed) == 0);
        self.store.slabs.release(&slabs[..alone_first]);
        if alone_first == 1 {
            let first_reclaim_us = micros(self.began).max(1);
            let order = Ordering::Relaxed;
            let _ = self
                .first_reclaim_us
                .compare_exchange(0, first_reclaim_us, order, order);
        }
        self.store.slabs.release(&slabs[alone_first..]);
        self.store.held.fetch_sub(slabs.len(), Ordering::SeqCst);
        lock(&self.freed).extend(slabs.iter().map(|alone| alone.slab));
    }
}

fn micros(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}
