//! Other hosts' entries in this host's part of the directory. Each host has a limit of its own, so none fills this
//! host's memory, and none takes the room of others.

use super::{Consequence, GlobalMemory, State};
use crate::directory::entries_limit;
use gleaner_policy::global::message::{Event, Message};
use gleaner_policy::global::{NodeId, Uid};

impl GlobalMemory {
    /// Takes changes from another host: `Moved`, `Gone`, `Alone` and `Discard`.
    pub fn receive_notices(&self, from: NodeId, notices: Vec<Message>) {
        for message in notices {
            let mut state = self.lock();
            let (uid, is_taken) = match message {
                Message::Moved { uid, .. } => (uid, state.admits(uid, from)),
                Message::Gone { uid, .. } => (uid, true),
                // Only the host with the block's entry knows the other holders.
                Message::Alone { uid } | Message::Discard { uid } => {
                    (uid, state.node.members().owner(uid) == Some(from))
                }
                _ => continue,
            };
            if is_taken {
                self.entry_step(&mut state, from, uid, message);
            }
        }
    }

    /// Passes a message that may add or remove the entry of its sender.
    pub(super) fn entry_step(
        &self,
        state: &mut State,
        from: NodeId,
        uid: Uid,
        message: Message,
    ) -> Vec<Consequence> {
        let was_entered = state.is_entered(uid, from);
        let consequences = self.step(state, &Event::Message { from, message }, None);
        let is_entered = state.is_entered(uid, from);
        state.entries.note(from, was_entered, is_entered);
        consequences
    }
}

impl State {
    /// Returns true if the host may be entered as a holder of the block; otherwise counts the refusal.
    pub(super) fn admits(&mut self, uid: Uid, node: NodeId) -> bool {
        let members = self.node.members();
        let member = members.place(node).and_then(|at| members.list().get(at));
        let frames = member.map_or(0, |member| member.frames);
        let limit = entries_limit(frames, members.list().len());
        self.is_entered(uid, node) || self.entries.admit(node, limit)
    }

    /// Counts the entries anew, after some were removed.
    pub(super) fn recount_entries(&mut self) {
        let all = self.node.directory().iter();
        self.entries.recount(all.map(|(_, holder)| holder.node));
    }

    fn is_entered(&self, uid: Uid, node: NodeId) -> bool {
        let mut holders = self.node.directory().holders(uid);
        holders.any(|holder| holder.node == node)
    }
}
