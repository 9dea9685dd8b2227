//! Blocks that this host holds for others: in memory of its own ([`Hold`], when the full memory drops the block
//! that was used least recently), or in leases of its memory server ([`LeasePool`]).

mod announced;
mod keeper;
mod lease;
mod pool;

pub use keeper::{HoldSettings, LeaseKeeper};
pub use lease::Slot;
pub use pool::{LeasePool, PoolCounters};

use crate::catalog::Hash;
use crate::store::{Block, LocalMemory, checked};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Share of the memory for which one block counts at least: very small blocks would otherwise cost more
/// memory for their entries than for their bytes.
const LEAST_BYTES_PER_BLOCK: u64 = 4 << 10;

/// Result of storing a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutResult {
    /// The block was added.
    Stored,
    /// The block was there already.
    Known,
    /// The bytes have another hash.
    Differs,
    /// The block is larger than the whole memory.
    NoRoom,
}

/// Figures of the blocks that are held for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HoldCounters {
    /// Maximum bytes of blocks held for others.
    pub hold_size_bytes: u64,
    /// Bytes of the blocks held for others.
    pub hold_used_bytes: u64,
    /// Blocks held for others.
    pub hold_frames_count: u64,
    /// Blocks that were added since the start.
    pub stored_blocks_count: u64,
    /// Blocks that were rejected because their bytes have another hash.
    pub rejected_blocks_count: u64,
    /// Blocks that were rejected for lack of room.
    pub no_room_count: u64,
}

/// Bounded memory for other hosts' blocks.
pub struct Hold {
    size_bytes: u64,
    blocks: Mutex<LocalMemory>,
    begin: Instant,
    stored: AtomicU64,
    rejected: AtomicU64,
    no_room: AtomicU64,
}

impl Hold {
    /// Makes an empty memory for `size_bytes` bytes of blocks.
    #[must_use]
    pub fn new(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            blocks: Mutex::new(LocalMemory::new(size_bytes)),
            begin: Instant::now(),
            stored: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            no_room: AtomicU64::new(0),
        }
    }

    /// Uses a block, if it is held.
    #[must_use]
    pub fn get(&self, hash: &Hash) -> Option<Block> {
        let now_ms = self.now_ms();
        self.lock().get(hash, now_ms).map(|(block, _)| block)
    }

    /// Stores bytes that another host sent, if they have this hash.
    pub fn put(&self, hash: &Hash, bytes: Vec<u8>) -> PutResult {
        if bytes.len() as u64 > self.size_bytes {
            self.no_room.fetch_add(1, Ordering::Relaxed);
            return PutResult::NoRoom;
        }
        if self.lock().contains(hash) {
            return PutResult::Known;
        }
        match checked(hash, bytes) {
            Some(block) => self.put_checked(hash, block),
            None => {
                self.rejected.fetch_add(1, Ordering::Relaxed);
                PutResult::Differs
            }
        }
    }

    /// Stores a block whose hash was checked.
    pub fn put_checked(&self, hash: &Hash, block: Block) -> PutResult {
        if block.len() as u64 > self.size_bytes {
            self.no_room.fetch_add(1, Ordering::Relaxed);
            return PutResult::NoRoom;
        }
        let now_ms = self.now_ms();
        let mut blocks = self.lock();
        if blocks.get(hash, now_ms).is_some() {
            return PutResult::Known;
        }
        if (blocks.frames() + 1).saturating_mul(LEAST_BYTES_PER_BLOCK) > self.size_bytes {
            blocks.remove_oldest();
        }
        blocks.insert(*hash, block, now_ms);
        drop(blocks);
        self.stored.fetch_add(1, Ordering::Relaxed);
        PutResult::Stored
    }

    /// Figures since the start.
    #[must_use]
    pub fn counters(&self) -> HoldCounters {
        let blocks = self.lock();
        let (frames, bytes) = (blocks.frames(), blocks.bytes());
        drop(blocks);
        HoldCounters {
            hold_size_bytes: self.size_bytes,
            hold_used_bytes: bytes,
            hold_frames_count: frames,
            stored_blocks_count: self.stored.load(Ordering::Relaxed),
            rejected_blocks_count: self.rejected.load(Ordering::Relaxed),
            no_room_count: self.no_room.load(Ordering::Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, LocalMemory> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begin.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::BLOCK_BYTES;

    fn block(number: u8, bytes: u64) -> (Hash, Vec<u8>) {
        let bytes = vec![number; bytes as usize];
        (blake3::hash(&bytes).into(), bytes)
    }

    #[test]
    fn the_least_recently_used_block_leaves_a_full_memory() {
        let hold = Hold::new(2 * BLOCK_BYTES);
        let blocks: Vec<_> = (0..3).map(|n| block(n, BLOCK_BYTES)).collect();
        for (hash, bytes) in &blocks[..2] {
            assert_eq!(hold.put(hash, bytes.clone()), PutResult::Stored);
        }
        assert!(hold.get(&blocks[0].0).is_some());
        let (hash, bytes) = &blocks[2];
        assert_eq!(hold.put(hash, bytes.clone()), PutResult::Stored);
        assert_eq!(hold.put(hash, bytes.clone()), PutResult::Known);
        let held = blocks.iter().map(|(hash, _)| hold.get(hash).is_some());
        assert_eq!(held.collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(hold.counters().hold_used_bytes, 2 * BLOCK_BYTES);
    }

    #[test]
    fn other_bytes_and_too_many_bytes_are_not_stored() {
        let hold = Hold::new(BLOCK_BYTES);
        let (hash, _) = block(1, BLOCK_BYTES);
        let (_, others) = block(2, BLOCK_BYTES);
        assert_eq!(hold.put(&hash, others), PutResult::Differs);
        let (large, bytes) = block(3, BLOCK_BYTES + 1);
        assert_eq!(hold.put(&large, bytes), PutResult::NoRoom);
        let counters = hold.counters();
        assert_eq!(
            (counters.rejected_blocks_count, counters.no_room_count),
            (1, 1)
        );
        assert_eq!(counters.hold_frames_count, 0);
    }

    #[test]
    fn tiny_blocks_do_not_fill_memory_with_their_entries() {
        let hold = Hold::new(16 * LEAST_BYTES_PER_BLOCK);
        for number in 0..1000_u32 {
            let bytes = number.to_le_bytes().to_vec();
            let hash = blake3::hash(&bytes).into();
            assert_eq!(hold.put(&hash, bytes), PutResult::Stored);
        }
        assert_eq!(hold.counters().hold_frames_count, 16);
    }
}
