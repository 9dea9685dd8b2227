//! Blocks in local memory. When memory is full, the block that was used least recently leaves.

use super::Block;
use crate::catalog::Hash;
use std::collections::HashMap;

/// Index of no frame.
const NONE: usize = usize::MAX;

/// Blocks of local memory, with the time of each block's last use.
pub struct LocalMemory {
    most_bytes: u64,
    bytes: u64,
    places: HashMap<Hash, usize>,
    /// Frames form a list from the block used last to the block used least recently.
    frames: Vec<Frame>,
    newest: usize,
    oldest: usize,
}

struct Frame {
    hash: Hash,
    block: Block,
    last_use_ms: i64,
    newer: usize,
    older: usize,
}

impl LocalMemory {
    /// Makes an empty memory for `most_bytes` bytes of blocks.
    #[must_use]
    pub fn new(most_bytes: u64) -> Self {
        Self {
            most_bytes,
            bytes: 0,
            places: HashMap::new(),
            frames: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Uses a block: returns it, and the time since its last use in ms.
    pub fn get(&mut self, hash: &Hash, now_ms: i64) -> Option<(Block, u64)> {
        let at = *self.places.get(hash)?;
        self.unlink(at);
        self.link_newest(at);
        let frame = self.frames.get_mut(at)?;
        let age_ms = u64::try_from(now_ms.saturating_sub(frame.last_use_ms)).unwrap_or(0);
        frame.last_use_ms = now_ms;
        Some((Block::clone(&frame.block), age_ms))
    }

    /// Returns a block; this is no use of it.
    #[must_use]
    pub fn peek(&self, hash: &Hash) -> Option<Block> {
        let frame = self.frames.get(*self.places.get(hash)?)?;
        Some(Block::clone(&frame.block))
    }

    /// Removes the block that was used least recently.
    pub fn remove_oldest(&mut self) {
        if self.oldest != NONE {
            self.remove(self.oldest);
        }
    }

    /// Returns true if the block is in memory; this is no use of it.
    #[must_use]
    pub fn contains(&self, hash: &Hash) -> bool {
        self.places.contains_key(hash)
    }

    /// Adds a block as the one that was used last. Older blocks leave until all fit; a block larger than the
    /// whole memory is not added.
    pub fn insert(&mut self, hash: Hash, block: Block, now_ms: i64) {
        let bytes = block.len() as u64;
        if bytes > self.most_bytes || self.get(&hash, now_ms).is_some() {
            return;
        }
        while self.bytes + bytes > self.most_bytes && self.oldest != NONE {
            self.remove(self.oldest);
        }
        self.bytes += bytes;
        self.places.insert(hash, self.frames.len());
        self.frames.push(Frame {
            hash,
            block,
            last_use_ms: now_ms,
            newer: NONE,
            older: NONE,
        });
        self.link_newest(self.frames.len() - 1);
    }

    /// Number of blocks in memory.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames.len() as u64
    }

    /// Bytes of all blocks in memory.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Hashes of the blocks in memory, the block used last first.
    pub fn by_last_use(&self) -> impl Iterator<Item = &Hash> {
        let mut at = self.newest;
        std::iter::from_fn(move || {
            let frame = self.frames.get(at)?;
            at = frame.older;
            Some(&frame.hash)
        })
    }

    fn remove(&mut self, at: usize) {
        self.unlink(at);
        let frame = self.frames.swap_remove(at);
        self.places.remove(&frame.hash);
        self.bytes -= frame.block.len() as u64;
        // The last frame now has the removed one's index.
        let Some((hash, newer, older)) = self.frames.get(at).map(|f| (f.hash, f.newer, f.older))
        else {
            return;
        };
        self.places.insert(hash, at);
        self.set_older(newer, at);
        self.set_newer(older, at);
    }

    fn unlink(&mut self, at: usize) {
        let Some((newer, older)) = self.frames.get(at).map(|f| (f.newer, f.older)) else {
            return;
        };
        self.set_older(newer, older);
        self.set_newer(older, newer);
    }

    fn link_newest(&mut self, at: usize) {
        let second = self.newest;
        if let Some(frame) = self.frames.get_mut(at) {
            (frame.newer, frame.older) = (NONE, second);
        }
        self.set_newer(second, at);
        self.newest = at;
    }

    /// Sets the frame after `of`; if `of` is none, the first of the list.
    fn set_older(&mut self, of: usize, older: usize) {
        match self.frames.get_mut(of) {
            Some(frame) => frame.older = older,
            None => self.newest = older,
        }
    }

    /// Sets the frame before `of`; if `of` is none, the last of the list.
    fn set_newer(&mut self, of: usize, newer: usize) {
        match self.frames.get_mut(of) {
            Some(frame) => frame.newer = newer,
            None => self.oldest = newer,
        }
    }
}
