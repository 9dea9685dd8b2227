//! The memory: one reserved mapping in slabs, each behind a lock. No other module touches the memory.
#![allow(unsafe_code)]

use super::Error;
use gleaner_schemas::lending::SLAB_BYTES;
use rustix::mm::{Advice, MapFlags, MlockFlags, ProtFlags};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// [`SLAB_BYTES`] as `usize`.
pub(super) const SLAB: usize = SLAB_BYTES as usize;

/// Options of the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Requests huge pages.
    pub wants_huge: bool,
    /// Locks pages as they are touched, if that is allowed.
    pub wants_locked: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wants_huge: true,
            wants_locked: true,
        }
    }
}

/// Slabs of memory. Each slab has a note of type `T` and a lock for both.
pub(super) struct Slabs<T> {
    /// Start of the whole mapping, including bytes before the first aligned slab.
    mapped: *mut c_void,
    mapped_bytes: usize,
    /// Start of the first slab.
    base: *mut u8,
    locks: Box<[RwLock<T>]>,
    is_locked: bool,
    frees: Advice,
}

// SAFETY: the mapping lives as long as the value, and a slab's bytes are accessed only under its lock.
unsafe impl<T: Send> Send for Slabs<T> {}
// SAFETY: as for `Send`; in addition, writing to a slab or releasing it requires its exclusive lock.
unsafe impl<T: Send + Sync> Sync for Slabs<T> {}

impl<T: Default> Slabs<T> {
    /// Reserves `count` slabs; no memory is used before it is written.
    ///
    /// # Errors
    /// [`Error::Reserve`].
    pub(super) fn reserve(count: usize, options: Options) -> Result<Self, Error> {
        let bytes = count.saturating_mul(SLAB);
        let mapped_bytes = bytes.saturating_add(SLAB);
        let failed = |source: rustix::io::Errno| Error::Reserve {
            bytes: bytes as u64,
            source: source.into(),
        };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let mapped = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), mapped_bytes, protection, flags)
        };
        let mapped = mapped.map_err(failed)?;
        let base = mapped
            .cast::<u8>()
            .wrapping_add(mapped.cast::<u8>().align_offset(SLAB));
        let mut slabs = Self {
            mapped,
            mapped_bytes,
            base,
            locks: (0..count).map(|_| RwLock::default()).collect(),
            is_locked: false,
            frees: Advice::LinuxDontNeed,
        };
        let huge = if options.wants_huge {
            Advice::LinuxHugepage
        } else {
            Advice::LinuxNoHugepage
        };
        for advice in [huge, Advice::LinuxDontFork, Advice::LinuxDontDump] {
            // SAFETY: the range is ours, and none of these calls changes its contents. A kernel without huge
            // pages, or without core dumps, refuses them, which is harmless.
            let _ = unsafe { rustix::mm::madvise(base.cast(), bytes, advice) };
        }
        slabs.is_locked = options.wants_locked && slabs.lock(bytes);
        if slabs.is_locked {
            slabs.frees = Advice::LinuxDontneedLocked;
        }
        Ok(slabs)
    }

    /// Locks pages as they are touched; returns true if that works.
    fn lock(&self, bytes: usize) -> bool {
        // SAFETY: the range is ours; locking changes no contents.
        let locked =
            unsafe { rustix::mm::mlock_with(self.base.cast(), bytes, MlockFlags::ONFAULT) };
        if locked.is_err() {
            return false;
        }
        // Before Linux 5.18, locked memory could not be given back without unlocking it first. On such a
        // kernel, pages stay unlocked.
        let advice = Advice::LinuxDontneedLocked;
        // SAFETY: the range is ours, and nothing has been written to it yet.
        let can_free =
            unsafe { rustix::mm::madvise(self.base.cast(), SLAB.min(bytes), advice) }.is_ok();
        if !can_free {
            // SAFETY: the range is ours.
            let _ = unsafe { rustix::mm::munlock(self.base.cast(), bytes) };
        }
        can_free
    }
}

impl<T> Slabs<T> {
    pub(super) fn is_locked(&self) -> bool {
        self.is_locked
    }

    pub(super) fn shared(&self, slab: usize) -> Option<SharedSlab<'_, T>> {
        let note = self.locks.get(slab)?.read();
        Some(SharedSlab {
            note: note.unwrap_or_else(PoisonError::into_inner),
            at: self.base.wrapping_add(slab * SLAB),
        })
    }

    pub(super) fn exclusive(&self, slab: usize) -> Option<ExclusiveSlab<'_, T>> {
        let note = self.locks.get(slab)?.write();
        Some(self.exclusive_slab(slab, note.unwrap_or_else(PoisonError::into_inner)))
    }

    /// Locks the slab without waiting; `None` while another thread has it.
    pub(super) fn try_exclusive(&self, slab: usize) -> Option<ExclusiveSlab<'_, T>> {
        match self.locks.get(slab)?.try_write() {
            Ok(note) => Some(self.exclusive_slab(slab, note)),
            Err(TryLockError::Poisoned(note)) => Some(self.exclusive_slab(slab, note.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn exclusive_slab<'a>(
        &self,
        slab: usize,
        note: RwLockWriteGuard<'a, T>,
    ) -> ExclusiveSlab<'a, T> {
        ExclusiveSlab {
            note,
            slab,
            at: self.base.wrapping_add(slab * SLAB),
        }
    }

    /// Gives the memory of neighbouring slabs back to the kernel immediately; afterwards they read as zeroes.
    pub(super) fn release(&self, run: &[ExclusiveSlab<'_, T>]) {
        let mut rest = run;
        while let Some(first) = rest.first() {
            let is_next =
                |(i, alone): &(usize, &ExclusiveSlab<'_, T>)| alone.slab == first.slab + i;
            let count = rest.iter().enumerate().take_while(is_next).count();
            // SAFETY: every slab of the range is ours and locked exclusively, so nobody reads memory that
            // disappears.
            let freed = unsafe { rustix::mm::madvise(first.at.cast(), count * SLAB, self.frees) };
            if let Err(e) = freed {
                // The owner's memory comes first: ending the process gives all of it back.
                eprintln!("gleaner-memoryd: the kernel does not take memory back ({e}): ending");
                std::process::abort();
            }
            rest = &rest[count..];
        }
    }

    /// Undoes a locking of the whole process, since [`Self::release`] could not give locked memory back.
    pub(super) fn unlock(&self) {
        // SAFETY: the range is ours; unlocking changes no contents.
        let _ = unsafe { rustix::mm::munlock(self.base.cast(), self.locks.len() * SLAB) };
    }

    /// Addresses of the slabs.
    pub(super) fn range(&self) -> Range<usize> {
        self.base.addr()..self.base.addr() + self.locks.len() * SLAB
    }
}

impl<T> Drop for Slabs<T> {
    fn drop(&mut self) {
        // SAFETY: all borrows of slabs borrow this value, so they have ended.
        let _ = unsafe { rustix::mm::munmap(self.mapped, self.mapped_bytes) };
    }
}

/// A slab under its shared lock: nobody writes to it.
pub(super) struct SharedSlab<'a, T> {
    pub(super) note: RwLockReadGuard<'a, T>,
    at: *const u8,
}

impl<T> SharedSlab<'_, T> {
    /// Returns the bytes of the slab in the range `within`, at most up to the slab's end.
    pub(super) fn bytes(&self, within: Range<usize>) -> &[u8] {
        let (from, to) = (SLAB.min(within.start), SLAB.min(within.end));
        // SAFETY: the range lies within the slab, whose lock is held for the borrow: nobody writes to the
        // slab, and it stays mapped.
        unsafe { std::slice::from_raw_parts(self.at.add(from), to.saturating_sub(from)) }
    }

    /// Copies bytes from `offset` on; bytes of `into` beyond the slab's end are left unchanged.
    pub(super) fn copy_out(&self, offset: usize, into: &mut [u8]) {
        let length = into.len().min(SLAB.saturating_sub(offset));
        // SAFETY: the range lies within the slab, whose lock is held: nobody writes to the slab, and it stays mapped.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at.add(SLAB.min(offset)), into.as_mut_ptr(), length)
        }
    }
}

/// A slab under its exclusive lock.
pub(super) struct ExclusiveSlab<'a, T> {
    pub(super) note: RwLockWriteGuard<'a, T>,
    pub(super) slab: usize,
    at: *mut u8,
}

impl<T> ExclusiveSlab<'_, T> {
    /// Returns the bytes of the slab in the range `within`, at most up to the slab's end.
    pub(super) fn bytes_mut(&mut self, within: Range<usize>) -> &mut [u8] {
        let (from, to) = (SLAB.min(within.start), SLAB.min(within.end));
        // SAFETY: the range lies within the slab, whose exclusive lock is held for the borrow, and it stays mapped.
        unsafe { std::slice::from_raw_parts_mut(self.at.add(from), to.saturating_sub(from)) }
    }

    /// Copies bytes to `offset` on; bytes beyond the slab's end are left out.
    pub(super) fn copy_in(&mut self, offset: usize, from: &[u8]) {
        let length = from.len().min(SLAB.saturating_sub(offset));
        // SAFETY: the range lies within the slab, whose exclusive lock is held, and it stays mapped.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), self.at.add(SLAB.min(offset)), length)
        }
    }
}
