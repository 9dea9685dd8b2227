//! Part of the data that the client's own memory holds.

/// Last use of a block that is not held.
const NEVER_USED: u32 = u32::MAX;
/// Recorded uses per held block at most: the more, the less often uses are moved.
const USES_A_BLOCK: usize = 4;

/// A cache of blocks, the least recently used first out.
///
/// The order of blocks is a list of their uses, in which each block's last use counts and the others are skipped. A use is thus
/// written at the list's end, and eviction reads from its begin: neither waits for memory, as the links of a queue would.
#[derive(Clone, Debug)]
pub(super) struct Local {
    /// Blocks by use, from the oldest use on.
    uses: Vec<u32>,
    /// Place of the oldest use in `uses` that is not taken out.
    oldest: usize,
    /// Place in `uses` of each block's last use, or [`NEVER_USED`].
    last_use: Vec<u32>,
    /// A bit for each block, set while the block is held. These bits answer most questions, and stay in the processor's cache.
    is_held: Vec<u64>,
    held: usize,
    room: usize,
}

impl Local {
    /// Empty cache for data of `blocks` blocks, with room for some of them.
    pub(super) fn new(blocks: u32, room: u32) -> Self {
        Self {
            uses: Vec::new(),
            oldest: 0,
            last_use: vec![NEVER_USED; blocks as usize],
            is_held: vec![0; blocks.div_ceil(u64::BITS) as usize],
            held: 0,
            room: room.min(blocks) as usize,
        }
    }

    /// Returns true if all of the `count` blocks from `first` on are held, and records their use.
    #[inline]
    pub(super) fn has(&mut self, first: u32, count: u32) -> bool {
        let has_all = (first..first + count).all(|block| self.holds(block));
        if has_all {
            self.use_blocks(first, count);
        }
        has_all
    }

    /// Adds these blocks to the cache.
    #[inline]
    pub(super) fn keep(&mut self, first: u32, count: u32) {
        if self.room == 0 {
            return;
        }
        self.use_blocks(first, count);
        while self.held > self.room {
            let block = self.uses[self.oldest];
            if self.last_use[block as usize] as usize == self.oldest {
                self.last_use[block as usize] = NEVER_USED;
                self.is_held[(block / u64::BITS) as usize] &= !bit(block);
                self.held -= 1;
            }
            self.oldest += 1;
        }
    }

    /// Drops all cached blocks.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.last_use.len() as u32, self.room as u32);
    }

    #[inline]
    fn use_blocks(&mut self, first: u32, count: u32) {
        if self.uses.len() >= (self.room + count as usize) * USES_A_BLOCK {
            self.drop_old_uses();
        }
        let end = first.saturating_add(count).min(self.last_use.len() as u32);
        for block in first..end {
            self.held += usize::from(!self.holds(block));
            self.is_held[(block / u64::BITS) as usize] |= bit(block);
            self.last_use[block as usize] = self.uses.len() as u32;
            self.uses.push(block);
        }
    }

    /// Keeps the last uses of held blocks alone, in their order.
    #[cold]
    fn drop_old_uses(&mut self) {
        let mut kept = 0;
        for at in self.oldest..self.uses.len() {
            let block = self.uses[at];
            if self.last_use[block as usize] as usize == at {
                self.uses[kept] = block;
                self.last_use[block as usize] = kept as u32;
                kept += 1;
            }
        }
        self.uses.truncate(kept);
        self.oldest = 0;
    }

    #[inline]
    fn holds(&self, block: u32) -> bool {
        let bits = self.is_held.get((block / u64::BITS) as usize);
        bits.is_some_and(|bits| bits & bit(block) != 0)
    }
}

const fn bit(block: u32) -> u64 {
    1 << (block % u64::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Has(u32, u32),
        Keep(u32, u32),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0u32..24, 1u32..4).prop_map(|(first, count)| Step::Has(first, count)),
            8 => (0u32..24, 1u32..4).prop_map(|(first, count)| Step::Keep(first, count)),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn the_least_recently_used_block_leaves_first(
            room in 0u32..9,
            steps in prop::collection::vec(step(), 0..300),
        ) {
            const BLOCKS: u32 = 26;
            let mut local = Local::new(BLOCKS, room);
            let mut list: Vec<u32> = Vec::new();
            for step in steps {
                match step {
                    Step::Has(first, count) => {
                        let blocks = first..first + count;
                        let has_all = blocks.clone().all(|block| list.contains(&block));
                        prop_assert_eq!(local.has(first, count), has_all);
                        if has_all {
                            list.retain(|block| !blocks.contains(block));
                            list.extend(blocks);
                        }
                    }
                    Step::Keep(first, count) => {
                        let blocks = first..(first + count).min(BLOCKS);
                        local.keep(first, count);
                        list.retain(|block| !blocks.contains(block));
                        list.extend(blocks);
                        list.drain(..list.len().saturating_sub(room as usize));
                    }
                    Step::Clear => {
                        local.clear();
                        list.clear();
                    }
                }
                let held = (0..BLOCKS).filter(|block| local.holds(*block));
                let mut sorted = list.clone();
                sorted.sort_unstable();
                prop_assert_eq!(held.collect::<Vec<_>>(), sorted);
                prop_assert!(local.uses.len() <= (room as usize + 4) * USES_A_BLOCK + 4);
            }
        }
    }
}
