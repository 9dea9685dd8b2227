//! Order of a node's global pages by last use: a heap whose entries have the times, so that it seldom reads frames.

use super::Frame;

/// Children of an entry. Four entries take half of a cache line.
const CHILDREN: usize = 4;

/// Place of a global page in the order.
#[derive(Clone, Copy, Debug)]
struct OldestEntry {
    /// Last use in ms after [`OldestFirst::base_ms`]. Times outside of 32 bits, 24 days, are the nearest end.
    last_use: i32,
    /// Frame of the page.
    slot: u32,
}

/// Frames of global pages; the first one has the page with the earliest last use, and of equals the one with the
/// lowest identifier. A frame's `heap_at` is its place here. Eight bytes per page.
#[derive(Clone, Debug, Default)]
pub(super) struct OldestFirst {
    /// Heap: no entry comes before its parent. The children of entry i are the four from 4 i + 1 on.
    entries: Vec<OldestEntry>,
    base_ms: i64,
}

impl OldestFirst {
    /// Number of pages.
    pub(super) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Bytes of the entries.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<OldestEntry>()
    }

    /// Frames of all pages, in no order.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|entry| entry.slot)
    }

    /// Last uses of all pages in ms, in no order. Frames are read only for times outside of the entries' 32 bits.
    pub(super) fn last_uses_ms<'a>(
        &'a self,
        frames: &'a [Frame],
    ) -> impl Iterator<Item = i64> + 'a {
        self.entries.iter().map(move |entry| match entry.last_use {
            i32::MIN | i32::MAX => frames[entry.slot as usize].last_use_ms,
            last_use => self.base_ms.saturating_add(i64::from(last_use)),
        })
    }

    /// Frame of the oldest page.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.entries.first().map(|entry| entry.slot)
    }

    /// Adds the page in a frame.
    pub(super) fn push(&mut self, slot: u32, frames: &mut [Frame]) {
        let entry = self.entry(slot, frames);
        // Doubling would leave half of the entries unused.
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 4 + 16);
        }
        self.entries.push(entry);
        self.sift_up(self.entries.len() - 1, frames);
    }

    /// Removes the page at a place.
    pub(super) fn remove(&mut self, at: u32, frames: &mut [Frame]) {
        let at = at as usize;
        if let Some(last) = self.entries.pop()
            && at < self.entries.len()
        {
            self.entries[at] = last;
            self.sift_up(at, frames);
            self.sift_down(at, frames);
        }
    }

    /// Moves a page to its place after a later use.
    pub(super) fn refresh(&mut self, slot: u32, frames: &mut [Frame]) {
        let entry = self.entry(slot, frames);
        let at = frames[slot as usize].heap_at as usize;
        self.entries[at] = entry;
        self.sift_down(at, frames);
    }

    /// Entry of the page in a frame. The base follows the latest use, so that recent times are distinct.
    fn entry(&mut self, slot: u32, frames: &[Frame]) -> OldestEntry {
        let last_use_ms = frames[slot as usize].last_use_ms;
        if self.entries.is_empty() || last_use_ms.saturating_sub(self.base_ms) > i64::from(i32::MAX)
        {
            self.base_ms = last_use_ms;
            for entry in &mut self.entries {
                entry.last_use = after(last_use_ms, frames[entry.slot as usize].last_use_ms);
            }
        }
        OldestEntry {
            last_use: after(self.base_ms, last_use_ms),
            slot,
        }
    }

    /// Stores an entry at a place, which its frame then has.
    fn place(&mut self, at: usize, entry: OldestEntry, frames: &mut [Frame]) {
        self.entries[at] = entry;
        frames[entry.slot as usize].heap_at = at as u32;
    }

    fn sift_up(&mut self, mut at: usize, frames: &mut [Frame]) {
        let entry = self.entries[at];
        while at > 0 {
            let above = (at - 1) / CHILDREN;
            let parent = self.entries[above];
            if !is_before(entry, parent, frames) {
                break;
            }
            self.place(at, parent, frames);
            at = above;
        }
        self.place(at, entry, frames);
    }

    fn sift_down(&mut self, mut at: usize, frames: &mut [Frame]) {
        let entry = self.entries[at];
        loop {
            let (mut first_at, mut first) = (at, entry);
            let begin = CHILDREN * at + 1;
            for child in begin..(begin + CHILDREN).min(self.entries.len()) {
                if is_before(self.entries[child], first, frames) {
                    (first_at, first) = (child, self.entries[child]);
                }
            }
            if first_at == at {
                break;
            }
            self.place(at, first, frames);
            at = first_at;
        }
        self.place(at, entry, frames);
    }
}

/// Time from the base to a last use in ms, or the nearest number of 32 bits: a later use never has a lower number.
fn after(base_ms: i64, last_use_ms: i64) -> i32 {
    let after_ms = last_use_ms.saturating_sub(base_ms);
    i32::try_from(after_ms).unwrap_or(if after_ms < 0 { i32::MIN } else { i32::MAX })
}

/// Returns true if the first of two pages was used earlier. Frames are read only for equal times.
#[inline]
fn is_before(a: OldestEntry, b: OldestEntry, frames: &[Frame]) -> bool {
    if a.last_use != b.last_use {
        return a.last_use < b.last_use;
    }
    let key = |entry: OldestEntry| frames[entry.slot as usize].key();
    key(a) < key(b)
}
