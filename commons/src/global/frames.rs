//! Bytes of this host's blocks: blocks used lately in the service's own memory, the others in leases.

use crate::catalog::Hash;
use crate::directory::uid;
use crate::hold::{LeasePool, Slot};
use crate::store::{Block, LocalMemory};
use gleaner_policy::global::Uid;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of a block, or the place where they are read without any lock.
#[derive(Clone)]
pub enum BlockData {
    /// The bytes themselves.
    Memory(Block),
    /// A place in a lease.
    Leased(Arc<Slot>),
}

impl BlockData {
    /// Reads the bytes; `None` if the lease has ended, or has other bytes.
    #[must_use]
    pub fn read(&self, hash: &Hash) -> Option<Block> {
        match self {
            Self::Memory(block) => Some(Arc::clone(block)),
            Self::Leased(slot) => slot.read(hash),
        }
    }
}

/// All blocks of this host.
pub(super) struct BlockFrames {
    /// Most blocks in the service's own memory.
    own_frames: u32,
    /// True if evicted blocks are sent to other hosts, and keep their places until then.
    sends_evicted: bool,
    memory: LocalMemory,
    leased: HashMap<Hash, Arc<Slot>>,
    /// Bytes of the blocks in leases.
    leased_bytes: u64,
    hashes: HashMap<Uid, Hash>,
    pool: Arc<LeasePool>,
}

impl BlockFrames {
    /// Makes an empty memory: `own_frames` blocks, and those that fit in the leases.
    pub(super) fn new(own_frames: u32, sends_evicted: bool, pool: Arc<LeasePool>) -> Self {
        Self {
            own_frames,
            sends_evicted,
            memory: LocalMemory::new(u64::MAX),
            leased: HashMap::new(),
            leased_bytes: 0,
            hashes: HashMap::new(),
            pool,
        }
    }

    /// Number of blocks that fit now. An eighth of the leases is spare for evicted blocks that are being sent.
    pub(super) fn limit(&self) -> u32 {
        let leased = self.pool.frames();
        let spare = u32::from(self.sends_evicted) * (leased / 8);
        self.own_frames.saturating_add(leased - spare)
    }

    /// Number of blocks that fit in leases: this host's share of the homes under the policy `hash`.
    pub(super) fn lent(&self) -> u32 {
        self.limit() - self.own_frames.min(self.limit())
    }

    /// Number of blocks in the service's own memory, and in leases.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.memory.frames(), self.leased.len() as u64)
    }

    /// Bytes of the blocks in the service's own memory, and in leases.
    pub(super) const fn bytes(&self) -> (u64, u64) {
        (self.memory.bytes(), self.leased_bytes)
    }

    /// Bytes of a block; this is no use of it.
    pub(super) fn data(&self, uid: Uid) -> Option<BlockData> {
        let hash = self.hashes.get(&uid)?;
        let leased = || self.leased.get(hash).cloned().map(BlockData::Leased);
        self.memory
            .peek(hash)
            .map(BlockData::Memory)
            .or_else(leased)
    }

    /// Hash of a block.
    pub(super) fn hash(&self, uid: Uid) -> Option<Hash> {
        self.hashes.get(&uid).copied()
    }

    /// Adds a block that a program of this host reads. Returns the blocks that have no place any more.
    pub(super) fn add_used(&mut self, hash: &Hash, block: Block, now_ms: i64) -> Vec<Uid> {
        self.hashes.insert(uid(hash), *hash);
        self.memory.insert(*hash, block, now_ms);
        let mut lost = Vec::new();
        while self.memory.frames() > u64::from(self.own_frames) {
            let Some((hash, block)) = self.memory.remove_oldest() else {
                break;
            };
            lost.extend(self.lease_place(&hash, &block));
        }
        lost
    }

    /// Adds a block of another host: in a lease, or in unused own memory. Returns the block if it has no place.
    pub(super) fn add_held(&mut self, hash: &Hash, block: Block, now_ms: i64) -> Option<Uid> {
        self.hashes.insert(uid(hash), *hash);
        let lost = self.lease_place(hash, &block)?;
        if self.memory.frames() >= u64::from(self.own_frames) {
            return Some(lost);
        }
        self.memory.insert(*hash, block, now_ms);
        None
    }

    /// Records a use of a block that was read from a lease, and moves it to the service's own memory.
    pub(super) fn promote(&mut self, hash: &Hash, block: Block, now_ms: i64) -> Vec<Uid> {
        if self.remove_leased(hash) {
            return self.add_used(hash, block, now_ms);
        }
        Vec::new()
    }

    /// Records a use of a block in the service's own memory.
    pub(super) fn touch(&mut self, hash: &Hash, now_ms: i64) {
        let _ = self.memory.get(hash, now_ms);
    }

    /// Removes a block.
    pub(super) fn remove(&mut self, uid: Uid) {
        if let Some(hash) = self.hashes.remove(&uid)
            && self.memory.take(&hash).is_none()
        {
            self.remove_leased(&hash);
        }
    }

    /// Blocks whose leases have ended.
    pub(super) fn lost(&self) -> Vec<Uid> {
        let lost = self.leased.iter().filter(|(_, slot)| slot.is_lost());
        lost.map(|(hash, _)| uid(hash)).collect()
    }

    fn remove_leased(&mut self, hash: &Hash) -> bool {
        let removed = self.leased.remove(hash);
        if let Some(slot) = &removed {
            self.leased_bytes = self.leased_bytes.saturating_sub(slot.bytes());
        }
        removed.is_some()
    }

    /// Puts a block into a lease; returns the block if there is no room.
    fn lease_place(&mut self, hash: &Hash, block: &Block) -> Option<Uid> {
        let Some(slot) = self.pool.place(block) else {
            return Some(uid(hash));
        };
        self.leased_bytes += slot.bytes();
        self.leased.insert(*hash, slot);
        None
    }
}
