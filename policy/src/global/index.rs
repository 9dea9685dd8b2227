//! Hash index from identifiers to slots of an array: four bytes per cell, linear probing, no tombstones.

use super::uid::Uid;

/// Content of a cell without a slot.
const EMPTY: u32 = u32::MAX;

/// Index of an array's slots by identifier. The array holds the identifiers; each call passes a function that
/// returns the identifier in a slot.
#[derive(Clone, Debug)]
pub(super) struct Index {
    cells: Vec<u32>,
    count: usize,
}

impl Index {
    /// Index with room for `entries`.
    pub(super) fn with_room(entries: usize) -> Self {
        Self {
            cells: vec![EMPTY; cells_for(entries)],
            count: 0,
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of the cells.
    pub(super) fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<u32>()
    }

    /// Slot of `uid`.
    #[inline]
    pub(super) fn find(&self, uid: Uid, uid_of: impl Fn(u32) -> Uid) -> Option<u32> {
        self.cell_of(uid, &uid_of).map(|at| self.cells[at])
    }

    /// Adds `slot`, which holds `uid`. The index must not contain `uid`.
    pub(super) fn insert(&mut self, uid: Uid, slot: u32, uid_of: impl Fn(u32) -> Uid) {
        if (self.count + 1) * 4 > self.cells.len() * 3 {
            let larger = vec![EMPTY; self.cells.len() * 2];
            for slot in std::mem::replace(&mut self.cells, larger) {
                if slot != EMPTY {
                    self.put(uid_of(slot), slot);
                }
            }
        }
        self.put(uid, slot);
        self.count += 1;
    }

    /// Removes `uid`; returns its slot. The slot must still hold the identifier.
    pub(super) fn remove(&mut self, uid: Uid, uid_of: impl Fn(u32) -> Uid) -> Option<u32> {
        let mut hole = self.cell_of(uid, &uid_of)?;
        let removed = self.cells[hole];
        let mask = self.cells.len() - 1;
        let mut next = (hole + 1) & mask;
        // Later entries of the same run close the hole, unless they lie between their own first cell and it.
        while self.cells[next] != EMPTY {
            let first = uid_of(self.cells[next]).hash() as usize & mask;
            if (next.wrapping_sub(first) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.cells[hole] = self.cells[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.cells[hole] = EMPTY;
        self.count -= 1;
        Some(removed)
    }

    /// Cell that holds the slot of `uid`. A quarter of the cells is empty, so the search ends.
    #[inline]
    fn cell_of(&self, uid: Uid, uid_of: &impl Fn(u32) -> Uid) -> Option<usize> {
        let mask = self.cells.len() - 1;
        let mut at = uid.hash() as usize & mask;
        loop {
            let slot = self.cells[at];
            if slot == EMPTY {
                return None;
            }
            if uid_of(slot) == uid {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    /// Stores `slot` in the first empty cell from the hash of `uid` on.
    fn put(&mut self, uid: Uid, slot: u32) {
        let mask = self.cells.len() - 1;
        let mut at = uid.hash() as usize & mask;
        while self.cells[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.cells[at] = slot;
    }
}

/// Cells for `entries`: a power of two, at most three quarters full.
fn cells_for(entries: usize) -> usize {
    (entries.saturating_mul(4) / 3 + 1)
        .next_power_of_two()
        .max(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_index_finds_the_slots_of_a_map(steps in prop::collection::vec((0..40u32, any::<bool>()), 0..200)) {
            let uid_of = |slot: u32| Uid::shared(u128::from(slot));
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
                for slot in 0..40 {
                    prop_assert_eq!(index.find(uid_of(slot), uid_of), map.get(&uid_of(slot)).copied());
                }
            }
        }
    }
}
