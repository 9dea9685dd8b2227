//! Pages in the order of their last references (Olken, *Efficient methods for calculating the success function of
//! fixed space replacement policies*, 1981).
//!
//! Each reference gets a time stamp, and one bit per stamp says whether a later reference to the same page has
//! replaced it. A Fenwick tree over the words of these bits counts the pages that were referenced since a stamp.
//! When the stamps are used up, they are renumbered without those that were replaced.
//!
//! The place of a freed page is a hole: an unused page in every memory that had the freed page. A page that comes from
//! below the highest hole fills it. In memories that had this page, the place from which it came is unused instead.

use std::collections::BinaryHeap;

/// Pages by recency. Pages are dense numbers from 0.
#[derive(Debug)]
pub(super) struct Recency {
    /// One bit per stamp, set if the stamp is its page's newest.
    newest: Vec<u64>,
    /// Fenwick tree over the words of `newest`, from index 1: numbers of set bits.
    tree: Vec<u32>,
    /// Page of each stamp, or [`HOLE`].
    pages: Vec<u32>,
    /// Stamp of each page, or [`ABSENT`].
    stamps: Vec<u32>,
    /// Stamps of the holes.
    holes: BinaryHeap<u32>,
    /// Stamp of the next reference.
    next: usize,
    /// Number of pages and holes.
    len: u32,
}

/// Stamp of a page that is not in the order.
const ABSENT: u32 = u32::MAX;
/// Place of a freed page, in place of the page.
pub(super) const HOLE: u32 = u32::MAX;
/// Number of pages from which on stamps would not fit into 32 bits.
pub(super) const MOST_PAGES: u32 = 1 << 30;
/// Least number of words of stamps.
const LEAST_WORDS: usize = 16;
const WORD_BITS: usize = 64;

impl Default for Recency {
    fn default() -> Self {
        let mut recency = Self {
            newest: Vec::new(),
            tree: Vec::new(),
            pages: Vec::new(),
            stamps: Vec::new(),
            holes: BinaryHeap::new(),
            next: 0,
            len: 0,
        };
        recency.renumber();
        recency
    }
}

impl Recency {
    /// Number of pages and holes in the order.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Removes a page that will be the one referenced last, and returns its position before, from 1 for the page
    /// referenced last. If a hole is above it, the hole is filled, and the page leaves one. `None` if the page is not
    /// in the order; it then fills the highest hole.
    #[inline]
    pub(super) fn take(&mut self, page: u32) -> Option<u32> {
        let Some((stamp, position)) = self.place(page) else {
            if let Some(hole) = self.holes.pop() {
                self.remove(hole);
            }
            return None;
        };
        self.stamps[page as usize] = ABSENT;
        match self.holes.peek().copied() {
            Some(hole) if hole > stamp => {
                self.holes.pop();
                self.remove(hole);
                self.leave_hole(stamp);
            }
            _ => self.remove(stamp),
        }
        Some(position)
    }

    /// Makes a hole of a page's place, and returns its position as [`Self::take`] does.
    pub(super) fn free(&mut self, page: u32) -> Option<u32> {
        let (stamp, position) = self.place(page)?;
        self.stamps[page as usize] = ABSENT;
        self.leave_hole(stamp);
        Some(position)
    }

    /// Stamp and position of a page.
    #[inline]
    fn place(&self, page: u32) -> Option<(u32, u32)> {
        let stamp = *self.stamps.get(page as usize)?;
        if stamp == ABSENT {
            return None;
        }
        let (word, bit) = (stamp as usize / WORD_BITS, stamp as usize % WORD_BITS);
        let bits_before = self.newest[word] & ((1 << bit) - 1);
        let earlier = bits_before.count_ones() + self.in_words_before(word);
        Some((stamp, self.len - earlier))
    }

    #[inline]
    fn remove(&mut self, stamp: u32) {
        let (word, bit) = (stamp as usize / WORD_BITS, stamp as usize % WORD_BITS);
        self.newest[word] &= !(1 << bit);
        self.add(word, u32::MAX); // 1 less
        self.len -= 1;
    }

    #[cold]
    fn leave_hole(&mut self, stamp: u32) {
        self.pages[stamp as usize] = HOLE;
        self.holes.push(stamp);
    }

    /// Adds a page, which must not be in the order, as the one referenced last.
    #[inline]
    pub(super) fn push(&mut self, page: u32) {
        if self.next == self.pages.len() {
            self.renumber();
        }
        if self.stamps.len() <= page as usize {
            self.stamps.resize(page as usize + 1, ABSENT);
        }
        let stamp = self.next;
        self.next += 1;
        self.stamps[page as usize] = stamp as u32; // at most 2^31 + 2^10 stamps, for `MOST_PAGES` pages
        self.pages[stamp] = page;
        self.newest[stamp / WORD_BITS] |= 1 << (stamp % WORD_BITS);
        self.add(stamp / WORD_BITS, 1);
        self.len += 1;
    }

    /// Pages and holes of the order, the one referenced longest ago first.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = u32> {
        let stamps = 0..self.next;
        let is_newest =
            move |stamp: &usize| self.newest[stamp / WORD_BITS] >> (stamp % WORD_BITS) & 1 == 1;
        stamps.filter(is_newest).map(move |stamp| self.pages[stamp])
    }

    /// Number of pages whose stamps are in the words before this one.
    #[inline]
    fn in_words_before(&self, word: usize) -> u32 {
        let (mut at, mut sum) = (word, 0_u32);
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    /// Adds to the count of a word, modulo 2³².
    #[inline]
    fn add(&mut self, word: usize, change: u32) {
        let mut at = word + 1;
        while let Some(count) = self.tree.get_mut(at) {
            *count = count.wrapping_add(change);
            at += at & at.wrapping_neg();
        }
    }

    /// Gives the pages the stamps from 0 on, in their order, and makes room for as many stamps again.
    #[cold]
    fn renumber(&mut self) {
        let order: Vec<u32> = self.oldest_first().collect();
        let words = (2 * order.len() / WORD_BITS + 1).max(LEAST_WORDS);
        self.holes.clear();
        for (stamp, page) in order.iter().enumerate() {
            let stamp = stamp as u32; // fewer than before
            match *page {
                HOLE => self.holes.push(stamp),
                page => self.stamps[page as usize] = stamp,
            }
        }
        self.next = order.len();
        self.newest = vec![0; words];
        for stamp in 0..self.next {
            self.newest[stamp / WORD_BITS] |= 1 << (stamp % WORD_BITS);
        }
        self.pages = order;
        self.pages.resize(words * WORD_BITS, 0);
        self.tree = vec![0; words + 1];
        for word in 0..words {
            let at = word + 1;
            self.tree[at] += self.newest[word].count_ones();
            let above = at + (at & at.wrapping_neg());
            if above <= words {
                self.tree[above] += self.tree[at];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_are_those_in_a_list(asked in prop::collection::vec((0u32..200, any::<bool>()), 0..6000)) {
            let mut recency = Recency::default();
            let mut list: Vec<u32> = Vec::new();
            for (page, comes_back) in asked {
                let position = list.iter().rev().position(|other| *other == page);
                list.retain(|other| *other != page);
                prop_assert_eq!(recency.take(page), position.map(|p| p as u32 + 1));
                if comes_back {
                    recency.push(page);
                    list.push(page);
                }
                prop_assert_eq!(recency.len() as usize, list.len());
            }
            prop_assert_eq!(recency.oldest_first().collect::<Vec<u32>>(), list);
        }
    }
}
