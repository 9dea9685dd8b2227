//! Policies of placement.

use super::state::Epoch;
use super::{Candidate, EPOCH_MS, Placement, Request, State};
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

/// Request and candidates of one choice of hosts.
pub(super) struct Choice<'a> {
    pub(super) request: &'a Request<'a>,
    /// Bytes, in whole slabs.
    pub(super) bytes: u64,
    pub(super) candidates: &'a [Candidate],
    /// Indices of the hosts that have room and have not failed; at least as many as copies.
    pub(super) eligible: Vec<usize>,
    pub(super) now_ms: i64,
}

impl Choice<'_> {
    pub(super) fn of(
        self,
        placement: Placement,
        state: &mut State,
        random: &mut dyn FnMut() -> u64,
    ) -> Vec<usize> {
        match placement {
            Placement::Random => self.random(Vec::new(), random),
            Placement::FewestPages => self.best(|a, b| a.lent_bytes.cmp(&b.lent_bytes)),
            Placement::FewestRequests => {
                self.best(|a, b| a.requests_per_s.total_cmp(&b.requests_per_s))
            }
            Placement::Spread => self.best(|a, b| a.client_bytes.cmp(&b.client_bytes)),
            Placement::Stick => self.stick(state, random),
            Placement::EpochWeights => self.by_weights(state.epoch(), random),
            Placement::LongestAvailable => self.best(|a, b| {
                let stays = odds(b).total_cmp(&odds(a));
                stays.then(b.idle_for_ms.cmp(&a.idle_for_ms))
            }),
        }
    }

    /// Chooses the first hosts by `order`; ties go to more free memory, then to the lower id.
    fn best(mut self, order: impl Fn(&Candidate, &Candidate) -> Ordering) -> Vec<usize> {
        let all = self.candidates;
        let order = |&a: &usize, &b: &usize| {
            let rest = |i: usize| (Reverse(all[i].unleased_bytes), &all[i].host_id);
            order(&all[a], &all[b]).then_with(|| rest(a).cmp(&rest(b)))
        };
        // Only a few of thousands are needed: sorting all would take most of a grant's time.
        let copies = self.request.copies;
        if copies < self.eligible.len() {
            self.eligible.select_nth_unstable_by(copies, order);
            self.eligible.truncate(copies);
        }
        self.eligible.sort_unstable_by(order);
        self.eligible
    }

    /// Extends `chosen` with random hosts, all equally likely.
    fn random(mut self, mut chosen: Vec<usize>, random: &mut dyn FnMut() -> u64) -> Vec<usize> {
        chosen.truncate(self.request.copies);
        self.eligible.retain(|i| !chosen.contains(i));
        while chosen.len() < self.request.copies && !self.eligible.is_empty() {
            let at = below(self.eligible.len() as u64, random) as usize;
            chosen.push(self.eligible.swap_remove(at));
        }
        chosen
    }

    fn stick(self, state: &mut State, random: &mut dyn FnMut() -> u64) -> Vec<usize> {
        let (client, all, now_ms) = (self.request.client, self.candidates, self.now_ms);
        let good = state.last_hosts(client).iter();
        let place = |id: &Arc<str>| self.eligible.iter().find(|i| all[**i].host_id == *id);
        let good = good.filter_map(place).copied().collect();
        let chosen = self.random(good, random);
        let ids = chosen.iter().map(|i| all[*i].host_id.clone()).collect();
        state.remember(client, ids, now_ms);
        chosen
    }

    fn by_weights(
        mut self,
        epoch: &mut Option<Epoch>,
        random: &mut dyn FnMut() -> u64,
    ) -> Vec<usize> {
        let is_over = |e: &Epoch| self.now_ms.saturating_sub(e.since_ms) >= EPOCH_MS;
        if epoch.as_ref().is_some_and(is_over) {
            *epoch = None;
        }
        let mut chosen = Vec::new();
        while chosen.len() < self.request.copies && !self.eligible.is_empty() {
            let weights = &mut epoch.get_or_insert_with(|| self.new_epoch()).weights;
            let weight = |i: &usize| {
                let weight = weights.get(&self.candidates[*i].host_id);
                u128::from(weight.copied().unwrap_or(0))
            };
            let sum: u128 = self.eligible.iter().map(weight).sum();
            if sum == 0 {
                // Weights are used up. Every eligible host has room, hence a weight in the new epoch.
                *epoch = Some(self.new_epoch());
                continue;
            }
            // `random()` is a fraction of 2^64; the sum of all hosts' memory is far below that.
            let mut left = (u128::from(random()) * sum) >> 64;
            let is_it = |i: &usize| match left.checked_sub(weight(i)) {
                Some(less) => {
                    left = less;
                    false
                }
                None => true,
            };
            let at = self.eligible.iter().position(is_it).unwrap_or(0);
            let i = self.eligible.swap_remove(at);
            if let Some(weight) = weights.get_mut(&self.candidates[i].host_id) {
                *weight = weight.saturating_sub(self.bytes);
            }
            chosen.push(i);
        }
        chosen
    }

    fn new_epoch(&self) -> Epoch {
        let weight = |c: &Candidate| (c.host_id.clone(), c.unleased_bytes.min(LARGEST_BYTES));
        Epoch {
            since_ms: self.now_ms,
            // Reversed, so that if a host is listed twice, its first candidate counts, as elsewhere.
            // Otherwise an eligible host could have no weight, and new epochs would begin for ever.
            weights: self.candidates.iter().rev().map(weight).collect(),
        }
    }
}

/// Upper limit of a host's memory: no host has more, so sums of weights stay exact.
const LARGEST_BYTES: u64 = 1 << 50;

/// Probability that the host's memory stays; one half if unknown.
fn odds(candidate: &Candidate) -> f64 {
    let known = candidate.stays.filter(|p| (0.0..=1.0).contains(p));
    known.unwrap_or(0.5)
}

/// A random number below `count`; probabilities differ from uniform by less than 2^-64 of `count`.
fn below(count: u64, random: &mut dyn FnMut() -> u64) -> u64 {
    ((u128::from(random()) * u128::from(count)) >> 64) as u64
}
