//! Weights of the nodes, and the minimum age, of one epoch (GMS, section 3.2). All in integers.

use super::age::{CLASSES, INFINITE_MS, OLD_MS, Summary, class_begin_ms, class_of};
use super::uid::{NodeId, below};
use std::cmp::Reverse;

/// Shortest length of an epoch.
pub const SHORTEST_EPOCH_MS: i64 = 5_000;
/// Longest length of an epoch.
pub const LONGEST_EPOCH_MS: i64 = 10_000;
/// Least number of replacements in an epoch with weights.
pub const FEWEST_REPLACEMENTS: u64 = 64;
/// Largest cluster whose nodes receive the weights of all others.
pub const MOST_WHOLE: usize = 256;
/// Targets that a node of a larger cluster receives.
pub const SAMPLED_TARGETS: u64 = 64;

/// Expected replacements per second in the cluster, in thousandths: mean of the last estimate and the last
/// epoch's rate.
#[must_use]
pub fn replacement_rate(last_milli_per_s: u64, replaced: u64, elapsed_ms: i64) -> u64 {
    let elapsed_ms = u64::try_from(elapsed_ms).unwrap_or(0).max(1);
    last_milli_per_s.saturating_add(replaced.saturating_mul(1_000_000) / elapsed_ms) / 2
}

/// Length and number of replacements of one epoch: T and M of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochPlan {
    /// Longest time that the epoch lasts.
    pub length_ms: i64,
    /// Replacements after which the epoch ends.
    pub replacements: u64,
}

impl EpochPlan {
    /// Plan for a rate in thousandths per second, the cluster's number of old frames, and of all frames.
    #[must_use]
    pub fn new(rate_milli_per_s: u64, old_frames: u64, frames: u64) -> Self {
        let (shortest, longest) = (SHORTEST_EPOCH_MS as u128, LONGEST_EPOCH_MS as u128);
        let rate = u128::from(rate_milli_per_s);
        let length_ms = match (u128::from(old_frames) * 1_000_000).checked_div(4 * rate) {
            Some(length_ms) => length_ms.clamp(shortest, longest),
            None => longest,
        };
        let most = u128::from(FEWEST_REPLACEMENTS.max(frames / 4));
        let expected = (5 * rate * length_ms).div_ceil(4_000_000);
        let replacements = expected.clamp(u128::from(FEWEST_REPLACEMENTS), most);
        Self {
            length_ms: length_ms as i64,
            replacements: replacements as u64,
        }
    }
}

/// Old frames of all nodes: those of at least [`OLD_MS`], and free ones.
#[must_use]
pub fn old_frames(summaries: &[Summary]) -> u64 {
    let old = |s: &Summary| {
        let classes = s.classes.iter().skip(class_of(OLD_MS));
        u64::from(s.free_frames) + classes.map(|n| u64::from(*n)).sum::<u64>()
    };
    summaries.iter().map(old).sum()
}

/// Each node's share of an epoch's replacements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// Weights, in the order of the summaries. Their sum is the number of replacements, or 0.
    pub weights: Vec<u64>,
    /// Age from which a page leaves the cluster; 0 if every evicted page does.
    pub min_age_ms: u64,
}

impl Division {
    /// Divides `replacements` among the nodes that hold the cluster's oldest frames. If fewer frames are old,
    /// all weights and the minimum age are 0.
    #[must_use]
    pub fn new(summaries: &[Summary], replacements: u64) -> Self {
        let none = Self {
            weights: vec![0; summaries.len()],
            min_age_ms: 0,
        };
        if replacements == 0 || old_frames(summaries) < replacements {
            return none;
        }
        let mut totals = [0_u64; CLASSES];
        for summary in summaries {
            for (total, n) in totals.iter_mut().zip(&summary.classes) {
                *total += u64::from(*n);
            }
        }
        let free: u64 = summaries.iter().map(|s| u64::from(s.free_frames)).sum();
        if free >= replacements {
            let in_class = summaries.iter().map(|s| (0, u64::from(s.free_frames)));
            return Self {
                weights: share(in_class, free, replacements),
                min_age_ms: INFINITE_MS,
            };
        }
        let mut older = free;
        for (class, n) in totals.iter().copied().enumerate().rev() {
            if older + n < replacements {
                older += n;
                continue;
            }
            let wanted = replacements - older;
            let in_class = summaries.iter().map(|s| {
                let above: u64 = s
                    .classes
                    .iter()
                    .skip(class + 1)
                    .map(|n| u64::from(*n))
                    .sum();
                let here = s.classes.get(class).copied().unwrap_or(0);
                (u64::from(s.free_frames) + above, u64::from(here))
            });
            let (begin, end) = (class_begin_ms(class), class_begin_ms(class + 1));
            let rest = u128::from(end - begin) * u128::from(n - wanted) / u128::from(n);
            return Self {
                weights: share(in_class, n, wanted),
                min_age_ms: begin + rest as u64,
            };
        }
        none
    }

    /// Indexes of the nodes with the largest weights, largest first; ties go to the lower index.
    #[must_use]
    pub fn largest(&self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.weights.len()).collect();
        let key = |i: &usize| (Reverse(self.weights.get(*i).copied().unwrap_or(0)), *i);
        if count < all.len() {
            all.select_nth_unstable_by_key(count, key);
            all.truncate(count);
        }
        all.sort_unstable_by_key(key);
        all
    }
}

/// Weights of nodes, each given by its frames in older classes and its frames in the last class. Of the `n`
/// frames of the last class, `wanted` are shared by largest remainder; ties go to the lower index.
fn share(nodes: impl Iterator<Item = (u64, u64)>, n: u64, wanted: u64) -> Vec<u64> {
    let mut remainders = Vec::new();
    let mut left = wanted;
    let mut weights: Vec<u64> = Vec::new();
    for (i, (older, here)) in nodes.enumerate() {
        let product = u128::from(wanted) * u128::from(here);
        let whole = (product / u128::from(n)) as u64;
        remainders.push((Reverse((product % u128::from(n)) as u64), i));
        left -= whole;
        weights.push(older + whole);
    }
    let left = (left as usize).min(remainders.len());
    if left > 0 && left < remainders.len() {
        remainders.select_nth_unstable(left);
    }
    for (_, i) in remainders.iter().take(left) {
        if let Some(weight) = weights.get_mut(*i) {
            *weight += 1;
        }
    }
    weights
}

/// Weights of all nodes with their running sums, from which each node's targets are made.
#[derive(Clone, Debug)]
pub struct TargetTable {
    nodes: Vec<(NodeId, u64)>,
    /// Sum of the weights up to and including each node.
    sums: Vec<u64>,
    is_whole: bool,
}

impl TargetTable {
    /// Table of the nodes' weights.
    #[must_use]
    pub fn new(weights: impl Iterator<Item = (NodeId, u64)>) -> Self {
        let all: Vec<_> = weights.collect();
        let is_whole = all.len() <= MOST_WHOLE;
        let nodes: Vec<_> = all.into_iter().filter(|(_, weight)| *weight > 0).collect();
        let mut sum = 0_u64;
        let add = |(_, weight): &(NodeId, u64)| {
            sum += weight;
            sum
        };
        let sums = nodes.iter().map(add).collect();
        Self {
            nodes,
            sums,
            is_whole,
        }
    }

    /// Other nodes to which `node` may put pages, with their weights. In a cluster of more than
    /// [`MOST_WHOLE`] nodes this is a systematic sample of [`SAMPLED_TARGETS`] by weight.
    pub fn targets_of(&self, node: NodeId, random: &mut dyn FnMut() -> u64) -> Vec<(NodeId, u64)> {
        if self.is_whole {
            let others = self.nodes.iter().filter(|(other, _)| *other != node);
            return others.copied().collect();
        }
        let Some(sum) = self.sums.last().copied() else {
            return Vec::new();
        };
        let mut targets: Vec<(NodeId, u64)> = Vec::new();
        let offset = random();
        for i in 0..SAMPLED_TARGETS {
            // The i-th of 64 equally spaced points, all moved by the same random part of the space.
            let point = (u128::from(i) << 64) + u128::from(offset);
            let point = ((point * u128::from(sum)) >> 64) as u64 / SAMPLED_TARGETS;
            let at = self.sums.partition_point(|end| *end <= point);
            let Some((target, _)) = self.nodes.get(at).filter(|(target, _)| *target != node) else {
                continue;
            };
            match targets.last_mut().filter(|(last, _)| last == target) {
                Some((_, count)) => *count += 1,
                None => targets.push((*target, 1)),
            }
        }
        targets
    }
}

/// Node that receives an evicted page of `node`: target i with probability `w_i` by the sum of the others'
/// weights. Returns `None` if no other node has a weight.
#[must_use]
pub fn draw(targets: &[(NodeId, u64)], node: NodeId, random_number: u64) -> Option<NodeId> {
    let others = || targets.iter().filter(|(other, _)| *other != node);
    let sum: u64 = others().map(|(_, weight)| *weight).sum();
    let mut left = below(sum, random_number);
    for (target, weight) in others() {
        match left.checked_sub(*weight) {
            Some(less) => left = less,
            None => return Some(*target),
        }
    }
    None
}
