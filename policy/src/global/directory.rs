//! One node's part of the global cache directory (GCD): the nodes that hold each page.

use super::index::Index;
use super::prefetch::{PrefetchStage, prefetch};
use super::uid::{NodeId, Uid, below};

/// Most holders of one page that the directory remembers; any of them can serve the page.
pub const MOST_HOLDERS: usize = 8;

/// Mark of the end of a chain.
const NONE: u32 = u32::MAX;

/// Number that a node gives to each change of its pages. Later numbers are larger, modulo 2³¹; the lowest bit
/// says whether the page is global there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(u32);

impl Stamp {
    /// The stamp after this one.
    #[must_use]
    pub const fn next(self, is_global: bool) -> Self {
        Self(((self.0 >> 1).wrapping_add(1) << 1) | is_global as u32)
    }

    /// Number of the stamp, as messages have it.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Stamp with this number, from a message.
    #[must_use]
    pub const fn of_number(number: u32) -> Self {
        Self(number)
    }

    /// Returns true if the page is global on the holder.
    #[must_use]
    pub const fn is_global(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns true if the stamp's change happened after the other's.
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        ((self.0 & !1).wrapping_sub(other.0 & !1) as i32) > 0
    }
}

/// A node that holds a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// Number of the node.
    pub node: NodeId,
    /// Generation of the node: its pages are lost when the next one begins.
    pub generation: u32,
    /// The node's last change of this page.
    pub stamp: Stamp,
}

/// A page with one holder: 32 bytes, in one cache line. Further holders are in a chain.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Entry {
    uid: Uid,
    holder: Holder,
    more: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    holder: Holder,
    more: u32,
}

/// Consequence of a change, for the node that keeps the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The page has two global copies: this holder, the later one, drops its copy.
    Discard(NodeId),
    /// Exactly one holder is left.
    Alone(NodeId),
}

/// Part of the directory at one node.
#[derive(Clone, Debug)]
pub struct Directory {
    entries: Vec<Entry>,
    unused: Vec<u32>,
    links: Vec<Link>,
    unused_links: Vec<u32>,
    index: Index,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            unused: Vec::new(),
            links: Vec::new(),
            unused_links: Vec::new(),
            index: Index::with_room(0),
        }
    }
}

impl Directory {
    /// Number of pages with a holder.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns true if no page has a holder.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the directory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let numbers = self.unused.capacity() + self.unused_links.capacity();
        self.entries.capacity() * size_of::<Entry>()
            + self.links.capacity() * size_of::<Link>()
            + numbers * size_of::<u32>()
            + self.index.bytes()
    }

    /// Holders of a page.
    pub fn holders(&self, uid: Uid) -> impl Iterator<Item = Holder> + '_ {
        self.chain(self.slot(uid))
    }

    /// Holders of the page in a slot.
    fn chain(&self, slot: Option<u32>) -> impl Iterator<Item = Holder> + '_ {
        let entry = slot.map(|slot| self.entries[slot as usize]);
        let mut next = entry.map_or(NONE, |entry| entry.more);
        let chain = std::iter::from_fn(move || {
            let link = self.links.get(next as usize)?;
            next = link.more;
            Some(link.holder)
        });
        entry.map(|entry| entry.holder).into_iter().chain(chain)
    }

    /// All pages with their holders, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Uid, Holder)> + '_ {
        let uids = self.entries.iter().map(|entry| entry.uid);
        // An unused entry may repeat the identifier of a used one.
        let used = uids
            .enumerate()
            .filter(move |(at, uid)| self.slot(*uid) == Some(*at as u32));
        used.flat_map(move |(_, uid)| self.holders(uid).map(move |holder| (uid, holder)))
    }

    /// A random holder of the page other than `reader`.
    pub fn holder_for(
        &self,
        uid: Uid,
        reader: NodeId,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<NodeId> {
        let slot = self.slot(uid);
        let others = || self.chain(slot).filter(|holder| holder.node != reader);
        let at = match others().count() {
            0 => return None,
            1 => 0,
            count => below(count as u64, random()) as usize,
        };
        others().nth(at).map(|holder| holder.node)
    }

    /// Enters a holder, unless a later change of the same holder is known, or the page has
    /// [`MOST_HOLDERS`] others.
    pub fn enter(&mut self, uid: Uid, holder: Holder) -> Option<Notice> {
        let Some(slot) = self.slot(uid) else {
            self.add(uid, holder);
            return None;
        };
        let (mut others, mut is_known, mut has_global) = (0, false, false);
        for known in self.chain(Some(slot)) {
            if known.node != holder.node {
                others += 1;
                has_global |= known.stamp.is_global();
            } else if known.generation > holder.generation
                || (known.generation == holder.generation && !holder.stamp.is_after(known.stamp))
            {
                return None;
            } else {
                is_known = true;
            }
        }
        if is_known {
            self.unlink(slot, holder.node);
            self.add(uid, holder);
        } else if others < MOST_HOLDERS {
            self.add_link(slot, holder);
        }
        (has_global && holder.stamp.is_global()).then_some(Notice::Discard(holder.node))
    }

    /// Removes a holder, unless a later change of the same holder is known.
    pub fn leave(&mut self, uid: Uid, holder: Holder) -> Option<Notice> {
        let slot = self.slot(uid)?;
        let known = self
            .chain(Some(slot))
            .find(|known| known.node == holder.node)?;
        let is_old = known.generation > holder.generation
            || (known.generation == holder.generation && known.stamp.is_after(holder.stamp));
        if is_old {
            return None;
        }
        let count = self.chain(Some(slot)).count();
        self.unlink(slot, holder.node);
        // Without its last holder, the slot may serve another page.
        let last = self.chain((count == 2).then_some(slot)).next();
        last.map(|last| Notice::Alone(last.node))
    }

    /// Keeps only the holders for which `keeps` returns true.
    pub fn retain(&mut self, mut keeps: impl FnMut(Uid, &Holder) -> bool) {
        let all: Vec<_> = self.iter().collect();
        for (uid, holder) in all {
            if !keeps(uid, &holder)
                && let Some(slot) = self.slot(uid)
            {
                self.unlink(slot, holder.node);
            }
        }
    }

    /// Prefetches a page's entry, or the line of the index that leads to it.
    pub(super) fn prefetch(&self, uid: Uid, stage: PrefetchStage) {
        let entry = |slot: u32| prefetch(&self.entries[slot as usize]);
        self.index.prefetch(uid, stage, entry);
    }

    #[inline]
    fn slot(&self, uid: Uid) -> Option<u32> {
        let entries = &self.entries;
        self.index.find(uid, |slot| entries[slot as usize].uid)
    }

    /// Adds a holder that the page does not have.
    fn add(&mut self, uid: Uid, holder: Holder) {
        if let Some(slot) = self.slot(uid) {
            return self.add_link(slot, holder);
        }
        let entry = Entry {
            uid,
            holder,
            more: NONE,
        };
        let slot = match self.unused.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                // Doubling would leave half of the entries unused.
                if self.entries.len() == self.entries.capacity() {
                    self.entries.reserve_exact(self.entries.len() / 4 + 16);
                }
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        let entries = &self.entries;
        self.index
            .insert(uid, slot, |slot| entries[slot as usize].uid);
    }

    /// Adds a holder to those in `slot`.
    fn add_link(&mut self, slot: u32, holder: Holder) {
        let more = self.entries[slot as usize].more;
        let link = Link { holder, more };
        let at = match self.unused_links.pop() {
            Some(at) => {
                self.links[at as usize] = link;
                at
            }
            None => {
                self.links.push(link);
                (self.links.len() - 1) as u32
            }
        };
        self.entries[slot as usize].more = at;
    }

    /// Removes a node from the holders in `slot`, and the entry with its last holder.
    fn unlink(&mut self, slot: u32, node: NodeId) {
        let entry = self.entries[slot as usize];
        if entry.holder.node == node {
            match self.links.get(entry.more as usize).copied() {
                Some(link) => {
                    self.unused_links.push(entry.more);
                    self.entries[slot as usize].holder = link.holder;
                    self.entries[slot as usize].more = link.more;
                }
                None => {
                    let entries = &self.entries;
                    self.index
                        .remove(entry.uid, |slot| entries[slot as usize].uid);
                    self.unused.push(slot);
                }
            }
            return;
        }
        let (mut before, mut at) = (NONE, entry.more);
        while let Some(link) = self.links.get(at as usize).copied() {
            if link.holder.node == node {
                match self.links.get_mut(before as usize) {
                    Some(before) => before.more = link.more,
                    None => self.entries[slot as usize].more = link.more,
                }
                self.unused_links.push(at);
                return;
            }
            (before, at) = (at, link.more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_late_message_of_one_holder_changes_nothing_of_another() {
        let (mut directory, uid) = (Directory::default(), Uid::shared(1));
        let first = Stamp::default().next(false);
        let holder = |node, stamp| Holder {
            node,
            generation: 1,
            stamp,
        };
        assert_eq!(directory.enter(uid, holder(1, first)), None);
        assert_eq!(directory.enter(uid, holder(2, first)), None);
        // Node 1 drops the page; the message is late. A second message overtakes it: the page is back.
        let (dropped, back) = (first.next(false), first.next(false).next(true));
        directory.enter(uid, holder(1, back));
        assert_eq!(directory.leave(uid, holder(1, dropped)), None);
        assert_eq!(directory.holders(uid).count(), 2);
        let discard = directory.enter(uid, holder(2, back));
        assert_eq!(discard, Some(Notice::Discard(2)));
        let alone = directory.leave(uid, holder(1, back));
        assert_eq!(alone, Some(Notice::Alone(2)));
        assert_eq!(directory.leave(uid, holder(2, back)), None);
        assert!(directory.is_empty());
    }

    proptest! {
        #[test]
        fn the_directory_is_a_plain_map(
            steps in prop::collection::vec((0..3u8, 0..6u128, 0..12u32, 0..40u32), 0..200),
        ) {
            let mut directory = Directory::default();
            let mut map: BTreeMap<(Uid, NodeId), Holder> = BTreeMap::new();
            for (kind, uid, node, number) in steps {
                let uid = Uid::shared(uid);
                let holder = Holder { node, generation: 0, stamp: Stamp(number * 2) };
                let known = map.get(&(uid, node)).map(|known| known.stamp.0);
                match kind {
                    0 | 1 => {
                        directory.enter(uid, holder);
                        let count = map.keys().filter(|(other, _)| *other == uid).count();
                        let fits = known.map_or(count < MOST_HOLDERS, |known| known < number * 2);
                        if fits {
                            map.insert((uid, node), holder);
                        }
                    }
                    _ => {
                        directory.leave(uid, holder);
                        if known.is_some_and(|known| known <= number * 2) {
                            map.remove(&(uid, node));
                        }
                    }
                }
                let mut all: Vec<_> = directory.iter().collect();
                all.sort();
                let expected: Vec<_> = map.iter().map(|((uid, _), holder)| (*uid, *holder)).collect();
                prop_assert_eq!(all, expected);
            }
            directory.retain(|_, holder| holder.node < 3);
            prop_assert!(directory.iter().all(|(_, holder)| holder.node < 3));
            prop_assert_eq!(directory.iter().count(), map.keys().filter(|(_, node)| *node < 3).count());
        }
    }

    #[test]
    fn an_entry_takes_at_most_64_bytes() {
        for count in [1000_u32, 3073, 4097, 6145, 100_000] {
            let mut directory = Directory::default();
            for n in 0..count {
                directory.enter(Uid::shared(u128::from(n)), Holder::default());
            }
            let bytes = directory.bytes() as f64 / f64::from(count);
            assert!(bytes <= 64.0, "{bytes} bytes of {count} entries");
        }
        assert_eq!(size_of::<Entry>(), 32);
    }
}
