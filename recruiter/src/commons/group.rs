//! Group of hosts that share a commons: its members, their links, and its epochs.

use super::check::{self, malformed};
use super::epochs::{EpochStep, Epochs, Moment, finite};
use crate::registry::{HostId, OwnMemory, replaced};
use axum::extract::ws::Utf8Bytes;
use gleaner_policy::global::members::{Member, Members};
use gleaner_policy::global::{NodeId, node_of_host};
use gleaner_schemas::commons::{
    BLOCK_BYTES, CommonsMember, CommonsMessage, CommonsView, Hello, MOST_MEMBERS, MemberView,
    MembersChange, SILENCE_MS, Summary, Weights,
};
use gleaner_schemas::lending::{Refusal, RefusalKind};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;

/// Maximum number of messages that wait to be sent to a member. A member with more reads nothing.
const WAITING: usize = 64;

/// Memory of a member's host, with the limit that the configuration adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberMemory {
    /// Memory that the host's memory server has announced; absent: none is linked.
    pub(crate) own: Option<OwnMemory>,
    /// Largest weight of a member whose memory server announces less.
    pub(crate) limit_bytes: u64,
}

impl MemberMemory {
    /// Largest weight of the member, in frames.
    fn limit_frames(&self) -> u64 {
        let announced = self.own.map_or(0, |own| own.available_bytes);
        announced.max(self.limit_bytes) / BLOCK_BYTES
    }
}

#[derive(Debug)]
struct MemberState {
    /// Number of the member's connection.
    link: u64,
    queue: mpsc::Sender<Utf8Bytes>,
    entry: CommonsMember,
    memory: MemberMemory,
    heard_ms: i64,
    /// True once the member's queue has the complete list of members.
    has_list: bool,
    /// Highest epoch that this connection was asked for.
    asked: u64,
    /// Highest epoch that this connection has answered.
    answered: u64,
    weight: u64,
}

/// Members and epochs of one commons.
#[derive(Debug)]
pub(super) struct Group {
    members: BTreeMap<NodeId, MemberState>,
    /// List of members for the policy; made anew after each change.
    list: Members,
    changed: BTreeSet<NodeId>,
    gone: BTreeSet<NodeId>,
    epochs: Epochs,
}

impl Group {
    pub(super) fn new(initiator: NodeId, now_ms: i64) -> Self {
        Self {
            members: BTreeMap::new(),
            list: Members::default(),
            changed: BTreeSet::new(),
            gone: BTreeSet::new(),
            epochs: Epochs::new(initiator, now_ms),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn has(&self, host_id: &str) -> bool {
        let member = self.members.get(&node_of_host(host_id));
        member.is_some_and(|member| member.entry.host_id == host_id)
    }

    /// Records a member's state. Returns the queue of messages to the member if the connection is new.
    pub(super) fn hello(
        &mut self,
        (host_id, link): (&HostId, u64),
        said: &Hello,
        memory: MemberMemory,
        now: Moment,
    ) -> Result<Option<mpsc::Receiver<Utf8Bytes>>, Refusal> {
        check::hello(said, now)?;
        let node = node_of_host(host_id);
        let known = self.members.get(&node);
        if let Some(other) = known.filter(|known| known.entry.host_id != **host_id) {
            return Err(malformed(format!(
                "hosts {host_id} and {} have the same number {node} by their ids: give one of them another host_id",
                other.entry.host_id
            )));
        }
        if known.is_some_and(|known| known.link > link) {
            return Err(replaced(SILENCE_MS));
        }
        if known.is_none() && self.members.len() >= MOST_MEMBERS {
            return Err(Refusal {
                kind: RefusalKind::Busy,
                detail: format!("the commons has {MOST_MEMBERS} members, which is its maximum"),
                retry_in_ms: Some(SILENCE_MS),
            });
        }
        let limit = u32::try_from(memory.limit_frames()).unwrap_or(u32::MAX);
        let entry = CommonsMember {
            node,
            host_id: host_id.to_string(),
            generation: said.generation,
            frames: said.frames.min(limit),
            address: said.address.clone(),
        };
        self.epochs.heard(said.epoch, said.initiator, now.now_ms);
        let is_same = known.is_some_and(|known| known.entry == entry);
        let mut receiver = None;
        match self
            .members
            .get_mut(&node)
            .filter(|known| known.link == link)
        {
            Some(known) => {
                known.heard_ms = now.now_ms;
                known.memory = memory;
                known.entry = entry;
            }
            None => {
                let (queue, messages) = mpsc::channel(WAITING);
                receiver = Some(messages);
                let member = MemberState {
                    link,
                    queue,
                    entry,
                    memory,
                    heard_ms: now.now_ms,
                    has_list: false,
                    asked: 0,
                    answered: 0,
                    weight: 0,
                };
                self.members.insert(node, member);
            }
        }
        if !is_same {
            self.changed.insert(node);
            self.gone.remove(&node);
            self.make_list();
        }
        Ok(receiver)
    }

    /// Records a member's summary.
    pub(super) fn summary(
        &mut self,
        (host_id, link): (&HostId, u64),
        said: &Summary,
        memory: MemberMemory,
        now: Moment,
    ) -> Result<(), Refusal> {
        let summary = check::summary(said)?;
        let node = node_of_host(host_id);
        let Some(member) = self.member(host_id, link) else {
            return Err(malformed("a summary before the first hello".to_owned()));
        };
        if said.epoch <= member.answered || said.epoch > member.asked {
            return Err(malformed(format!(
                "a summary for epoch {}, which was answered before or never requested",
                said.epoch
            )));
        }
        member.answered = said.epoch;
        member.heard_ms = now.now_ms;
        member.memory = memory;
        let summary = summary.limited_to(memory.limit_frames());
        self.epochs.gather(node, said.epoch, summary);
        Ok(())
    }

    /// Records that a member reports the end of an epoch before its time.
    pub(super) fn ended(
        &mut self,
        (host_id, link): (&HostId, u64),
        epoch: u64,
        now: Moment,
    ) -> Result<(), Refusal> {
        let Some(member) = self.member(host_id, link) else {
            return Err(malformed(
                "the end of an epoch before the first hello".to_owned(),
            ));
        };
        member.heard_ms = now.now_ms;
        if epoch > self.epochs.number() && Epochs::is_beyond_reason(epoch, now) {
            return Err(malformed(format!("epoch {epoch} was never begun")));
        }
        self.epochs.ended(epoch, now.now_ms);
        Ok(())
    }

    /// Removes a member whose connection has ended, unless the member has a later one.
    pub(super) fn leave(&mut self, host_id: &HostId, link: u64) {
        let node = node_of_host(host_id);
        if self.member(host_id, link).is_some() {
            self.remove(node);
            self.make_list();
        }
    }

    /// Removes silent members, sends changes of the members to all, and works on the epoch.
    pub(super) fn tick(&mut self, now: Moment, random: &mut dyn FnMut() -> u64) {
        let silent_since = now.now_ms.saturating_sub(SILENCE_MS);
        let silent = |(_, member): &(&NodeId, &MemberState)| member.heard_ms <= silent_since;
        let silent: Vec<NodeId> = self
            .members
            .iter()
            .filter(silent)
            .map(|(n, _)| *n)
            .collect();
        for node in &silent {
            self.remove(*node);
        }
        if !silent.is_empty() {
            self.make_list();
        }
        self.send_members();
        match self.epochs.step(&self.list, now, random) {
            None => {}
            Some(EpochStep::Request(request)) => {
                let text = text(&CommonsMessage::ReportPlease(request));
                for member in self.members.values_mut() {
                    member.asked = request.epoch;
                }
                self.send(|_| true, &text);
            }
            Some(EpochStep::Weights(all)) => {
                for (node, weights) in all {
                    if let Some(member) = self.members.get_mut(&node) {
                        member.weight = weights.own_weight;
                        let quota = member.memory.own.map(|own| own.quota_bytes);
                        let message = CommonsMessage::Weights(wire(weights, quota));
                        // A full queue is noticed below, and closes the connection.
                        let _ = member.queue.try_send(text(&message));
                    }
                }
                self.close_stuck();
            }
        }
    }

    /// State of the commons, for people and programs.
    pub(super) fn view(&self, name: &str, now_ms: i64) -> CommonsView {
        let weighed = self.epochs.weighed();
        let age_ms = |at_ms: i64| now_ms.saturating_sub(at_ms).max(0);
        let mut members: Vec<MemberView> = self
            .members
            .values()
            .map(|member| MemberView {
                member: member.entry.clone(),
                weight: member.weight,
                weight_limit: member.memory.limit_frames(),
                last_message_age_ms: age_ms(member.heard_ms),
            })
            .collect();
        members.sort_by(|a, b| a.member.host_id.cmp(&b.member.host_id));
        CommonsView {
            name: name.to_owned(),
            epoch: self.epochs.number(),
            is_initiator: self.epochs.is_initiator(),
            weights_age_ms: weighed.map(|weighed| age_ms(weighed.sent_ms)),
            min_age_ms: weighed.and_then(|weighed| weighed.min_age_ms),
            weights_sum: weighed.map_or(0, |weighed| weighed.sum),
            members,
        }
    }

    fn member(&mut self, host_id: &HostId, link: u64) -> Option<&mut MemberState> {
        let member = self.members.get_mut(&node_of_host(host_id));
        member.filter(|member| member.link == link && member.entry.host_id == **host_id)
    }

    fn remove(&mut self, node: NodeId) {
        if self.members.remove(&node).is_some() {
            self.changed.remove(&node);
            self.gone.insert(node);
        }
    }

    fn make_list(&mut self) {
        let members = self.members.values().map(|member| Member {
            node: member.entry.node,
            generation: member.entry.generation,
            frames: member.entry.frames,
        });
        self.list = Members::new(members.collect(), 0);
    }

    /// Sends each new member the whole list, and the others the changes.
    fn send_members(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        let gone: Vec<NodeId> = std::mem::take(&mut self.gone).into_iter().collect();
        let is_new = |member: &MemberState| !member.has_list;
        if self.members.values().any(is_new) {
            let whole = MembersChange {
                is_complete: true,
                present: self.members.values().map(|m| m.entry.clone()).collect(),
                gone: Vec::new(),
            };
            self.send(is_new, &text(&CommonsMessage::Members(whole)));
        }
        if !changed.is_empty() || !gone.is_empty() {
            let entry = |node: &NodeId| self.members.get(node).map(|m| m.entry.clone());
            let change = MembersChange {
                is_complete: false,
                present: changed.iter().filter_map(entry).collect(),
                gone,
            };
            self.send(
                |member| member.has_list,
                &text(&CommonsMessage::Members(change)),
            );
        }
        for member in self.members.values_mut() {
            member.has_list = true;
        }
    }

    fn send(&mut self, is_receiver: impl Fn(&MemberState) -> bool, text: &Utf8Bytes) {
        for member in self.members.values().filter(|member| is_receiver(member)) {
            // A full queue is noticed below, and closes the connection.
            let _ = member.queue.try_send(text.clone());
        }
        self.close_stuck();
    }

    /// Removes members that read nothing, or whose connection has ended. Their connections notice the end of
    /// the queue.
    fn close_stuck(&mut self) {
        let stuck = |member: &MemberState| member.queue.is_closed() || member.queue.capacity() == 0;
        let nodes = self.members.iter().filter(|(_, member)| stuck(member));
        let nodes: Vec<NodeId> = nodes.map(|(node, _)| *node).collect();
        for node in &nodes {
            self.remove(*node);
        }
        if !nodes.is_empty() {
            self.make_list();
        }
    }
}

fn text(message: &CommonsMessage) -> Utf8Bytes {
    serde_json::to_string(message).unwrap_or_default().into() // serializing this cannot fail
}

fn wire(weights: gleaner_policy::global::message::Weights, quota_bytes: Option<u64>) -> Weights {
    Weights {
        epoch: weights.epoch,
        initiator: weights.initiator,
        length_ms: weights.length_ms,
        min_age_ms: finite(weights.min_age_ms),
        own_weight: weights.own_weight,
        is_counter: weights.is_counter,
        targets: weights.targets,
        quota_bytes,
    }
}
