//! Epochs: summaries for the recruiters, and the weights that they send.

use super::{Consequence, GlobalMemory};
use gleaner_policy::global::NodeId;
use gleaner_policy::global::age::INFINITE_MS;
use gleaner_policy::global::message::{self, Message};
use gleaner_schemas::commons::{Summary, Weights};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Epoch in force on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpochStatus {
    /// Number of the epoch; 0 before the first.
    pub number: u64,
    /// Time since its weights arrived, in ms; absent before the first.
    pub weights_age_ms: Option<i64>,
    /// Age from which an evicted block is dropped, in ms; absent: no age. Without recent weights it is 0.
    pub min_age_ms: Option<u64>,
    /// Weight of this host, in blocks.
    pub own_weight: u64,
    /// Numbers of the other hosts that receive evicted blocks, with their weights.
    pub targets: Vec<(NodeId, u64)>,
}

impl GlobalMemory {
    /// Highest (epoch, initiator) to which this host has reported.
    #[must_use]
    pub fn reported_epoch(&self) -> (u64, NodeId) {
        self.lock().node.epoch().reported
    }

    /// Answers an initiator; `None` if this host follows a later epoch.
    #[must_use]
    pub fn report(&self, epoch: u64, initiator: NodeId) -> Option<Summary> {
        let consequences = self.message(initiator, Message::ReportPlease { epoch }, None);
        let summary = consequences.into_iter().find_map(|one| match one {
            Consequence::Report(summary) => Some(summary),
            _ => None,
        })?;
        Some(Summary {
            epoch,
            classes: summary.classes.to_vec(),
            free_frames: summary.free_frames,
            replaced: summary.replaced,
            received: summary.received,
            stale: summary.stale,
        })
    }

    /// Takes over the weights of an epoch. `is_target` returns false for hosts that receive no blocks now.
    pub fn accept(&self, weights: &Weights, is_target: impl Fn(NodeId) -> bool) {
        let targets = weights.targets.iter().copied();
        let accepted = message::Weights {
            epoch: weights.epoch,
            initiator: weights.initiator,
            length_ms: weights.length_ms,
            min_age_ms: weights.min_age_ms.unwrap_or(INFINITE_MS),
            rate_milli_per_s: 0, // for initiators, which hosts never are
            own_weight: weights.own_weight,
            is_counter: weights.is_counter,
            successors: vec![weights.initiator],
            targets: targets.filter(|(node, _)| is_target(*node)).collect(),
        };
        let message = Message::Weights(Arc::new(accepted));
        self.message(weights.initiator, message, None);
        self.lock().quota_bytes = weights.quota_bytes;
    }

    /// Quota of this host by the last weights; `None` before the first, or without a memory server.
    #[must_use]
    pub fn quota_bytes(&self) -> Option<u64> {
        self.lock().quota_bytes
    }

    /// Epoch in force now.
    #[must_use]
    pub fn epoch(&self) -> EpochStatus {
        let state = self.lock();
        let (epoch, now_ms) = (state.node.epoch(), self.now_ms());
        let min_age_ms = epoch.min_age_ms(now_ms);
        EpochStatus {
            number: epoch.weights.epoch,
            weights_age_ms: epoch.weighed_ms.map(|at_ms| now_ms.saturating_sub(at_ms)),
            min_age_ms: (min_age_ms < INFINITE_MS).then_some(min_age_ms),
            own_weight: epoch.weights.own_weight,
            targets: epoch.weights.targets.clone(),
        }
    }
}
