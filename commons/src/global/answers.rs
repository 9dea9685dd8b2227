//! Reads of this host's programs, and requests of other hosts.

use super::{ArrivingBlock, BlockData, Consequence, GlobalMemory, State, draw};
use crate::catalog::Hash;
use crate::directory::uid;
use crate::store::{Block, checked};
use gleaner_policy::global::NodeId;
use gleaner_policy::global::directory::Holder;
use gleaner_policy::global::message::{Event, Message};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

/// Next step of a read.
#[derive(Debug)]
pub enum ReadStep {
    /// This host has the block.
    Here(Block),
    /// Another host is asked.
    Ask {
        /// Host to ask.
        to: NodeId,
        /// This host, with the stamp of the request.
        request: Holder,
        /// True if the directory names that host as a holder; false: that host has the directory's entry.
        is_forwarded: bool,
    },
    /// The block is read from its source.
    Load,
}

/// Answer to a request that waited: the block, and true if this host keeps no copy; `None`: no block.
pub type WaitedReply = Option<(BlockData, bool)>;

/// Answer to another host's request for a block.
pub enum BlockReply {
    /// The block, and true if this host keeps no copy.
    Found(BlockData, bool),
    /// This host holds the block.
    Elsewhere(NodeId),
    /// This host fetches the block now.
    UnderWay(oneshot::Receiver<WaitedReply>),
    /// No host is known to hold the block.
    Missing,
}

/// Result of another host's put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The block was added, or this host waited for it.
    Stored,
    /// The block was there already.
    Known,
    /// The bytes have another hash.
    Differs,
    /// All frames have younger blocks.
    NoRoom,
}

impl GlobalMemory {
    /// Uses a block, if this host has it: returns it, and the time since its last use in ms.
    #[must_use]
    pub fn use_block(&self, hash: &Hash) -> Option<(Block, u64)> {
        let id = uid(hash);
        let mut state = self.lock();
        let last_use_ms = state.node.pages().get(id)?.last_use_ms;
        let age_ms = u64::try_from(self.now_ms().saturating_sub(last_use_ms)).unwrap_or(0);
        self.step(&mut state, &Event::Read { uid: id }, None);
        let data = state.frames.data(id)?;
        self.used(state, hash, data).map(|block| (block, age_ms))
    }

    /// Returns true if this host has the block; this is no use of it.
    #[must_use]
    pub fn has(&self, hash: &Hash) -> bool {
        self.lock().node.pages().get(uid(hash)).is_some()
    }

    /// Returns true if this host is a home of the block; no block has homes but under `hash`.
    #[must_use]
    pub fn is_home(&self, hash: &Hash) -> bool {
        let state = self.lock();
        let homes = state.node.members().homes(uid(hash));
        homes.contains(&state.node.id())
    }

    /// Begins a read.
    #[must_use]
    pub fn begin_read(&self, hash: &Hash) -> ReadStep {
        let id = uid(hash);
        let mut state = self.lock();
        for consequence in self.step(&mut state, &Event::Read { uid: id }, None) {
            match consequence {
                Consequence::Ask {
                    to,
                    request,
                    is_forwarded,
                } => {
                    return ReadStep::Ask {
                        to,
                        request,
                        is_forwarded,
                    };
                }
                Consequence::Ready => {
                    let Some(data) = state.frames.data(id) else {
                        return ReadStep::Load;
                    };
                    let block = self.used(state, hash, data);
                    return block.map_or(ReadStep::Load, ReadStep::Here);
                }
                _ => {}
            }
        }
        ReadStep::Load
    }

    /// Reads a block of this host outside of the lock, and records its use.
    fn used(
        &self,
        mut state: std::sync::MutexGuard<'_, State>,
        hash: &Hash,
        data: BlockData,
    ) -> Option<Block> {
        let slot = match data {
            BlockData::Memory(block) => {
                state.frames.touch(hash, self.now_ms());
                return Some(block);
            }
            BlockData::Leased(slot) => slot,
        };
        drop(state);
        let block = slot.read(hash);
        // The block moves to the service's own memory, from where another one takes its place.
        drop(slot);
        let mut state = self.lock();
        let lost = match &block {
            Some(block) => state.frames.promote(hash, Arc::clone(block), self.now_ms()),
            None => state.frames.lost(),
        };
        self.lose(&mut state, lost);
        block
    }

    /// Another host has sent a block whose hash was checked.
    pub fn arrived(
        &self,
        from: NodeId,
        (hash, block): (&Hash, &Block),
        is_moved: bool,
        request: Holder,
    ) {
        let message = Message::Page {
            uid: uid(hash),
            is_moved,
            reader: request,
        };
        self.message(from, message, Some((hash, block)));
    }

    /// Another host has answered that no host has the block.
    pub fn missed(&self, from: NodeId, hash: &Hash, request: Holder) {
        let message = Message::Miss {
            uid: uid(hash),
            reader: request,
        };
        self.message(from, message, None);
    }

    /// A block was read from its source.
    pub fn loaded(&self, hash: &Hash, block: &Block) {
        let event = Event::Loaded { uid: uid(hash) };
        self.step(&mut self.lock(), &event, Some((hash, block)));
    }

    /// A block cannot be read from its source.
    pub fn failed(&self, hash: &Hash) {
        let event = Event::Failed { uid: uid(hash) };
        self.step(&mut self.lock(), &event, None);
    }

    /// Answers another host. `is_forwarded`: the directory named this host as a holder.
    #[must_use]
    pub fn serve(&self, hash: &Hash, reader: Holder, is_forwarded: bool) -> BlockReply {
        let id = uid(hash);
        let mut state = self.lock();
        let mut is_forwarded = is_forwarded;
        if !is_forwarded && !state.admits(id, reader.node) {
            // A known holder serves the reader, who does not become a holder.
            let directory = state.node.directory();
            match directory.holder_for(id, reader.node, &mut draw) {
                Some(holder) if holder == state.node.id() => is_forwarded = true,
                Some(holder) => return BlockReply::Elsewhere(holder),
                None => return BlockReply::Missing,
            }
        }
        // A second request of the same reader replaces the first.
        state.waiting.remove(&(id, reader.node));
        let message = if is_forwarded {
            Message::Forward { uid: id, reader }
        } else {
            Message::GetPage { uid: id, reader }
        };
        for consequence in self.entry_step(&mut state, reader.node, id, message) {
            match consequence {
                Consequence::Answer { to, uid, found } if (to, uid) == (reader.node, id) => {
                    return match found {
                        Some((data, is_moved)) => BlockReply::Found(data, is_moved),
                        None => BlockReply::Missing,
                    };
                }
                Consequence::Ask { to, .. } => return BlockReply::Elsewhere(to),
                _ => {}
            }
        }
        if !state.node.is_fetching(id) {
            return BlockReply::Missing;
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.insert((id, reader.node), sender);
        // Requests whose readers have given up would remain if the block never came.
        state.waiting.retain(|_, waiting| !waiting.is_closed());
        BlockReply::UnderWay(receiver)
    }

    /// Takes a block that another host has evicted.
    pub fn receive_put(
        &self,
        from: NodeId,
        hash: &Hash,
        bytes: Vec<u8>,
        (age_ms, chances): (u64, u8),
    ) -> PutOutcome {
        let Some(block) = checked(hash, bytes) else {
            return PutOutcome::Differs;
        };
        let message = Message::PutPage {
            uid: uid(hash),
            age_ms,
            chances,
        };
        let was_known = self.has(hash);
        let consequences = self.message(from, message, Some((hash, &block)));
        let is_stored = |one: &Consequence| matches!(one, Consequence::Stored | Consequence::Ready);
        if consequences.iter().any(is_stored) {
            self.stored.fetch_add(1, Ordering::Relaxed);
            PutOutcome::Stored
        } else if was_known {
            PutOutcome::Known
        } else {
            PutOutcome::NoRoom
        }
    }

    pub(super) fn message(
        &self,
        from: NodeId,
        message: Message,
        arriving: ArrivingBlock<'_>,
    ) -> Vec<Consequence> {
        let event = Event::Message { from, message };
        self.step(&mut self.lock(), &event, arriving)
    }
}
