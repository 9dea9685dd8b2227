//! Free parts of a lease, which several small regions can share.

use std::collections::BTreeMap;

/// Free ranges of a lease: length by beginning. Adjacent ranges are joined.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: u64,
    free: BTreeMap<u64, u64>,
}

impl Room {
    pub(crate) fn new(bytes: u64) -> Self {
        let free = if bytes == 0 { None } else { Some((0, bytes)) };
        Self {
            bytes,
            free: free.into_iter().collect(),
        }
    }

    /// Takes `bytes` bytes of the first free range that is large enough; returns their offset.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        let fits = |&(_, free): &(&u64, &u64)| *free >= bytes;
        let (&at, &free) = self.free.iter().find(fits)?;
        self.free.remove(&at);
        if free > bytes {
            self.free.insert(at + bytes, free - bytes);
        }
        Some(at)
    }

    /// Frees a range that was taken.
    pub(crate) fn give_back(&mut self, at: u64, bytes: u64) {
        let (mut from, mut to) = (at, at + bytes);
        let before = self.free.range(..at).next_back();
        if let Some((&begin, &free)) = before
            && begin + free == at
        {
            from = begin;
        }
        if let Some(after) = self.free.remove(&to) {
            to += after;
        }
        self.free.insert(from, to - from);
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.free.get(&0) == Some(&self.bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is taken and freed, no range is taken twice, and in the end everything is one free range
        /// again.
        #[test]
        fn what_is_taken_is_nobody_elses(steps in prop::collection::vec((any::<bool>(), 1_u64..40), 1..200)) {
            let mut room = Room::new(100);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (is_taking, n) in steps {
                if is_taking || taken.is_empty() {
                    let Some(at) = room.take(n) else { continue };
                    prop_assert!(at + n <= 100);
                    prop_assert!(taken.iter().all(|&(from, bytes)| at + n <= from || from + bytes <= at));
                    taken.push((at, n));
                } else {
                    let (at, bytes) = taken.swap_remove(n as usize % taken.len());
                    room.give_back(at, bytes);
                }
                prop_assert_eq!(room.is_unused(), taken.is_empty());
            }
            for (at, bytes) in taken {
                room.give_back(at, bytes);
            }
            prop_assert_eq!(room.take(100), Some(0));
        }
    }
}
