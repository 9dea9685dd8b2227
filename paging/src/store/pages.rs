//! Reads and writes one lease's pages, from any thread.

use super::mapping::{ExclusiveSlab, SLAB, SharedSlab};
use super::{Error, Owner, PAGE_BYTES, Slot, Store, lock};
use gleaner_schemas::lending::SLAB_BYTES;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const PAGE: usize = PAGE_BYTES as usize;

/// Stands in place of a slab's number: nothing is written, or everything was discarded.
const EMPTY: usize = usize::MAX;
/// Stands in place of a slab's number: the memory was given back.
const LOST: usize = usize::MAX - 1;

/// The store's record of a lease.
pub(super) struct Lease {
    pub(super) id: String,
    client: String,
    /// Number in the order of opening.
    pub(super) opened: u64,
    bytes: u64,
    /// For each part of the lease, the number of the slab that holds it.
    slabs: Box<[AtomicUsize]>,
    is_over: AtomicBool,
    /// Flag shared with all leases that are revoked together.
    all_over: Arc<AtomicBool>,
}

impl Lease {
    pub(super) fn new(
        id: &str,
        client: &str,
        opened: u64,
        bytes: u64,
        all_over: Arc<AtomicBool>,
    ) -> Self {
        let count = usize::try_from(bytes.div_ceil(SLAB_BYTES)).unwrap_or(0);
        Self {
            id: id.to_owned(),
            client: client.to_owned(),
            opened,
            bytes,
            slabs: (0..count).map(|_| AtomicUsize::new(EMPTY)).collect(),
            is_over: AtomicBool::new(false),
            all_over,
        }
    }

    /// Ends all reading and writing of the lease's pages.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst) || self.all_over.load(Ordering::SeqCst)
    }

    /// Marks a part of the lease as lost, since its memory was given back.
    pub(super) fn lose(&self, index: usize) {
        if let Some(place) = self.slabs.get(index) {
            place.store(LOST, Ordering::SeqCst);
        }
    }
}

impl Lease {
    /// Takes at most `count` parts that were never written from the lease, the last first; returns their
    /// number.
    pub(super) fn reclaim_unwritten(&self, count: usize) -> usize {
        let order = Ordering::SeqCst;
        let lost = |place: &&AtomicUsize| place.compare_exchange(EMPTY, LOST, order, order).is_ok();
        self.slabs.iter().rev().filter(lost).take(count).count()
    }
}

/// Pages of one lease.
#[derive(Clone)]
pub struct Pages {
    store: Arc<Store>,
    lease: Arc<Lease>,
}

/// A part of a range that lies within one slab.
struct Piece {
    /// Number of the slab within the lease.
    index: usize,
    /// Range within the slab.
    within: Range<usize>,
    /// Range within the caller's bytes.
    of_range: Range<usize>,
}

impl Pages {
    pub(super) fn new(store: Arc<Store>, lease: Arc<Lease>) -> Self {
        Self { store, lease }
    }

    /// Client of the lease.
    #[must_use]
    pub fn client(&self) -> &str {
        &self.lease.client
    }

    /// Size of the lease in bytes, also after its end.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lease.bytes
    }

    /// Reads from `offset` on. After an error, the content of `into` is undefined.
    ///
    /// # Errors
    /// [`Error::Gone`], also if memory was given back during the call; [`Error::Beyond`].
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        for piece in self.pieces(offset, into.len() as u64)? {
            self.read_piece(&piece, &mut into[piece.of_range.clone()])?;
        }
        self.check_exists()
    }

    /// Writes from `offset` on. After an error, some bytes may have been written.
    ///
    /// # Errors
    /// [`Error::Gone`], also if memory was given back during the call; [`Error::Beyond`]; [`Error::Full`].
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), Error> {
        for piece in self.pieces(offset, from.len() as u64)? {
            let from = &from[piece.of_range.clone()];
            let mut alone = self.slab_for(piece.index)?;
            blank_edges(&mut alone, &piece.within);
            alone.copy_in(piece.within.start, from);
            for page in piece.within.start / PAGE..piece.within.end.div_ceil(PAGE) {
                alone.note.written[page / 64] |= 1 << (page % 64);
            }
        }
        self.check_exists()
    }

    /// Lets `fill` write bytes from the beginning of a page on, at most to the end of its slab. `fill`
    /// returns the number of bytes written, of which only whole pages count. `fill` is not called if the
    /// range cannot be written. It must not block, since other threads wait for the slab.
    ///
    /// # Errors
    /// Errors of [`Self::write`].
    pub fn fill(
        &self,
        offset: u64,
        bytes: u64,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<(), Error> {
        let piece = self.pieces(offset, bytes - bytes % PAGE_BYTES)?.next();
        let Some(piece) = piece.filter(|_| offset.is_multiple_of(PAGE_BYTES)) else {
            return Ok(());
        };
        let mut alone = self.slab_for(piece.index)?;
        let first = piece.within.start / PAGE;
        let pages = fill(alone.bytes_mut(piece.within)) / PAGE;
        for page in first..first + pages {
            alone.note.written[page / 64] |= 1 << (page % 64);
        }
        drop(alone);
        self.check_exists()
    }

    /// Discards bytes, which then read as zeroes. A slab's memory is given back once all of it is discarded.
    ///
    /// # Errors
    /// [`Error::Gone`]; [`Error::Beyond`].
    pub fn discard(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        for piece in self.pieces(offset, bytes)? {
            self.discard_piece(&piece)?;
        }
        self.check_exists()
    }

    /// # Errors
    /// [`Error::Gone`]: the lease has ended.
    pub(crate) fn check_exists(&self) -> Result<(), Error> {
        if self.lease.is_over() {
            return Err(Error::Gone);
        }
        Ok(())
    }

    /// Passes the bytes to `look` without copying them. The bytes cannot be changed or given back during the
    /// call, so `look` must not block.
    ///
    /// Returns false, without calling `look`, if the range is not contiguous in memory, or if part of it was
    /// never written.
    ///
    /// # Errors
    /// [`Error::Gone`]; [`Error::Beyond`].
    pub fn show(
        &self,
        offset: u64,
        bytes: u64,
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        let mut pieces = self.pieces(offset, bytes)?;
        let (Some(piece), None) = (pieces.next(), pieces.next()) else {
            return Ok(false);
        };
        let Some(shared) = self.shared(piece.index)? else {
            return Ok(false);
        };
        let mut pages = piece.within.start / PAGE..piece.within.end.div_ceil(PAGE);
        let is_whole = pages.all(|page| is_written(&shared.note, page));
        if is_whole {
            look(shared.bytes(piece.within));
        }
        Ok(is_whole)
    }

    fn read_piece(&self, piece: &Piece, into: &mut [u8]) -> Result<(), Error> {
        let Some(shared) = self.shared(piece.index)? else {
            into.fill(0);
            return Ok(());
        };
        shared.copy_out(piece.within.start, into);
        for page in piece.within.start / PAGE..piece.within.end.div_ceil(PAGE) {
            if !is_written(&shared.note, page) {
                let from = (page * PAGE).max(piece.within.start) - piece.within.start;
                let to = ((page + 1) * PAGE).min(piece.within.end) - piece.within.start;
                into[from..to].fill(0);
            }
        }
        Ok(())
    }

    /// Locks the slab that holds this part of the lease; returns `None` if there is none, since nothing is
    /// written.
    fn shared(&self, index: usize) -> Result<Option<SharedSlab<'_, Slot>>, Error> {
        loop {
            self.check_exists()?;
            let slab = match self.place(index)? {
                EMPTY => return Ok(None),
                slab => slab,
            };
            let shared = self.store.slabs.shared(slab).ok_or(Error::Gone)?;
            if !self.owns(&shared.note, index) {
                continue; // the memory was given back after the number was read
            }
            if self.lease.is_over() {
                return Err(Error::Gone);
            }
            return Ok(Some(shared));
        }
    }

    fn discard_piece(&self, piece: &Piece) -> Result<(), Error> {
        loop {
            self.check_exists()?;
            let slab = match self.place(piece.index)? {
                EMPTY => return Ok(()),
                slab => slab,
            };
            let mut alone = self.store.slabs.exclusive(slab).ok_or(Error::Gone)?;
            if !self.owns(&alone.note, piece.index) {
                continue;
            }
            for page in piece.within.start / PAGE..piece.within.end.div_ceil(PAGE) {
                let from = (page * PAGE).max(piece.within.start);
                let to = ((page + 1) * PAGE).min(piece.within.end);
                if to - from == PAGE {
                    alone.note.written[page / 64] &= !(1 << (page % 64));
                } else if is_written(&alone.note, page) {
                    alone.copy_in(from, &[0; PAGE][..to - from]);
                }
            }
            if alone.note.written == [0; 8] {
                self.lease.slabs[piece.index].store(EMPTY, Ordering::SeqCst);
                self.store.reclaim_slab(alone);
            }
            return Ok(());
        }
    }

    /// Locks exclusively the slab that holds this part of the lease. If there is none yet, takes a free slab.
    fn slab_for(&self, index: usize) -> Result<ExclusiveSlab<'_, Slot>, Error> {
        loop {
            self.check_exists()?;
            let slab = match self.place(index)? {
                EMPTY => match self.fresh(index)? {
                    Some(alone) => return Ok(alone),
                    None => continue, // another thread has taken a slab for this part
                },
                slab => slab,
            };
            let alone = self.store.slabs.exclusive(slab).ok_or(Error::Gone)?;
            if self.owns(&alone.note, index) {
                // The check is made under the lock: see the second rule in the description of the module
                // `store`.
                self.check_exists()?;
                return Ok(alone);
            }
        }
    }

    fn fresh(&self, index: usize) -> Result<Option<ExclusiveSlab<'_, Slot>>, Error> {
        let store = &*self.store;
        let slab = {
            let mut free = lock(&store.free);
            let slab = free.pop().ok_or(Error::Full)?;
            store.used_until.fetch_max(slab + 1, Ordering::SeqCst);
            slab
        };
        let mut alone = store.slabs.exclusive(slab).ok_or(Error::Full)?;
        let order = Ordering::SeqCst;
        let place = &self.lease.slabs[index];
        // The check is made under the lock: see the second rule in the description of the module `store`.
        let is_ours =
            !self.lease.is_over() && place.compare_exchange(EMPTY, slab, order, order).is_ok();
        if !is_ours {
            drop(alone);
            lock(&store.free).push(slab);
            return Ok(None);
        }
        alone.note.written = [0; 8];
        alone.note.owner = Some(Owner {
            lease: self.lease.clone(),
            index,
            born: store.births.fetch_add(1, order),
        });
        store.held.fetch_add(1, order);
        Ok(Some(alone))
    }

    fn place(&self, index: usize) -> Result<usize, Error> {
        match self.lease.slabs[index].load(Ordering::SeqCst) {
            LOST => Err(Error::Gone),
            place => Ok(place),
        }
    }

    fn owns(&self, slot: &Slot, index: usize) -> bool {
        let owner = slot.owner.as_ref();
        owner.is_some_and(|owner| Arc::ptr_eq(&owner.lease, &self.lease) && owner.index == index)
    }

    fn pieces(&self, offset: u64, bytes: u64) -> Result<impl Iterator<Item = Piece>, Error> {
        let end = offset.checked_add(bytes);
        let Some(end) = end.filter(|end| *end <= self.lease.bytes) else {
            return Err(Error::Beyond { offset, bytes });
        };
        let mut at = offset;
        Ok(std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let index = at / SLAB_BYTES;
            let until = end.min((index + 1) * SLAB_BYTES);
            let first = index * SLAB_BYTES;
            let piece = Piece {
                index: index as usize,
                within: (at - first) as usize..(until - first) as usize,
                of_range: (at - offset) as usize..(until - offset) as usize,
            };
            at = until;
            Some(piece)
        }))
    }
}

fn is_written(slot: &Slot, page: usize) -> bool {
    slot.written[page / 64] & (1 << (page % 64)) != 0
}

/// Fills with zeroes the pages that are about to be written only in part and count as unwritten: they may
/// still hold discarded bytes.
fn blank_edges(alone: &mut ExclusiveSlab<'_, Slot>, within: &Range<usize>) {
    for at in [within.start, within.end] {
        let page = at.min(SLAB - 1) / PAGE;
        if at % PAGE != 0 && !is_written(&alone.note, page) {
            alone.copy_in(page * PAGE, &[0; PAGE]);
        }
    }
}
