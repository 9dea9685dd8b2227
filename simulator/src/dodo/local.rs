//! The client's own memory, as a cache of the program's blocks.

/// Value of `last_use` for a block that is not held.
const NEVER_USED: u32 = u32::MAX;
/// Maximum number of recorded uses per held block. A larger number makes `drop_old_uses` run less often.
const USES_A_BLOCK: usize = 4;

/// Use of consecutive blocks, in ascending order; at least one block.
#[derive(Clone, Copy, Debug)]
struct Use {
    first: u32,
    count: u32,
}

/// A cache of blocks that evicts the least recently used block first.
///
/// The order of eviction is a list of uses. Of each block only the last use counts; earlier uses are skipped.
/// A use is written at the list's end, and eviction reads from its begin, so neither waits for memory, as
/// following the links of a queue would.
#[derive(Clone, Debug)]
pub(super) struct Local {
    /// All uses, from the oldest on.
    uses: Vec<Use>,
    /// Index in `uses` of the oldest use that is not completely evicted.
    oldest: usize,
    /// Number of blocks of the oldest use that are already evicted.
    taken_out: u32,
    /// Index in `uses` of each block's last use, or [`NEVER_USED`].
    last_use: Vec<u32>,
    /// Bit of each block, set while the block is held. These bits answer most look-ups, and stay in the
    /// processor's cache.
    is_held: Vec<u64>,
    held: usize,
    room: usize,
}

impl Local {
    /// Makes an empty cache for data of `blocks` blocks that can hold `room` of them.
    pub(super) fn new(blocks: u32, room: u32) -> Self {
        Self {
            uses: Vec::new(),
            oldest: 0,
            taken_out: 0,
            last_use: vec![NEVER_USED; blocks as usize],
            is_held: vec![0; blocks.div_ceil(u64::BITS) as usize],
            held: 0,
            room: room.min(blocks) as usize,
        }
    }

    /// Returns true if all of the `count` blocks from `first` on are held, and records their use.
    #[inline]
    pub(super) fn has(&mut self, first: u32, count: u32) -> bool {
        let are_held = |(word, mask): (usize, u64)| {
            let bits = self.is_held.get(word);
            bits.is_some_and(|bits| bits & mask == mask)
        };
        let has_all = match count {
            1 => are_held(((first / u64::BITS) as usize, 1 << (first % u64::BITS))),
            _ => words(first, first + count).all(are_held),
        };
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
            let Use { first, count } = self.uses[self.oldest];
            let block = first + self.taken_out;
            if self.last_use[block as usize] as usize == self.oldest {
                self.last_use[block as usize] = NEVER_USED;
                self.is_held[(block / u64::BITS) as usize] &= !(1 << (block % u64::BITS));
                self.held -= 1;
            }
            self.taken_out += 1;
            if self.taken_out == count {
                self.taken_out = 0;
                self.oldest += 1;
            }
        }
    }

    /// Drops all cached blocks.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.last_use.len() as u32, self.room as u32);
    }

    #[inline]
    fn use_blocks(&mut self, first: u32, count: u32) {
        if self.uses.len() > self.room * USES_A_BLOCK {
            self.drop_old_uses();
        }
        let end = first.saturating_add(count).min(self.last_use.len() as u32);
        if first >= end {
            return;
        }
        let this_use = self.uses.len() as u32;
        if end - first == 1 {
            // Most programs use single blocks, so this case avoids the loops.
            let bits = &mut self.is_held[(first / u64::BITS) as usize];
            let mask = 1 << (first % u64::BITS);
            self.held += usize::from(*bits & mask == 0);
            *bits |= mask;
            self.last_use[first as usize] = this_use;
        } else {
            for (word, mask) in words(first, end) {
                let bits = &mut self.is_held[word];
                self.held += (mask & !*bits).count_ones() as usize;
                *bits |= mask;
            }
            self.last_use[first as usize..end as usize].fill(this_use);
        }
        let count = end - first;
        self.uses.push(Use { first, count });
    }

    /// Removes all uses except those that are the last use of a held block; their order stays.
    #[cold]
    fn drop_old_uses(&mut self) {
        let mut kept = 0;
        for at in self.oldest..self.uses.len() {
            let mut used = self.uses[at];
            if at == self.oldest {
                used.first += self.taken_out;
                used.count -= self.taken_out;
            }
            let blocks = used.first as usize..(used.first + used.count) as usize;
            let mut is_last = false;
            for last in &mut self.last_use[blocks] {
                if *last as usize == at {
                    *last = kept as u32;
                    is_last = true;
                }
            }
            if is_last {
                self.uses[kept] = used;
                kept += 1;
            }
        }
        self.uses.truncate(kept);
        self.oldest = 0;
        self.taken_out = 0;
    }
}

/// Words of `is_held` that contain blocks from `first` to `end`, each with a mask of these blocks' bits.
#[inline]
fn words(first: u32, end: u32) -> impl Iterator<Item = (usize, u64)> {
    let mut block = first;
    std::iter::from_fn(move || {
        let from = block;
        (from < end).then(|| {
            let word = from / u64::BITS;
            block = end.min((word + 1).saturating_mul(u64::BITS));
            let mask = (u64::MAX >> (u64::BITS - (block - from))) << (from % u64::BITS);
            (word as usize, mask)
        })
    })
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
            8 => (52u32..76, 1u32..4).prop_map(|(first, count)| Step::Has(first, count)),
            8 => (52u32..76, 1u32..4).prop_map(|(first, count)| Step::Keep(first, count)),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn the_least_recently_used_block_leaves_first(
            room in 0u32..9,
            steps in prop::collection::vec(step(), 0..300),
        ) {
            const BLOCKS: u32 = 78; // their bits are in two words
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
                let held = (0..BLOCKS).filter(|block| local.is_held[(block / 64) as usize] & (1 << (block % 64)) != 0);
                let mut sorted = list.clone();
                sorted.sort_unstable();
                prop_assert_eq!(held.collect::<Vec<_>>(), sorted);
                prop_assert!(local.uses.len() <= room as usize * USES_A_BLOCK + 1);
            }
        }
    }
}
