//! Page frame directory (PFD) of one node: its frames by identifier, and their order by last use.

mod oldest;

use super::age::{INFINITE_MS, Summary, age_ms};
use super::index::Index;
use super::prefetch::{PrefetchStage, prefetch};
use super::uid::Uid;
use crate::eviction::Lru;
use oldest::OldestFirst;

/// Kind of a page on the node that holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Used by this node; no other copy is known.
    #[default]
    Local,
    /// Used by this node; another node has a copy, too.
    Duplicate,
    /// Held for other nodes.
    Global,
}

/// A page and the figures by which it is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Identifier of the page.
    pub uid: Uid,
    /// Time of the last use, on the clock of the node that holds the page.
    pub last_use_ms: i64,
    /// Kind on this node.
    pub kind: Kind,
    /// N-chance: number of times that the page may still be forwarded.
    pub chances: u8,
}

impl Page {
    /// Age at `at_ms`, boosted if the page is global.
    #[must_use]
    pub fn age_ms(&self, boost_quarters: u32, at_ms: i64) -> u64 {
        let is_global = self.kind == Kind::Global;
        age_ms(self.last_use_ms, is_global, boost_quarters, at_ms)
    }
}

/// Place of a local page's frame, which is not in the heap of global pages.
const OUT: u32 = u32::MAX;
/// Place of a frame without a page.
const UNUSED: u32 = u32::MAX - 1;

/// A page and its place in the heap of global pages: 32 bytes, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Frame {
    uid: Uid,
    last_use_ms: i64,
    heap_at: u32,
    kind: Kind,
    chances: u8,
}

impl Frame {
    /// Order of the heap: last use, then identifier, so that equal histories evict equal pages.
    fn key(&self) -> (i64, Uid) {
        (self.last_use_ms, self.uid)
    }
}

/// Pages on one node. Local pages are in the order of their last use; global pages, which arrive with ages of
/// their own, are in a heap.
#[derive(Clone, Debug)]
pub struct Pages {
    frames: Vec<Frame>,
    index: Index,
    local: Lru,
    /// Frames of the global pages.
    heap: OldestFirst,
    /// Frames below `frames.len()` without a page.
    unused: Vec<u32>,
    limit: u32,
    duplicates: u32,
    /// Interval in which only the first use of a local page is seen, and the begin of the present one.
    age_period_ms: i64,
    period_begun_ms: i64,
}

impl Pages {
    /// Directory without pages, for `limit` frames (at most 2³¹), which sees every use.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self::with_age_period(limit, 0)
    }

    /// Directory that sees only the first use of a local page in each interval of `age_period_ms`; 0: every use.
    #[must_use]
    pub fn with_age_period(limit: u32, age_period_ms: i64) -> Self {
        let limit = limit.min(1 << 31);
        Self {
            frames: Vec::with_capacity(limit as usize),
            index: Index::with_room(limit as usize),
            local: Lru::new(limit),
            heap: OldestFirst::default(),
            unused: Vec::new(),
            limit,
            duplicates: 0,
            age_period_ms,
            period_begun_ms: i64::MIN,
        }
    }

    /// Changes the number of frames. The caller evicts pages while [`Pages::is_over`].
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit.min(1 << 31);
        self.local.grow(self.limit);
    }

    /// Number of frames.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.index.len() as u32
    }

    /// Returns true if the node has no pages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of global pages.
    #[must_use]
    pub fn global_count(&self) -> u32 {
        self.heap.len()
    }

    /// Number of pages that this node uses itself.
    #[must_use]
    pub fn local_count(&self) -> u32 {
        self.len() - self.global_count()
    }

    /// Returns true if no frame is free.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// Returns true if there are more pages than frames.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.len() > self.limit
    }

    /// Bytes of the directory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>()
            + self.index.bytes()
            + self.heap.bytes()
            + self.unused.capacity() * size_of::<u32>()
            + self.frames.len().max(self.limit as usize) * 8 // two links of `Lru`
    }

    /// Page with that identifier.
    #[must_use]
    pub fn get(&self, uid: Uid) -> Option<Page> {
        self.slot(uid).map(|slot| self.page(slot))
    }

    /// All pages: local ones by last use, then global ones in no order.
    pub fn iter(&self) -> impl Iterator<Item = Page> + '_ {
        let slots = self.local.coldest().chain(self.heap.slots());
        slots.map(move |slot| self.page(slot))
    }

    /// Records a use by this node at `now_ms`, which makes a global page local. Returns the page's kind
    /// before, or `None` if the node does not hold the page. The last use of a local page stays as it is if this
    /// interval has seen a use already.
    #[inline]
    pub fn touch(&mut self, uid: Uid, now_ms: i64) -> Option<Kind> {
        let slot = self.slot(uid)?;
        let kind = self.frames[slot as usize].kind;
        if kind == Kind::Global {
            self.leave_heap(slot);
            self.frames[slot as usize].kind = Kind::Local;
        } else if self.age_period_ms > 0 && self.is_seen(slot, now_ms) {
            return Some(kind);
        }
        self.local.touch(slot);
        self.frames[slot as usize].last_use_ms = now_ms;
        Some(kind)
    }

    /// Returns true if the page's last use lies in the present interval.
    fn is_seen(&mut self, slot: u32, now_ms: i64) -> bool {
        if now_ms.saturating_sub(self.period_begun_ms) >= self.age_period_ms {
            self.period_begun_ms = now_ms - now_ms.rem_euclid(self.age_period_ms);
        }
        self.frames[slot as usize].last_use_ms >= self.period_begun_ms
    }

    /// Holds a local page for other nodes from now on: it becomes global, and keeps its last use.
    pub fn hold(&mut self, uid: Uid) {
        let Some(slot) = self.slot(uid) else {
            return;
        };
        let frame = &mut self.frames[slot as usize];
        match std::mem::replace(&mut frame.kind, Kind::Global) {
            Kind::Global => return,
            Kind::Duplicate => self.duplicates -= 1,
            Kind::Local => {}
        }
        self.local.remove(slot);
        self.heap.push(slot, &mut self.frames);
    }

    /// Makes the last use of a global page at least `last_use_ms`. Other pages stay as they are.
    pub fn refresh(&mut self, uid: Uid, last_use_ms: i64) {
        let Some(slot) = self.slot(uid) else {
            return;
        };
        let frame = &mut self.frames[slot as usize];
        if frame.kind == Kind::Global && frame.last_use_ms < last_use_ms {
            frame.last_use_ms = last_use_ms;
            self.heap.refresh(slot, &mut self.frames);
        }
    }

    /// Marks a local page as duplicate, or as the only copy. Global pages stay as they are.
    pub fn mark_duplicate(&mut self, uid: Uid, is_duplicate: bool) {
        let Some(slot) = self.slot(uid) else {
            return;
        };
        let frame = &mut self.frames[slot as usize];
        match (frame.kind, is_duplicate) {
            (Kind::Local, true) => {
                frame.kind = Kind::Duplicate;
                self.duplicates += 1;
            }
            (Kind::Duplicate, false) => {
                frame.kind = Kind::Local;
                self.duplicates -= 1;
            }
            _ => {}
        }
    }

    /// Adds a page. Returns false, and changes nothing, if no frame is free or the node holds the page.
    ///
    /// A local page must have been used no earlier than every other local page.
    pub fn insert(&mut self, page: Page) -> bool {
        if self.is_full() || self.slot(page.uid).is_some() {
            return false;
        }
        let frame = Frame {
            uid: page.uid,
            last_use_ms: page.last_use_ms,
            heap_at: OUT,
            kind: page.kind,
            chances: page.chances,
        };
        let slot = match self.unused.pop() {
            Some(slot) => {
                self.frames[slot as usize] = frame;
                slot
            }
            None => {
                self.frames.push(frame);
                (self.frames.len() - 1) as u32
            }
        };
        let frames = &self.frames;
        self.index
            .insert(page.uid, slot, |slot| frames[slot as usize].uid);
        match page.kind {
            Kind::Global => self.heap.push(slot, &mut self.frames),
            Kind::Local => self.local.touch(slot),
            Kind::Duplicate => {
                self.local.touch(slot);
                self.duplicates += 1;
            }
        }
        true
    }

    /// Removes a page, and returns it.
    pub fn remove(&mut self, uid: Uid) -> Option<Page> {
        let frames = &self.frames;
        let slot = self.index.remove(uid, |slot| frames[slot as usize].uid)?;
        let page = self.page(slot);
        match page.kind {
            Kind::Global => self.leave_heap(slot),
            Kind::Local => self.local.remove(slot),
            Kind::Duplicate => {
                self.local.remove(slot);
                self.duplicates -= 1;
            }
        }
        self.frames[slot as usize].heap_at = UNUSED;
        self.unused.push(slot);
        Some(page)
    }

    /// Least recently used local page, duplicates included.
    #[must_use]
    pub fn oldest_local(&self) -> Option<Page> {
        self.local.coldest().next().map(|slot| self.page(slot))
    }

    /// Least recently used duplicate. Takes a walk over the local pages that are older.
    #[must_use]
    pub fn oldest_duplicate(&self) -> Option<Page> {
        if self.duplicates == 0 {
            return None;
        }
        let mut pages = self.local.coldest().map(|slot| self.page(slot));
        pages.find(|page| page.kind == Kind::Duplicate)
    }

    /// Least recently used global page.
    #[must_use]
    pub fn oldest_global(&self) -> Option<Page> {
        self.heap.oldest().map(|slot| self.page(slot))
    }

    /// Page with the largest age at `at_ms`; of equals, the global one.
    #[must_use]
    pub fn oldest(&self, boost_quarters: u32, at_ms: i64) -> Option<Page> {
        match (self.oldest_global(), self.oldest_local()) {
            (Some(global), Some(local)) => {
                let age_ms = |page: &Page| page.age_ms(boost_quarters, at_ms);
                Some(if age_ms(&global) >= age_ms(&local) {
                    global
                } else {
                    local
                })
            }
            (global, local) => global.or(local),
        }
    }

    /// Age of the node's oldest frame at `at_ms`: a free frame is older than every page. `None` if the node
    /// has no frames.
    #[must_use]
    pub fn oldest_age_ms(&self, boost_quarters: u32, at_ms: i64) -> Option<u64> {
        if !self.is_full() {
            return Some(INFINITE_MS);
        }
        let oldest = self.oldest(boost_quarters, at_ms);
        oldest.map(|page| page.age_ms(boost_quarters, at_ms))
    }

    /// Distribution of all frames by age at `at_ms`; its other counts are 0.
    #[must_use]
    pub fn summary(&self, boost_quarters: u32, at_ms: i64) -> Summary {
        let mut summary = Summary {
            free_frames: self.limit.saturating_sub(self.len()),
            ..Summary::default()
        };
        // In the order of memory: by last use, every page would be a cache miss. The heap has a quarter of the
        // frames' size, and idle nodes have no other pages.
        let global = self.heap.last_uses_ms(&self.frames);
        summary
            .count_all(global.map(|last_use_ms| age_ms(last_use_ms, true, boost_quarters, at_ms)));
        if self.len() > self.global_count() {
            let local = self.frames.iter().filter(|frame| frame.heap_at == OUT);
            summary.count_all(
                local.map(|frame| age_ms(frame.last_use_ms, false, boost_quarters, at_ms)),
            );
        }
        summary
    }

    /// Prefetches the frame of the oldest global page, or the line of the index that leads to it, which is read when
    /// the page leaves.
    pub(super) fn prefetch_oldest_global(&self, stage: PrefetchStage) {
        let Some(slot) = self.heap.oldest() else {
            return;
        };
        let frame = &self.frames[slot as usize];
        match stage {
            PrefetchStage::Index => prefetch(frame),
            PrefetchStage::Page => self.prefetch(frame.uid, PrefetchStage::Index),
        }
    }

    /// Prefetches a page's frame, or the line of the index that leads to it.
    pub(super) fn prefetch(&self, uid: Uid, stage: PrefetchStage) {
        let frame = |slot: u32| prefetch(&self.frames[slot as usize]);
        self.index.prefetch(uid, stage, frame);
    }

    #[inline]
    fn slot(&self, uid: Uid) -> Option<u32> {
        let frames = &self.frames;
        self.index.find(uid, |slot| frames[slot as usize].uid)
    }

    fn page(&self, slot: u32) -> Page {
        let frame = &self.frames[slot as usize];
        Page {
            uid: frame.uid,
            last_use_ms: frame.last_use_ms,
            kind: frame.kind,
            chances: frame.chances,
        }
    }

    fn leave_heap(&mut self, slot: u32) {
        let at = self.frames[slot as usize].heap_at;
        self.frames[slot as usize].heap_at = OUT;
        self.heap.remove(at, &mut self.frames);
    }
}

#[cfg(test)]
mod tests;
