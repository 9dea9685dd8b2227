//! Epochs of one node: the parameters in force, and the work of an initiator.

use super::age::{INFINITE_MS, Summary};
use super::members::{Member, Members};
use super::message::Weights;
use super::uid::NodeId;
use super::weights::{Division, EpochPlan, TargetTable, old_frames, replacement_rate};
use std::collections::BTreeMap;

/// Time without weights after which a node drops all evicted pages.
pub const SILENCE_MS: i64 = 30_000;
/// Time after which the next node in line replaces a silent initiator.
pub const TAKEOVER_MS: i64 = 2_000;
/// Longest time for which an initiator waits for summaries.
pub const GATHER_MS: i64 = 500;
/// Nodes that are named as next initiators.
pub const SUCCESSORS: usize = 3;
/// Fewest young victims after which a node reports inaccurate ages.
pub const FEWEST_STALE: u64 = 8;

/// Parameters in force on one node, and its counts since its last summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// Parameters of the initiator; epoch 0 before the first ones.
    pub weights: Weights,
    /// Time of the summary from which the weights were made, on this node's clock.
    pub begun_ms: i64,
    /// Time of the last message of an initiator.
    pub heard_ms: i64,
    /// Time of the last weights; `None` before the first ones.
    pub weighed_ms: Option<i64>,
    /// Highest (epoch, initiator) to which the node has sent a summary.
    pub reported: (u64, NodeId),
    /// Time of the summary for `reported`.
    pub reported_ms: i64,
    /// Counts since the last summary.
    pub counts: Counts,
    /// True if this node has reported the end of the epoch.
    pub has_ended: bool,
}

/// Counts of a node in one epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Pages that the cluster lost, or stored in place of another, by this node's decision.
    pub replaced: u32,
    /// Pages that were put to this node, and are stored.
    pub received: u32,
    /// Pages that were put to this node while its oldest was younger than the minimum age.
    pub stale: u32,
}

impl Epoch {
    /// Epoch of a node that starts at `now_ms`.
    #[must_use]
    pub fn new(now_ms: i64) -> Self {
        Self {
            heard_ms: now_ms,
            begun_ms: now_ms,
            ..Self::default()
        }
    }

    /// Age from which an evicted page is dropped; 0 without recent weights.
    #[must_use]
    pub fn min_age_ms(&self, now_ms: i64) -> u64 {
        let is_recent = |ms: i64| now_ms.saturating_sub(ms) < SILENCE_MS;
        if self.weighed_ms.is_some_and(is_recent) {
            self.weights.min_age_ms
        } else {
            0
        }
    }

    /// Accepts the request of an initiator; returns the counts for the summary, or `None` if the node has
    /// reported to a later or equal (epoch, initiator).
    pub fn report(&mut self, epoch: u64, initiator: NodeId, now_ms: i64) -> Option<Counts> {
        let current = (self.weights.epoch, self.weights.initiator);
        if (epoch, initiator) <= self.reported.max(current) {
            return None;
        }
        self.reported = (epoch, initiator);
        self.reported_ms = now_ms;
        self.heard_ms = now_ms;
        Some(std::mem::take(&mut self.counts))
    }

    /// Accepts an initiator's weights. Returns false, and changes nothing, if they are not newer than those
    /// in force, or if the node has reported to a later initiator.
    pub fn accept(&mut self, weights: Weights, now_ms: i64) -> bool {
        let key = (weights.epoch, weights.initiator);
        if key <= (self.weights.epoch, self.weights.initiator) || key < self.reported {
            return false;
        }
        self.begun_ms = if key == self.reported {
            self.reported_ms
        } else {
            now_ms
        };
        self.reported = key;
        self.weights = weights;
        self.heard_ms = now_ms;
        self.weighed_ms = Some(now_ms);
        self.has_ended = false;
        true
    }

    /// Counts a page that was stored or refreshed for another node.
    pub fn count_received(&mut self) {
        self.counts.received = self.counts.received.saturating_add(1);
        self.counts.replaced = self.counts.replaced.saturating_add(1);
    }

    /// Counts a page whose arrival found an oldest page younger than the minimum age.
    pub fn count_stale(&mut self, oldest_age_ms: u64, now_ms: i64) {
        if oldest_age_ms < self.min_age_ms(now_ms) && oldest_age_ms < INFINITE_MS {
            self.counts.stale = self.counts.stale.saturating_add(1);
        }
    }

    /// Returns true once if the epoch ends early: the counter's weight is used up, or ages are inaccurate.
    pub fn ends_early(&mut self) -> bool {
        let own = self.weights.own_weight;
        let is_used_up =
            self.weights.is_counter && own > 0 && u64::from(self.counts.received) >= own;
        let is_inaccurate = u64::from(self.counts.stale) >= FEWEST_STALE.max(own / 4);
        let ends = (is_used_up || is_inaccurate) && !self.has_ended;
        self.has_ended |= ends;
        ends
    }

    /// Time at which `node` begins the next epoch, if no other node does so before.
    #[must_use]
    pub fn next_begin_ms(&self, node: NodeId, members: &Members) -> Option<i64> {
        let successors = &self.weights.successors;
        let place = members.place(node)?;
        let rank = successors.iter().position(|other| *other == node);
        let rank = rank.unwrap_or(successors.len() + place) as i64;
        let wait_ms = rank.saturating_mul(TAKEOVER_MS);
        let end_ms = self.heard_ms.saturating_add(self.weights.length_ms);
        Some(end_ms.saturating_add(wait_ms))
    }
}

/// Work of an initiator between its requests and the weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gathering {
    /// Number of the new epoch.
    pub epoch: u64,
    /// Time of the requests.
    pub begun_ms: i64,
    /// Time since the begin of the last epoch.
    pub elapsed_ms: i64,
    /// Estimate of the last initiator.
    pub last_rate_milli_per_s: u64,
    /// Summaries by node.
    pub summaries: BTreeMap<NodeId, Summary>,
}

impl Gathering {
    /// Returns true if every member has reported, or the time for it is over.
    #[must_use]
    pub fn is_complete(&self, members: &Members, now_ms: i64) -> bool {
        let has = |member: &Member| self.summaries.contains_key(&member.node);
        now_ms.saturating_sub(self.begun_ms) >= GATHER_MS || members.list().iter().all(has)
    }

    /// Computes the parameters of the epoch for every member.
    pub fn weigh(
        self,
        initiator: NodeId,
        members: &Members,
        random: &mut dyn FnMut() -> u64,
    ) -> Vec<(NodeId, Weights)> {
        let (nodes, summaries): (Vec<NodeId>, Vec<Summary>) = self.summaries.into_iter().unzip();
        let replaced = summaries.iter().map(|s| u64::from(s.replaced)).sum();
        let frames = summaries.iter().map(Summary::frames).sum();
        let rate = replacement_rate(self.last_rate_milli_per_s, replaced, self.elapsed_ms);
        let plan = EpochPlan::new(rate, old_frames(&summaries), frames);
        let division = Division::new(&summaries, plan.replacements);
        let successors: Vec<NodeId> = division
            .largest(SUCCESSORS)
            .into_iter()
            .filter_map(|at| nodes.get(at).copied())
            .collect();
        let weighted = || nodes.iter().copied().zip(division.weights.iter().copied());
        let table = TargetTable::new(weighted());
        let own: BTreeMap<NodeId, u64> = weighted().collect();
        let mut all = Vec::with_capacity(members.list().len());
        for node in members.list().iter().map(|member| member.node) {
            let weights = Weights {
                epoch: self.epoch,
                initiator,
                length_ms: plan.length_ms,
                min_age_ms: division.min_age_ms,
                rate_milli_per_s: rate,
                own_weight: own.get(&node).copied().unwrap_or(0),
                is_counter: successors.first() == Some(&node),
                successors: successors.clone(),
                targets: table.targets_of(node, random),
            };
            all.push((node, weights));
        }
        all
    }
}
