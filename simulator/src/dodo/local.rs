//! Part of the data that the client's own memory holds.

use gleaner_policy::eviction::Lru;

/// A cache of blocks, the least recently used first out.
#[derive(Clone, Debug)]
pub(super) struct Local {
    order: Lru,
    blocks: u32,
    room: u32,
}

impl Local {
    /// For data of `blocks`, with room for some of them.
    pub(super) fn new(blocks: u32, room: u32) -> Self {
        Self {
            order: Lru::new(blocks),
            blocks,
            room,
        }
    }

    /// Whether it has all of `count` blocks from `first` on, which are used by it.
    pub(super) fn has(&mut self, first: u32, count: u32) -> bool {
        let has_all = (first..first + count).all(|block| self.order.contains(block));
        if has_all {
            self.order.touch_run(first, count);
        }
        has_all
    }

    /// Takes them in.
    pub(super) fn keep(&mut self, first: u32, count: u32) {
        if self.room > 0 {
            self.order.touch_run(first, count);
            self.order.shrink(self.room);
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.order = Lru::new(self.blocks);
    }
}
