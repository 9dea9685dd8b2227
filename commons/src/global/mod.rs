//! This host's node of global memory: carries out the decisions of `policy::global` on the blocks of this host.
//! It knows no network: [`crate::peer`] sends and receives its messages.

mod answers;
mod entries;
mod epochs;
mod frames;
mod posts;
#[cfg(test)]
mod tests;

pub use answers::{BlockReply, PutOutcome, ReadStep, WaitedReply};
pub use epochs::EpochStatus;
pub use frames::BlockData;
pub use posts::{DirectoryNotice, EvictedBlock, PostQueues, Posts};

use crate::catalog::{BLOCK_BYTES, Hash};
use crate::directory::{EntryCounts, uid};
use crate::hold::LeasePool;
use crate::store::Block;
use frames::BlockFrames;
use gleaner_policy::global::directory::Holder;
use gleaner_policy::global::members::Members;
use gleaner_policy::global::message::{Action, Event, Message, Origin};
use gleaner_policy::global::node::Node;
use gleaner_policy::global::settings::{MemoryPolicy, Settings};
use gleaner_policy::global::{NodeId, Uid};
use gleaner_trust::random;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// This host's memory and directory in global memory.
pub struct GlobalMemory {
    state: Mutex<State>,
    posts: Posts,
    begin: Instant,
    lost: AtomicU64,
    stored: AtomicU64,
    /// Blocks that this host's leases can be enlarged to, announced under the policy `hash`.
    reachable_frames: AtomicU32,
    policy: MemoryPolicy,
}

struct State {
    node: Node,
    frames: BlockFrames,
    /// Other hosts' entries in this host's part of the directory.
    entries: EntryCounts,
    /// Other hosts' requests that wait for a block which this host fetches.
    waiting: HashMap<(Uid, NodeId), oneshot::Sender<WaitedReply>>,
    actions: Vec<Action>,
    /// Quota of this host by the last weights.
    quota_bytes: Option<u64>,
}

/// Block that belongs to an event.
type ArrivingBlock<'a> = Option<(&'a Hash, &'a Block)>;

/// Consequence of a step for the caller.
enum Consequence {
    /// A host is asked for a block, or a reader is sent to it.
    Ask {
        to: NodeId,
        request: Holder,
        is_forwarded: bool,
    },
    /// Answer to a request of another host.
    Answer {
        to: NodeId,
        uid: Uid,
        found: Option<(BlockData, bool)>,
    },
    /// The block is stored for others.
    Stored,
    /// This host has the block.
    Ready,
    /// Ages of this host's blocks.
    Report(Arc<gleaner_policy::global::age::Summary>),
}

/// Figures of this host's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    /// Blocks in the service's own memory.
    pub own_frames: u64,
    /// Bytes of these blocks.
    pub own_bytes: u64,
    /// Blocks in leases.
    pub leased_frames: u64,
    /// Bytes of these blocks.
    pub leased_bytes: u64,
    /// Blocks held for other hosts.
    pub global_frames: u64,
    /// Blocks with a holder in this host's part of the directory.
    pub directory_entries: u64,
    /// Entries of other hosts beyond their limits, which were refused.
    pub refused_entries: u64,
    /// Blocks that other hosts put here, and that were stored.
    pub stored_blocks: u64,
    /// Blocks that were lost with their leases.
    pub lost_blocks: u64,
    /// Evicted blocks that were dropped because too many waited.
    pub dropped_puts: u64,
}

impl GlobalMemory {
    /// Makes an empty memory of `own_bytes` bytes and the leases of `pool`, for the host with the number `own`.
    /// A restarted host has a higher `generation`.
    #[must_use]
    pub fn new(
        (own, generation): (NodeId, u32),
        settings: Settings,
        own_bytes: u64,
        pool: Arc<LeasePool>,
        posts: Posts,
    ) -> Self {
        let own_frames = u32::try_from(own_bytes / BLOCK_BYTES).unwrap_or(u32::MAX);
        let sends_evicted = matches!(settings.policy, MemoryPolicy::Gms | MemoryPolicy::NChance);
        let frames = BlockFrames::new(own_frames, sends_evicted, pool);
        // Leases are for blocks of which this host is the home; without this limit its programs' reads would push
        // these blocks out.
        let settings = Settings {
            local_frames: own_frames,
            ..settings
        };
        Self {
            state: Mutex::new(State {
                node: Node::new(own, generation, frames.limit(), settings, 0),
                frames,
                entries: EntryCounts::default(),
                waiting: HashMap::new(),
                actions: Vec::new(),
                quota_bytes: None,
            }),
            posts,
            begin: Instant::now(),
            lost: AtomicU64::new(0),
            stored: AtomicU64::new(0),
            reachable_frames: AtomicU32::new(0),
            policy: settings.policy,
        }
    }

    /// Number of this host, and generation of its memory.
    #[must_use]
    pub fn identity(&self) -> (NodeId, u32) {
        let state = self.lock();
        (state.node.id(), state.node.generation())
    }

    /// Messages that nobody waits for.
    #[must_use]
    pub const fn posts(&self) -> &Posts {
        &self.posts
    }

    /// Takes over a list of members.
    pub fn change_members(&self, members: Members) {
        let mut state = self.lock();
        self.step(&mut state, &Event::Members(Arc::new(members)), None);
        state.recount_entries();
    }

    /// Drops the blocks of leases that have ended, and uses new leases.
    pub fn follow_leases(&self) {
        let mut state = self.lock();
        let lost = state.frames.lost();
        self.lose(&mut state, lost);
        let limit = state.frames.limit();
        self.step(&mut state, &Event::Frames(limit), None);
    }

    /// Takes over the number of blocks that the leases can be enlarged to.
    pub fn set_reachable_frames(&self, frames: u32) {
        self.reachable_frames.store(frames, Ordering::Relaxed);
    }

    /// Number of blocks that this host announces to the recruiters: those that fit in its leases; under the policy
    /// `hash`, those that the leases can be enlarged to.
    #[must_use]
    pub fn announced_frames(&self) -> u32 {
        match self.policy {
            MemoryPolicy::Hash => self.reachable_frames.load(Ordering::Relaxed),
            _ => self.lock().frames.lent(),
        }
    }

    /// Figures of the memory now.
    #[must_use]
    pub fn counts(&self) -> MemoryCounts {
        let state = self.lock();
        let (own_frames, leased_frames) = state.frames.counts();
        let (own_bytes, leased_bytes) = state.frames.bytes();
        MemoryCounts {
            own_frames,
            own_bytes,
            leased_frames,
            leased_bytes,
            global_frames: u64::from(state.node.pages().global_count()),
            directory_entries: state.node.directory().len() as u64,
            refused_entries: state.entries.refused(),
            stored_blocks: self.stored.load(Ordering::Relaxed),
            lost_blocks: self.lost.load(Ordering::Relaxed),
            dropped_puts: self.posts.dropped_puts_count(),
        }
    }

    /// Passes an event to the policy, and carries out its actions. `arriving` is the block of the event.
    fn step(
        &self,
        state: &mut State,
        event: &Event,
        arriving: ArrivingBlock<'_>,
    ) -> Vec<Consequence> {
        let now_ms = self.now_ms();
        let mut actions = std::mem::take(&mut state.actions);
        state.node.step(event, now_ms, &mut draw, &mut actions);
        // Blocks that leave make room for the block that arrives; otherwise a third block would lose its place.
        actions.sort_by_key(|action| matches!(action, Action::Ready { .. } | Action::Store { .. }));
        let (mut consequences, mut lost) = (Vec::new(), Vec::new());
        for action in actions.drain(..) {
            match action {
                Action::Load { .. } => {} // the caller reads the source if nothing else follows
                Action::Ready { uid, origin } => {
                    let is_new = matches!(origin, Origin::Cluster | Origin::Source)
                        && state.node.pages().get(uid).is_some();
                    if let Some((hash, block)) = arriving.filter(|_| is_new) {
                        let block = Arc::clone(block);
                        lost.extend(state.frames.add_used(hash, block, now_ms));
                    }
                    consequences.push(Consequence::Ready);
                }
                Action::Store { .. } => {
                    if let Some((hash, block)) = arriving {
                        let block = Arc::clone(block);
                        lost.extend(state.frames.add_held(hash, block, now_ms));
                    }
                    consequences.push(Consequence::Stored);
                }
                Action::Drop { uid } => state.frames.remove(uid),
                Action::Send { to, message } => {
                    consequences.extend(self.send(state, to, message, arriving));
                }
            }
        }
        state.actions = actions;
        self.lose(state, lost);
        consequences
    }

    /// Reports to the policy that the bytes of these blocks are gone.
    fn lose(&self, state: &mut State, lost: Vec<Uid>) {
        for uid in lost {
            self.lost.fetch_add(1, Ordering::Relaxed);
            self.step(state, &Event::Lost { uid }, None);
        }
    }

    fn send(
        &self,
        state: &mut State,
        to: NodeId,
        message: Message,
        arriving: ArrivingBlock<'_>,
    ) -> Option<Consequence> {
        let data = |state: &State, sent: Uid| {
            let of_event = arriving.filter(|(hash, _)| uid(hash) == sent);
            let of_event = of_event.map(|(_, block)| BlockData::Memory(Arc::clone(block)));
            state.frames.data(sent).or(of_event)
        };
        match message {
            Message::GetPage { reader, .. } => Some(Consequence::Ask {
                to,
                request: reader,
                is_forwarded: false,
            }),
            Message::Forward { reader, .. } => Some(Consequence::Ask {
                to,
                request: reader,
                is_forwarded: true,
            }),
            Message::Page { uid, is_moved, .. } => {
                let found = data(state, uid).map(|data| (data, is_moved));
                answer(state, to, uid, found)
            }
            Message::Miss { uid, .. } => answer(state, to, uid, None),
            Message::PutPage {
                uid: evicted,
                age_ms,
                chances,
            } => {
                let hash = state.frames.hash(evicted).or_else(|| {
                    let of_event = arriving.filter(|(hash, _)| uid(hash) == evicted);
                    of_event.map(|(hash, _)| *hash)
                });
                if let (Some(hash), Some(data)) = (hash, data(state, evicted)) {
                    self.posts.put(EvictedBlock {
                        to,
                        hash,
                        data,
                        age_ms,
                        chances,
                    });
                }
                None
            }
            Message::Moved { .. }
            | Message::Gone { .. }
            | Message::Alone { .. }
            | Message::Discard { .. } => {
                self.posts.notify(to, message);
                None
            }
            Message::Summary { summary, .. } => Some(Consequence::Report(summary)),
            Message::Ended { epoch } => {
                self.posts.end(epoch);
                None
            }
            // The recruiters alone begin epochs: this host's node gets no ticks.
            Message::ReportPlease { .. } | Message::Weights(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begin.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

/// Random number, uniform over all of `u64`.
fn draw() -> u64 {
    random::bytes::<8>().map_or(0, u64::from_le_bytes)
}

/// Answers a request that waits, or returns the answer for the request that the step belongs to.
fn answer(
    state: &mut State,
    to: NodeId,
    uid: Uid,
    found: Option<(BlockData, bool)>,
) -> Option<Consequence> {
    match state.waiting.remove(&(uid, to)) {
        Some(waiting) => {
            let _ = waiting.send(found); // the reader may have given up
            None
        }
        None => Some(Consequence::Answer { to, uid, found }),
    }
}
