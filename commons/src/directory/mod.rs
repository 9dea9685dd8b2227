//! The part of the cluster's directory that this host keeps as the home of its blocks: the hosts that hold a
//! block, and the host that fetches it from the source now. Both tables are bounded.

mod entries;
mod fetches;
mod membership;

pub use entries::{EntryCounts, entries_limit};
pub use fetches::{Fetches, PendingFetch};
pub use membership::{Member, MemberAddress, Membership, MembershipError, MembershipSource};

use crate::catalog::Hash;
use gleaner_policy::global::directory::{Directory, Holder, Stamp};
use gleaner_policy::global::{NodeId, Uid};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Identifier of a block among all hosts: the first 16 bytes of its hash.
#[must_use]
pub fn uid(hash: &Hash) -> Uid {
    let mut first = [0; 16];
    first.copy_from_slice(&hash[..16]);
    Uid::shared(u128::from_be_bytes(first))
}

/// A change of a holder's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderChange {
    /// Block that the holder got or dropped.
    pub hash: Hash,
    /// True if the holder has the block now.
    pub is_held: bool,
}

/// Answer to a reader of a block that its home does not hold.
#[derive(Clone, Debug)]
pub enum Referral {
    /// This host holds the block.
    Holder(NodeId),
    /// Another host fetches the block now.
    UnderWay(PendingFetch),
    /// Nobody has the block: the reader fetches it from the source.
    Source,
}

/// This host's part of the directory.
pub struct HomeDirectory {
    /// Most entries of one holder. Without this limit one host could fill the memory of the others.
    limit: usize,
    state: Mutex<State>,
}

struct State {
    holders: Directory,
    generations: HashMap<NodeId, u32>,
    entries: EntryCounts,
    /// Stamp of the last change; changes are numbered in the order of their arrival.
    stamp: Stamp,
    fetches: Fetches,
}

impl HomeDirectory {
    /// Makes an empty directory for a commons with `members_count` members. A fetch counts as under way for
    /// `fetch_wait`.
    #[must_use]
    pub fn new(members_count: usize, fetch_wait: Duration) -> Self {
        Self {
            // A fixed list says nothing of the members' memory.
            limit: entries_limit(0, members_count),
            state: Mutex::new(State {
                holders: Directory::default(),
                generations: HashMap::new(),
                entries: EntryCounts::default(),
                stamp: Stamp::default(),
                fetches: Fetches::new(fetch_wait),
            }),
        }
    }

    /// Answers a reader. If nobody has the block, the reader counts as fetching it from now on. `random`
    /// chooses among several holders.
    pub fn refer(
        &self,
        hash: &Hash,
        reader: NodeId,
        now: Instant,
        random: &mut dyn FnMut() -> u64,
    ) -> Referral {
        let mut state = self.lock();
        if let Some(holder) = state.holders.holder_for(uid(hash), reader, random) {
            return Referral::Holder(holder);
        }
        match state.fetches.join(hash, reader, now) {
            Some(pending) => Referral::UnderWay(pending),
            None => Referral::Source,
        }
    }

    /// Ends the fetch of a block: its home holds it now, or nobody will fetch it.
    pub fn landed(&self, hash: &Hash) {
        self.lock().fetches.land(hash);
    }

    /// Enters changes of one holder. Changes of an earlier generation than the holder's are ignored; a new
    /// generation voids all earlier entries of the holder. Returns the number of entries that did not fit.
    pub fn enter(&self, node: NodeId, generation: u32, changes: &[HolderChange]) -> usize {
        let mut guard = self.lock();
        let state = &mut *guard;
        let known = state.generations.entry(node).or_default();
        if generation < *known {
            return 0;
        }
        let is_new = generation > *known;
        *known = generation;
        if is_new && state.entries.of(node) > 0 {
            state.holders.retain(|_, holder| holder.node != node);
            state.entries.forget(node);
        }
        let mut rejected = 0;
        for change in changes {
            let uid = uid(&change.hash);
            state.stamp = state.stamp.next(false);
            let holder = Holder {
                node,
                generation,
                stamp: state.stamp,
            };
            let is_entered = |holders: &Directory| holders.holders(uid).any(|h| h.node == node);
            let was_entered = is_entered(&state.holders);
            if !change.is_held {
                state.holders.leave(uid, holder);
            } else if was_entered || state.entries.admit(node, self.limit) {
                state.holders.enter(uid, holder);
            } else {
                rejected += 1;
                continue;
            }
            let is_entered = is_entered(&state.holders);
            state.entries.note(node, was_entered, is_entered);
        }
        rejected
    }

    /// Entries beyond their holders' limit since the start.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.lock().entries.refused()
    }

    /// Number of blocks with a holder.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().holders.len()
    }

    /// Returns true if no block has a holder.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> Hash {
        blake3::hash(&number.to_le_bytes()).into()
    }

    fn held(number: u64) -> HolderChange {
        HolderChange {
            hash: hash(number),
            is_held: true,
        }
    }

    fn holder_of(directory: &HomeDirectory, number: u64) -> Option<NodeId> {
        match directory.refer(&hash(number), 99, Instant::now(), &mut || 0) {
            Referral::Holder(node) => Some(node),
            _ => None,
        }
    }

    #[test]
    fn a_million_entries_of_one_host_leave_room_for_others() {
        let directory = HomeDirectory::new(16, Duration::from_millis(500));
        let mut rejected = 0;
        for first in (0..1_000_000).step_by(1000) {
            let changes: Vec<_> = (first..first + 1000).map(held).collect();
            rejected += directory.enter(1, 1, &changes);
        }
        let most = 1 << 16;
        assert_eq!((directory.len(), rejected), (most, 1_000_000 - most));
        assert_eq!(directory.refused(), rejected as u64);
        assert_eq!(directory.enter(2, 1, &[held(2_000_000)]), 0);
        assert_eq!(holder_of(&directory, 2_000_000), Some(2));
        // An entry that leaves makes room for another.
        let gone = HolderChange {
            is_held: false,
            ..held(0)
        };
        assert_eq!(directory.enter(1, 1, &[gone, held(3_000_000)]), 0);
        assert_eq!(holder_of(&directory, 3_000_000), Some(1));
    }

    #[test]
    fn a_new_generation_voids_the_entries_of_the_former() {
        let directory = HomeDirectory::new(2, Duration::from_millis(500));
        directory.enter(1, 5, &[held(1), held(2)]);
        directory.enter(2, 5, &[held(2)]);
        directory.enter(1, 6, &[held(3)]);
        let holders = [1, 2, 3].map(|number| holder_of(&directory, number));
        assert_eq!(holders, [None, Some(2), Some(1)]);
        directory.enter(1, 5, &[held(4)]);
        assert_eq!(holder_of(&directory, 4), None);
        assert_eq!(directory.len(), 2);
    }
}
