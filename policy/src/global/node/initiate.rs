//! Epochs: summaries, the initiator's work, early ends, and initiators that fail.

use super::{Node, Turn};
use crate::global::age::Summary;
use crate::global::epoch::Gathering;
use crate::global::message::{Message, Weights};
use crate::global::settings::MemoryPolicy;
use crate::global::uid::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Node {
    /// Begins an epoch when it is this node's turn, and ends the wait for summaries.
    pub(super) fn initiate(&mut self, turn: &mut Turn<'_>) {
        if self.settings.policy != MemoryPolicy::Gms {
            return;
        }
        if self.gathering.is_some() {
            return self.weigh_if_complete(turn);
        }
        let begin_ms = self.epoch.next_begin_ms(self.id, &self.members);
        if begin_ms.is_some_and(|begin_ms| begin_ms <= turn.now_ms) {
            self.begin_epoch(turn);
        }
    }

    /// The epoch in force is over before its time.
    pub(super) fn end_epoch(&mut self, epoch: u64, turn: &mut Turn<'_>) {
        if epoch == self.epoch.weights.epoch && self.gathering.is_none() {
            self.begin_epoch(turn);
        }
    }

    fn begin_epoch(&mut self, turn: &mut Turn<'_>) {
        let last = self.epoch.weights.epoch.max(self.epoch.reported.0);
        let epoch = last.saturating_add(1);
        self.gathering = Some(Gathering {
            epoch,
            begun_ms: turn.now_ms,
            elapsed_ms: turn.now_ms.saturating_sub(self.epoch.begun_ms),
            last_rate_milli_per_s: self.epoch.weights.rate_milli_per_s,
            summaries: BTreeMap::new(),
        });
        let members = Arc::clone(&self.members);
        for member in members.list() {
            self.tell(member.node, Message::ReportPlease { epoch }, turn);
        }
    }

    /// Sends a summary to an initiator. An initiator with a lower number stops its own work.
    pub(super) fn report(&mut self, initiator: NodeId, epoch: u64, turn: &mut Turn<'_>) {
        let Some(counts) = self.epoch.report(epoch, initiator, turn.now_ms) else {
            return;
        };
        self.yield_to(epoch, initiator);
        let boost = self.settings.boost_quarters;
        let summary = Summary {
            replaced: counts.replaced,
            received: counts.received,
            stale: counts.stale,
            ..self.pages.summary(boost, turn.now_ms)
        };
        let summary = Arc::new(summary);
        self.tell(initiator, Message::Summary { epoch, summary }, turn);
    }

    /// Stops this node's work as initiator if another one has precedence.
    fn yield_to(&mut self, epoch: u64, initiator: NodeId) {
        let id = self.id;
        let is_lower = |own: &Gathering| (own.epoch, id) < (epoch, initiator);
        if self.gathering.as_ref().is_some_and(is_lower) {
            self.gathering = None;
        }
    }

    /// Records a summary; the last one completes the initiator's work.
    pub(super) fn gather(
        &mut self,
        from: NodeId,
        epoch: u64,
        summary: &Summary,
        turn: &mut Turn<'_>,
    ) {
        let Some(gathering) = self.gathering.as_mut().filter(|own| own.epoch == epoch) else {
            return;
        };
        gathering.summaries.insert(from, summary.clone());
        self.weigh_if_complete(turn);
    }

    fn weigh_if_complete(&mut self, turn: &mut Turn<'_>) {
        let members = Arc::clone(&self.members);
        let is_complete = |own: &mut Gathering| own.is_complete(&members, turn.now_ms);
        let Some(gathering) = self.gathering.take_if(is_complete) else {
            return;
        };
        for (node, weights) in gathering.weigh(self.id, &members, turn.random) {
            self.tell(node, Message::Weights(Arc::new(weights)), turn);
        }
    }

    /// Takes over the parameters of an epoch.
    pub(super) fn accept(&mut self, weights: &Weights) {
        if self.epoch.accept(weights.clone(), self.now_ms) {
            self.yield_to(weights.epoch, weights.initiator);
        }
    }
}
