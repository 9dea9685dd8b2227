//! Limit of each member's entries in one host's part of the directory.

use gleaner_policy::global::NodeId;
use std::collections::HashMap;

/// Number of blocks whose entries every member may have, in all hosts' parts together: 64 GiB of blocks.
const LEAST_BLOCKS: u64 = 1 << 20;
/// The same for members that lend much memory: no member has more, whatever it announces.
const MOST_BLOCKS: u64 = 1 << 22;
/// Entries that a member may always have in one part, however many members there are.
const LEAST_ENTRIES: u64 = 256;

/// Most entries of a member that lends `frames` blocks, in the part of one of `members_count` hosts. A member's
/// entries lie in all parts alike. Twice its blocks leave room for entries that it has not withdrawn yet.
#[must_use]
pub fn entries_limit(frames: u32, members_count: usize) -> usize {
    let blocks = (2 * u64::from(frames)).clamp(LEAST_BLOCKS, MOST_BLOCKS);
    let share = blocks / (members_count as u64).max(1);
    usize::try_from(share.max(LEAST_ENTRIES)).unwrap_or(usize::MAX)
}

/// Number of entries of each member, and of entries that were refused.
#[derive(Debug, Default)]
pub struct EntryCounts {
    counts: HashMap<NodeId, usize>,
    refused: u64,
}

impl EntryCounts {
    /// Number of a member's entries.
    #[must_use]
    pub fn of(&self, node: NodeId) -> usize {
        self.counts.get(&node).copied().unwrap_or(0)
    }

    /// Entries beyond their members' limits since the start.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns true if a member below `limit` may have a further entry; otherwise counts the refusal.
    pub fn admit(&mut self, node: NodeId, limit: usize) -> bool {
        let is_admitted = self.of(node) < limit;
        self.refused += u64::from(!is_admitted);
        is_admitted
    }

    /// Notes whether a member was the holder of a block before a change, and is it now.
    pub fn note(&mut self, node: NodeId, was_entered: bool, is_entered: bool) {
        if was_entered == is_entered {
            return;
        }
        let count = self.counts.entry(node).or_default();
        if is_entered {
            *count += 1;
        } else {
            *count = count.saturating_sub(1);
        }
    }

    /// Forgets a member's entries: all of them were removed.
    pub fn forget(&mut self, node: NodeId) {
        self.counts.remove(&node);
    }

    /// Counts all entries anew, by their holders.
    pub fn recount(&mut self, holders: impl Iterator<Item = NodeId>) {
        self.counts.clear();
        for node in holders {
            *self.counts.entry(node).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_members_together_are_bounded_whatever_they_announce() {
        for (frames, members, limit) in [
            (0, 0, 1 << 20),
            (0, 2, 1 << 19),
            (1 << 20, 2, 1 << 20),
            (u32::MAX, 2, 1 << 21),
            (0, 1 << 14, 256),
        ] {
            assert_eq!(entries_limit(frames, members), limit, "{frames}, {members}");
        }
        for members in 1..20_000 {
            let all = entries_limit(u32::MAX, members) * members;
            assert!(
                all <= (1_usize << 22).max(256 * members),
                "{members}: {all}"
            );
        }
    }

    #[test]
    fn counts_follow_the_changes() {
        let mut counts = EntryCounts::default();
        for (was, is) in [(false, true), (true, true), (false, true), (true, false)] {
            counts.note(1, was, is);
        }
        assert_eq!((counts.of(1), counts.of(2)), (1, 0));
        assert!(counts.admit(1, 2) && !counts.admit(1, 1));
        assert_eq!(counts.refused(), 1);
        counts.recount([1, 2, 2].into_iter());
        counts.forget(1);
        assert_eq!((counts.of(1), counts.of(2)), (0, 2));
    }
}
