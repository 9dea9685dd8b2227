//! Exact stack distances, and write-backs in the same pass.

use super::counts::MissCounts;
use super::recency::Recency;

/// The stack of a program's pages. Pages are dense numbers from 0.
///
/// The stack distance of a reference is the number of distinct pages since the previous reference to the same page,
/// this page included: a least-recently-used memory of fewer pages faults.
///
/// A page's dirty level is the least memory size in which the page is dirty; a clean page has none. A reference at
/// distance `d` finds that the page has left all memories of fewer than `d` pages; those in which it was dirty wrote
/// it back. A freed page leaves the other memories without being written back, and its place there is unused.
#[derive(Debug, Default)]
pub struct StackDistances {
    order: Recency,
    /// Dirty level of each page; 0 for a clean page.
    dirty: Vec<u32>,
    counts: MissCounts,
    /// Number of references to pages for the first time, or after they were freed.
    cold: u64,
}

impl StackDistances {
    /// Makes a reference to a page.
    #[inline]
    pub fn reference(&mut self, page: u32, is_write: bool) {
        if self.take(page, 0).is_none() {
            self.cold += 1;
        }
        self.put(page, is_write);
    }

    /// Number of references to pages for the first time, or after they were freed.
    #[must_use]
    pub fn cold(&self) -> u64 {
        self.cold
    }

    /// Takes a page out of the stack and counts its reuse, below `above` pages that were referenced later and are
    /// not in the stack. Returns the distance, or `None` if the page is not in the stack.
    #[inline]
    pub(super) fn take(&mut self, page: u32, above: u32) -> Option<u32> {
        let distance = self.order.take(page)? + above;
        self.counts.reuse(distance);
        if let Some(level) = self.dirty.get_mut(page as usize)
            && *level > 0
        {
            self.counts.write_back(*level, distance);
            *level = distance.max(*level);
        }
        Some(distance)
    }

    /// Frees a page, if it is in the stack below `above` pages. Its next reference is as the first one: the kernel makes
    /// a page of zeroes.
    pub(super) fn free(&mut self, page: u32, above: u32) {
        let Some(position) = self.order.free(page) else {
            return;
        };
        if let Some(level) = self.dirty.get_mut(page as usize) {
            let level = std::mem::take(level);
            if level > 0 {
                self.counts.write_back(level, position + above);
            }
        }
    }

    /// Counts a reuse at a distance that is known without the stack.
    pub(super) fn reuse(&mut self, distance: u32) {
        self.counts.reuse(distance);
    }

    /// Puts a page, which must not be in the stack, on top. `is_written`: the page is dirty in all memories.
    #[inline]
    pub(super) fn put(&mut self, page: u32, is_written: bool) {
        self.order.push(page);
        if self.dirty.len() <= page as usize {
            self.dirty.resize(page as usize + 1, 0);
        }
        if is_written {
            self.dirty[page as usize] = 1;
        }
    }

    /// Counts the write-backs of pages that have left memory and were not referenced again, and returns the counts.
    /// `above`: number of pages that were referenced later and are not in the stack.
    #[must_use]
    pub(super) fn finish_below(mut self, above: u32) -> MissCounts {
        let mut position = self.order.len() + above;
        for page in self.order.oldest_first() {
            // A hole has none.
            let level = self.dirty.get(page as usize).copied().unwrap_or(0);
            if level > 0 {
                self.counts.write_back(level, position);
            }
            position -= 1;
        }
        self.counts
    }

    /// Returns the counts of all references.
    #[must_use]
    pub fn finish(self) -> MissCounts {
        self.finish_below(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Faults;
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Reference(u32, bool),
        Free(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let reference =
            (0u32..24, any::<bool>()).prop_map(|(page, is_write)| Step::Reference(page, is_write));
        let free = (0u32..24).prop_map(Step::Free);
        prop::collection::vec(prop_oneof![4 => reference, 1 => free], 0..600)
    }

    /// Reuse faults and write-backs of a memory that is a list, the page used last at the end.
    fn by_list(steps: &[Step], memory_pages: usize) -> Faults {
        let mut memory: Vec<(u32, bool)> = Vec::new();
        let mut left = std::collections::HashSet::new();
        let mut faults = Faults::default();
        for step in steps {
            match *step {
                Step::Reference(page, is_write) => {
                    let there = memory.iter().position(|(other, _)| *other == page);
                    let was_dirty = there.is_some_and(|at| memory.remove(at).1);
                    faults.reuse += f64::from(u8::from(left.remove(&page)));
                    memory.push((page, was_dirty || is_write));
                    if memory.len() > memory_pages {
                        let (page, is_dirty) = memory.remove(0);
                        left.insert(page);
                        faults.write_backs += f64::from(u8::from(is_dirty));
                    }
                }
                Step::Free(page) => {
                    memory.retain(|(other, _)| *other != page);
                    left.remove(&page);
                }
            }
        }
        faults
    }

    proptest! {
        #[test]
        fn freed_pages_make_room_in_memories_of_every_size(steps in steps()) {
            let mut stack = StackDistances::default();
            for step in &steps {
                match *step {
                    Step::Reference(page, is_write) => stack.reference(page, is_write),
                    Step::Free(page) => stack.free(page, 0),
                }
            }
            let sizes: Vec<u64> = (1..=25).collect();
            for (size, found) in sizes.iter().zip(stack.finish().at(&sizes)) {
                prop_assert_eq!(found, by_list(&steps, *size as usize), "{} pages", size);
            }
        }
    }
}
