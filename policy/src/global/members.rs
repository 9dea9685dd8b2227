//! Members of the cluster, and the two maps that follow from their list alone: the page ownership directory
//! (POD), and the homes of pages under the policy `hash`. Equal lists make equal maps: no map is sent.

use super::uid::{NodeId, Uid, mix};

/// Buckets of the page ownership directory; a page's bucket is the first 12 bits of its hash.
pub const BUCKETS: usize = 4096;

/// A node of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Number of the node.
    pub node: NodeId,
    /// Generation of the node's memory; it changes when the node restarts.
    pub generation: u32,
    /// Frames that the node lends: its weight under the policy `hash`.
    pub frames: u32,
}

/// List of members, with the page ownership directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    members: Vec<Member>,
    owners: Vec<NodeId>,
    homes: Vec<Vec<NodeId>>,
}

impl Members {
    /// Members in any order; of several with one number, the one with the highest generation counts. With
    /// `homes` above 0, that many homes are computed for each bucket.
    #[must_use]
    pub fn new(mut members: Vec<Member>, homes: usize) -> Self {
        members.sort_unstable_by(|a, b| b.cmp(a));
        members.dedup_by_key(|member| member.node);
        members.reverse();
        let buckets = 0..if members.is_empty() { 0 } else { BUCKETS };
        let owner = |bucket: usize| {
            let score = |m: &&Member| (score(bucket, m.node), m.node);
            members.iter().max_by_key(score).map_or(0, |m| m.node)
        };
        let home = |bucket: usize| {
            let lends = members.iter().filter(|m| m.frames > 0);
            let scored = lends.map(|m| (weighted_score(bucket, m), m.node));
            let mut scored: Vec<_> = scored.collect();
            scored.sort_unstable();
            scored.truncate(homes);
            scored.into_iter().map(|(_, node)| node).collect()
        };
        let owners = buckets.clone().map(owner).collect();
        let homes = match homes {
            0 => Vec::new(),
            _ => buckets.map(home).collect(),
        };
        Self {
            owners,
            homes,
            members,
        }
    }

    /// Members by number.
    #[must_use]
    pub fn list(&self) -> &[Member] {
        &self.members
    }

    /// Place of a node in the list, from 0.
    #[must_use]
    pub fn place(&self, node: NodeId) -> Option<usize> {
        // Simulated nodes are numbered from 0, so their places are their numbers.
        let at = node as usize;
        if self.members.get(at).is_some_and(|m| m.node == node) {
            return Some(at);
        }
        self.members.binary_search_by_key(&node, |m| m.node).ok()
    }

    /// Generation of a member.
    #[must_use]
    pub fn generation(&self, node: NodeId) -> Option<u32> {
        let member = self.place(node).and_then(|at| self.members.get(at));
        member.map(|member| member.generation)
    }

    /// Returns true if the node is a member, in that generation or an earlier one.
    #[must_use]
    pub fn is_current(&self, node: NodeId, generation: u32) -> bool {
        self.generation(node)
            .is_some_and(|known| known <= generation)
    }

    /// Node that keeps the page's directory entry: the user of a private page, else the owner of the page's
    /// bucket. `None` if there are no members.
    #[must_use]
    pub fn owner(&self, uid: Uid) -> Option<NodeId> {
        uid.user().or_else(|| self.owners.get(bucket(uid)).copied())
    }

    /// Node that keeps the page's directory entry, and the node's generation if it is a member.
    #[must_use]
    pub fn place_of_entry(&self, uid: Uid) -> Option<(NodeId, Option<u32>)> {
        self.owner(uid).map(|node| (node, self.generation(node)))
    }

    /// Owner of each bucket.
    #[must_use]
    pub fn owners(&self) -> &[NodeId] {
        &self.owners
    }

    /// Homes of the page under the policy `hash`, first choice first.
    #[must_use]
    pub fn homes(&self, uid: Uid) -> &[NodeId] {
        self.homes.get(bucket(uid)).map_or(&[], Vec::as_slice)
    }
}

/// Bucket of a page.
fn bucket(uid: Uid) -> usize {
    (uid.hash() >> 52) as usize
}

/// Score of a node for a bucket; the highest score wins (Thaler and Ravishankar, 1998: rendezvous hashing).
fn score(bucket: usize, node: NodeId) -> u64 {
    mix(mix(bucket as u64) ^ u64::from(node))
}

/// Score of a node for a bucket that is proportional to an exponential variable with the node's frames as its
/// rate: the lowest score wins, with probability by frames (weighted rendezvous hashing).
fn weighted_score(bucket: usize, member: &Member) -> u128 {
    (u128::from(negative_log2(score(bucket, member.node))) << 32) / u128::from(member.frames.max(1))
}

/// Binary logarithm of 2⁶⁴ / `number`, in units of 2⁻²⁴; in integers, so that every machine has the same.
fn negative_log2(number: u64) -> u64 {
    let number = number.max(1);
    let mut mantissa = number << number.leading_zeros();
    let mut log = u64::from(number.ilog2());
    for _ in 0..24 {
        let square = u128::from(mantissa) * u128::from(mantissa);
        let is_two = square >> 127 == 1;
        log = (log << 1) | u64::from(is_two);
        mantissa = (square >> if is_two { 64 } else { 63 }) as u64;
    }
    (64 << 24) - log
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cluster(nodes: impl Iterator<Item = NodeId>) -> Members {
        let member = |node| Member {
            node,
            generation: 1,
            frames: 100,
        };
        Members::new(nodes.map(member).collect(), 0)
    }

    #[test]
    fn ten_members_have_equal_shares_within_a_fifth() {
        let members = cluster(0..10);
        for node in 0..10 {
            let share = members.owners().iter().filter(|owner| **owner == node);
            let count = share.count();
            assert!((328..=491).contains(&count), "node {node}: {count} of 4096");
        }
    }

    proptest! {
        #[test]
        fn a_member_moves_its_own_buckets_alone(count in 1..40u32, leaves in any::<prop::sample::Index>()) {
            let gone = leaves.index(count as usize) as u32;
            let (before, after) = (cluster(0..count), cluster((0..count).filter(|n| *n != gone)));
            for (before, after) in before.owners().iter().zip(after.owners()) {
                prop_assert!(before == after || *before == gone);
            }
        }
    }

    #[test]
    fn homes_are_drawn_by_frames() {
        let frames = [100, 200, 700, 0];
        let member = |(node, frames)| Member {
            node,
            generation: 1,
            frames,
        };
        let members = Members::new((0..).zip(frames).map(member).collect(), 2);
        let first = |node| {
            let homes = (0..40_960).map(|n| members.homes(Uid::shared(n)).to_vec());
            homes.filter(|homes| homes[0] == node).count() as f64 / 40_960.0
        };
        for (node, share) in [(0, 0.1), (1, 0.2), (2, 0.7), (3, 0.0)] {
            assert!(
                (first(node) - share).abs() < 0.03,
                "{node}: {}",
                first(node)
            );
        }
        assert_eq!(members.homes(Uid::shared(5)).len(), 2);
    }

    #[test]
    fn logarithms_are_exact_at_powers_of_two() {
        assert_eq!(negative_log2(1 << 63), 1 << 24);
        assert_eq!(negative_log2(1), 64 << 24);
        // The binary logarithm of 3 is 1.58496, that of 3 · 2⁶⁰ / 2⁶⁴ is 4 less.
        let ratio = negative_log2(3 << 60) as f64 / f64::from(1 << 24);
        assert!((ratio - (4.0 - 1.584_962_5)).abs() < 1e-6, "{ratio}");
    }

    #[test]
    fn the_latest_generation_counts() {
        let member = |node, generation| Member {
            node,
            generation,
            frames: 1,
        };
        let members = Members::new(vec![member(2, 1), member(1, 1), member(2, 3)], 0);
        assert_eq!(members.list(), [member(1, 1), member(2, 3)]);
        assert!(members.is_current(2, 3) && members.is_current(2, 4));
        assert!(!members.is_current(2, 1) && !members.is_current(3, 1));
        assert_eq!(
            [1, 2, 3].map(|node| members.place(node)),
            [Some(0), Some(1), None]
        );
        assert_eq!(
            [0, 1, 5].map(|node| cluster(0..5).place(node)),
            [Some(0), Some(1), None]
        );
        assert_eq!(Members::default().owner(Uid::shared(1)), None);
        assert_eq!(members.owner(Uid::private(9, 1)), Some(9));
    }
}
