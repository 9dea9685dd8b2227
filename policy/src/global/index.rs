//! Hash index from identifiers to slots of an array. An identifier's cells lie in one cache line, with bits of its
//! hash, so that a search reads one line of the index and, of the array, only the slot that it finds.

use super::prefetch::{PrefetchStage, prefetch};
use super::uid::Uid;

/// Content of a cell without a slot.
const EMPTY: u32 = u32::MAX;
/// Cells of a line that may contain a slot; the last cell has the line's count of detours.
const CELLS: usize = 15;

/// Bit of each cell that may contain a slot.
const BITS: [u32; CELLS + 1] = {
    let mut bits = [0; CELLS + 1];
    let mut at = 0;
    while at < CELLS {
        bits[at] = 1 << at;
        at += 1;
    }
    bits
};

/// Cache line of an index. A cell has a slot in its low bits and a part of the identifier's hash, the tag, above them. The
/// last cell counts detours: entries beyond this line whose search begins here or before, because it was full.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct CellLine([u32; CELLS + 1]);

impl CellLine {
    const UNUSED: Self = {
        let mut cells = [EMPTY; CELLS + 1];
        cells[CELLS] = 0;
        Self(cells)
    };

    /// Cells whose bits in `mask` are `tag`, as bits of the result. Without branches and shifts, for vector
    /// instructions.
    #[inline]
    fn matches(&self, tag: u32, mask: u32) -> u32 {
        let mut found = 0;
        for (cell, bit) in self.0.iter().zip(&BITS) {
            found |= if cell & mask == tag { *bit } else { 0 };
        }
        found
    }

    /// Number of entries that found this line full.
    #[inline]
    fn detours(&self) -> u32 {
        self.0[CELLS]
    }
}

/// Index of an array's slots by identifier. The array holds the identifiers; each call passes a function that
/// returns the identifier in a slot.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// A power of two of lines.
    lines: Vec<CellLine>,
    /// Bits of a cell that have the slot.
    slot_mask: u32,
    count: usize,
}

impl Index {
    /// Index with room for `entries`.
    pub(super) fn with_room(entries: usize) -> Self {
        let lines = lines_for(entries);
        Self {
            lines: vec![CellLine::UNUSED; lines],
            slot_mask: (lines * (CELLS + 1) - 1) as u32,
            count: 0,
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of the cells.
    pub(super) fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<CellLine>()
    }

    /// Slot of `uid`.
    #[inline]
    pub(super) fn find(&self, uid: Uid, uid_of: impl Fn(u32) -> Uid) -> Option<u32> {
        let (line, at) = self.cell_of(uid, uid.hash(), &uid_of)?;
        Some(self.lines[line].0[at] & self.slot_mask)
    }

    /// Adds `slot`, which holds `uid`. The index must not contain `uid`.
    pub(super) fn insert(&mut self, uid: Uid, slot: u32, uid_of: impl Fn(u32) -> Uid) {
        // Slots must have room in the cells, too; an array without gaps has no slot beyond its entries.
        let entries = (self.count + 1).max(slot as usize + 1);
        if lines_for(entries) > self.lines.len() {
            let smaller = std::mem::replace(self, Self::with_room(entries));
            let cells = smaller.lines.iter().flat_map(|line| &line.0[..CELLS]);
            for cell in cells.filter(|cell| **cell != EMPTY) {
                let slot = cell & smaller.slot_mask;
                self.put(uid_of(slot).hash(), slot);
            }
        }
        self.put(uid.hash(), slot);
    }

    /// Removes `uid`; returns its slot. The slot must still hold the identifier.
    pub(super) fn remove(&mut self, uid: Uid, uid_of: impl Fn(u32) -> Uid) -> Option<u32> {
        let hash = uid.hash();
        let (found, at) = self.cell_of(uid, hash, &uid_of)?;
        let removed = self.lines[found].0[at] & self.slot_mask;
        self.lines[found].0[at] = EMPTY;
        self.count -= 1;
        let mut line = self.first_line(hash);
        while line != found {
            self.lines[line].0[CELLS] -= 1;
            line = self.after(line);
        }
        Some(removed)
    }

    /// Prefetches the line where the search for `uid` begins, or calls `prefetch_slot` with the slot that this
    /// line has for `uid`, if any.
    #[inline]
    pub(super) fn prefetch(&self, uid: Uid, stage: PrefetchStage, prefetch_slot: impl FnOnce(u32)) {
        let hash = uid.hash();
        let line = &self.lines[self.first_line(hash)];
        if stage == PrefetchStage::Index {
            return prefetch(line);
        }
        let matches = line.matches(self.tag(hash), !self.slot_mask);
        let cell = line.0[matches.trailing_zeros() as usize % CELLS];
        if matches != 0 && cell != EMPTY {
            prefetch_slot(cell & self.slot_mask);
        }
    }

    /// Line and cell of `uid`. The search ends at a line that no entry found full, or after all lines.
    #[inline]
    fn cell_of(&self, uid: Uid, hash: u64, uid_of: &impl Fn(u32) -> Uid) -> Option<(usize, usize)> {
        let mut at_line = self.first_line(hash);
        for _ in 0..self.lines.len() {
            let line = &self.lines[at_line];
            let mut matches = line.matches(self.tag(hash), !self.slot_mask);
            while matches != 0 {
                let at = matches.trailing_zeros() as usize;
                let cell = line.0[at];
                if cell != EMPTY && uid_of(cell & self.slot_mask) == uid {
                    return Some((at_line, at));
                }
                matches &= matches - 1;
            }
            if line.detours() == 0 {
                return None;
            }
            at_line = self.after(at_line);
        }
        None
    }

    /// Stores `slot` in the first empty cell from the hash's line on. A quarter of all cells is empty.
    fn put(&mut self, hash: u64, slot: u32) {
        let cell = self.tag(hash) | slot;
        let mut at_line = self.first_line(hash);
        loop {
            let line = &mut self.lines[at_line];
            if let Some(empty) = line.0[..CELLS].iter_mut().find(|cell| **cell == EMPTY) {
                *empty = cell;
                self.count += 1;
                return;
            }
            line.0[CELLS] += 1;
            at_line = self.after(at_line);
        }
    }

    #[inline]
    fn first_line(&self, hash: u64) -> usize {
        hash as usize & (self.lines.len() - 1)
    }

    #[inline]
    fn after(&self, line: usize) -> usize {
        (line + 1) & (self.lines.len() - 1)
    }

    /// Bits of the hash that choose neither the line nor the page's node in the page ownership directory.
    #[inline]
    fn tag(&self, hash: u64) -> u32 {
        (hash >> 20) as u32 & !self.slot_mask
    }
}

/// Lines for `entries`: a power of two, whose cells are at most three quarters full.
fn lines_for(entries: usize) -> usize {
    entries
        .saturating_mul(4)
        .div_ceil(3 * CELLS)
        .next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Inserts slots, and removes them, and compares the index with a map.
    fn compare(uids: &[Uid], steps: Vec<(u32, bool)>) -> Result<(), TestCaseError> {
        let uid_of = |slot: u32| uids[slot as usize];
        let mut index = Index::with_room(0);
        let mut map = BTreeMap::new();
        for (slot, is_insert) in steps {
            let uid = uid_of(slot);
            if !is_insert {
                prop_assert_eq!(index.remove(uid, uid_of), map.remove(&uid));
            } else if map.insert(uid, slot).is_none() {
                index.insert(uid, slot, uid_of);
            }
            prop_assert_eq!(index.len(), map.len());
            for slot in 0..uids.len() as u32 {
                prop_assert_eq!(
                    index.find(uid_of(slot), uid_of),
                    map.get(&uid_of(slot)).copied()
                );
            }
        }
        for uid in map.keys() {
            index.remove(*uid, uid_of);
        }
        prop_assert!(index.lines.iter().all(|line| line.detours() == 0));
        Ok(())
    }

    proptest! {
        #[test]
        fn the_index_finds_the_slots_of_a_map(steps in prop::collection::vec((0..40u32, any::<bool>()), 0..200)) {
            let uids: Vec<Uid> = (0..40).map(Uid::shared).collect();
            compare(&uids, steps)?;
        }

        /// Fifty entries of one line take four lines, around the end of the array.
        #[test]
        fn full_lines_are_passed(
            steps in prop::collection::vec((0..50u32, prop::bool::weighted(0.8)), 0..300),
        ) {
            let of_last_line = (0..).map(Uid::shared).filter(|uid| uid.hash() % 8 == 7);
            let uids: Vec<Uid> = of_last_line.take(50).collect();
            compare(&uids, steps)?;
        }
    }

    #[test]
    fn a_prefetch_finds_the_slots_of_pages() {
        let uid_of = |slot: u32| Uid::shared(u128::from(slot));
        let mut index = Index::with_room(0);
        for slot in 0..10 {
            index.insert(uid_of(slot), slot, uid_of);
        }
        for slot in 0..20 {
            let mut found = None;
            index.prefetch(uid_of(slot), PrefetchStage::Index, |slot| {
                found = Some(slot)
            });
            assert_eq!(found, None);
            index.prefetch(uid_of(slot), PrefetchStage::Page, |slot| found = Some(slot));
            assert_eq!(found, (slot < 10).then_some(slot));
        }
    }

    #[test]
    fn a_line_of_cells_is_a_cache_line() {
        assert_eq!(size_of::<CellLine>(), 64);
        // 45 entries fill four lines to three quarters.
        assert_eq!([0, 11, 12, 45, 46].map(lines_for), [1, 1, 2, 4, 8]);
    }
}
