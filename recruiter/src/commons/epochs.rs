//! Epochs of one commons, as this recruiter begins them by the rules of `policy::global`.
//!
//! Numbers of epochs are not below the time in seconds. So a restarted recruiter continues above its former
//! numbers, and a member that announces a number far in the future is recognized.

use gleaner_policy::global::NodeId;
use gleaner_policy::global::age::{INFINITE_MS, Summary};
use gleaner_policy::global::epoch::{Gathering, TAKEOVER_MS};
use gleaner_policy::global::members::Members;
use gleaner_policy::global::message::Weights;
use gleaner_policy::global::weights::LONGEST_EPOCH_MS;
use gleaner_schemas::commons::ReportPlease;
use std::collections::BTreeMap;

/// Minimum time between two epochs, however often members report that an epoch is over.
pub(super) const LEAST_EPOCH_MS: i64 = 1000;

/// Largest number of seconds by which an epoch's number may be ahead of this recruiter's clock.
const MOST_AHEAD_S: u64 = 2 * 86_400;

/// Present time, on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Time since the recruiter's start, on a clock that never goes back.
    pub(crate) now_ms: i64,
    /// Time since 1970-01-01 UTC.
    pub(crate) time_s: u64,
}

/// Result of the last weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WeightsRecord {
    pub(super) sent_ms: i64,
    /// Age from which an evicted block is dropped; `None`: no age.
    pub(super) min_age_ms: Option<u64>,
    /// Sum of all weights, in frames.
    pub(super) sum: u64,
}

/// Message that follows from the time or from a summary.
#[derive(Debug)]
pub(super) enum EpochStep {
    /// All members are asked for a summary.
    Request(ReportPlease),
    /// Parameters of the new epoch, for each member.
    Weights(Vec<(NodeId, Weights)>),
}

/// Newest epoch of a commons, and the work on the next one.
#[derive(Debug)]
pub(super) struct Epochs {
    /// Number of this recruiter as an initiator.
    initiator: NodeId,
    /// Highest (epoch, initiator) that this recruiter has begun or heard of.
    newest: (u64, NodeId),
    /// Time at which this recruiter began its last epoch.
    begun_ms: i64,
    /// Time of the next epoch.
    next_ms: i64,
    rate_milli_per_s: u64,
    gathering: Option<Gathering>,
    weighed: Option<WeightsRecord>,
}

impl Epochs {
    pub(super) fn new(initiator: NodeId, now_ms: i64) -> Self {
        Self {
            initiator,
            newest: (0, 0),
            begun_ms: now_ms,
            // Members that link at the same time are part of the first epoch.
            next_ms: now_ms.saturating_add(LEAST_EPOCH_MS),
            rate_milli_per_s: 0,
            gathering: None,
            weighed: None,
        }
    }

    /// Number of the newest epoch.
    pub(super) fn number(&self) -> u64 {
        self.newest.0
    }

    /// Returns true if this recruiter began the newest epoch.
    pub(super) fn is_initiator(&self) -> bool {
        self.newest.1 == self.initiator
    }

    pub(super) fn weighed(&self) -> Option<WeightsRecord> {
        self.weighed
    }

    /// Returns true if no honest recruiter can have begun an epoch of this number yet.
    pub(super) fn is_beyond_reason(epoch: u64, now: Moment) -> bool {
        epoch > now.time_s.saturating_add(MOST_AHEAD_S)
    }

    /// Records the newest epoch of a member. If another recruiter began it, this one waits until that epoch is
    /// over for certain; it then takes over.
    pub(super) fn heard(&mut self, epoch: u64, initiator: NodeId, now_ms: i64) {
        if (epoch, initiator) <= self.newest {
            return;
        }
        self.newest = (epoch, initiator);
        if initiator != self.initiator {
            self.gathering = None;
            self.next_ms = now_ms.saturating_add(LONGEST_EPOCH_MS + TAKEOVER_MS);
        }
    }

    /// Records that a member reports the end of an epoch before its time.
    pub(super) fn ended(&mut self, epoch: u64, now_ms: i64) {
        if epoch == self.newest.0 && self.is_initiator() && self.gathering.is_none() {
            let soonest_ms = self.begun_ms.saturating_add(LEAST_EPOCH_MS);
            self.next_ms = self.next_ms.min(soonest_ms.max(now_ms));
        }
    }

    /// Records a summary. A late summary changes nothing.
    pub(super) fn gather(&mut self, node: NodeId, epoch: u64, summary: Summary) {
        if let Some(gathering) = self.gathering.as_mut().filter(|own| own.epoch == epoch) {
            gathering.summaries.insert(node, summary);
        }
    }

    /// Begins an epoch when its time has come, and ends the wait for summaries.
    pub(super) fn step(
        &mut self,
        members: &Members,
        now: Moment,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<EpochStep> {
        let is_complete = |own: &mut Gathering| own.is_complete(members, now.now_ms);
        if let Some(gathering) = self.gathering.take_if(is_complete) {
            let weights = gathering.weigh(self.initiator, members, random);
            self.record(&weights, now.now_ms);
            return Some(EpochStep::Weights(weights));
        }
        if self.gathering.is_some() || now.now_ms < self.next_ms || members.list().is_empty() {
            return None;
        }
        let epoch = self.newest.0.saturating_add(1).max(now.time_s);
        self.newest = (epoch, self.initiator);
        self.gathering = Some(Gathering {
            epoch,
            begun_ms: now.now_ms,
            elapsed_ms: now.now_ms.saturating_sub(self.begun_ms),
            last_rate_milli_per_s: self.rate_milli_per_s,
            summaries: BTreeMap::new(),
        });
        self.begun_ms = now.now_ms;
        self.next_ms = now.now_ms.saturating_add(LONGEST_EPOCH_MS);
        Some(EpochStep::Request(ReportPlease {
            epoch,
            initiator: self.initiator,
        }))
    }

    fn record(&mut self, weights: &[(NodeId, Weights)], now_ms: i64) {
        let Some((_, first)) = weights.first() else {
            return;
        };
        self.rate_milli_per_s = first.rate_milli_per_s;
        self.next_ms = now_ms.saturating_add(first.length_ms);
        self.weighed = Some(WeightsRecord {
            sent_ms: now_ms,
            min_age_ms: finite(first.min_age_ms),
            sum: weights.iter().map(|(_, weights)| weights.own_weight).sum(),
        });
    }
}

/// Age as messages have it: absent if it is infinite.
pub(super) fn finite(age_ms: u64) -> Option<u64> {
    (age_ms < INFINITE_MS).then_some(age_ms)
}
