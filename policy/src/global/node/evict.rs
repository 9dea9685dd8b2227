//! Evictions: the page that leaves, and its destination. One match over the policies each.

use super::{Node, Turn};
use crate::global::message::{Action, Message};
use crate::global::pages::{Kind, Page};
use crate::global::settings::{MemoryPolicy, Victim};
use crate::global::uid::{NodeId, below};
use crate::global::weights::draw;

/// Destination of an evicted page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Drop,
    Put { to: NodeId, chances: u8 },
}

impl Node {
    /// Evicts a page if no frame is free. `owed` is a node that has just sent a page, and has a free frame.
    /// Returns false if the node has no frames at all.
    pub(super) fn make_room(&mut self, mut owed: Option<NodeId>, turn: &mut Turn<'_>) -> bool {
        while self.pages.is_full() {
            let Some(victim) = self.victim(owed, turn.now_ms) else {
                return false;
            };
            let fate = self.fate(&victim, owed, turn);
            self.evict(&victim, fate, turn);
            owed = None;
        }
        true
    }

    /// Under `hash`: the oldest page that this node uses itself, if such pages will have more frames than they may when
    /// `coming` more have come. Pages of which this node is the home stay instead, held for other nodes.
    pub(super) fn excess_page(&mut self, coming: u32) -> Option<Page> {
        while self.pages.local_count().saturating_add(coming) > self.settings.local_frames {
            let oldest = self.pages.oldest_local()?;
            if !self.members.homes(oldest.uid).contains(&self.id) {
                return Some(oldest);
            }
            self.pages.hold(oldest.uid);
        }
        None
    }

    fn victim(&mut self, owed: Option<NodeId>, now_ms: i64) -> Option<Page> {
        let boost = self.settings.boost_quarters;
        let global_first = || {
            let global = self.pages.oldest_global();
            global.or_else(|| self.pages.oldest_local())
        };
        match self.settings.policy {
            MemoryPolicy::Gms => match self.settings.victim {
                Victim::Oldest => self.pages.oldest(boost, now_ms),
                Victim::GlobalFirst => global_first(),
            },
            MemoryPolicy::Exact if owed.is_none() && self.oldest_node == Some(self.id) => {
                self.pages.oldest(boost, now_ms)
            }
            MemoryPolicy::Exact => global_first(),
            MemoryPolicy::Hash => {
                let excess = self.excess_page(1);
                excess.or_else(|| self.pages.oldest(4, now_ms))
            }
            MemoryPolicy::NChance | MemoryPolicy::None => self.pages.oldest(4, now_ms),
        }
    }

    fn fate(&self, victim: &Page, owed: Option<NodeId>, turn: &mut Turn<'_>) -> Fate {
        let put = |to: Option<NodeId>, chances| match to {
            Some(to) if to != self.id => Fate::Put { to, chances },
            _ => Fate::Drop,
        };
        let is_duplicate = victim.kind == Kind::Duplicate;
        match self.settings.policy {
            MemoryPolicy::Gms if is_duplicate => Fate::Drop,
            MemoryPolicy::Gms => {
                // Ages grow while the epoch lasts; the minimum age holds for its beginning.
                let boost = self.settings.boost_quarters;
                let age_ms = victim.age_ms(boost, self.epoch.begun_ms);
                if age_ms >= self.epoch.min_age_ms(turn.now_ms) {
                    return Fate::Drop;
                }
                let targets = &self.epoch.weights.targets;
                put(owed.or_else(|| draw(targets, self.id, (turn.random)())), 0)
            }
            MemoryPolicy::Exact if is_duplicate => Fate::Drop,
            MemoryPolicy::Exact => put(owed.or(self.oldest_node), 0),
            MemoryPolicy::NChance if is_duplicate => Fate::Drop,
            MemoryPolicy::NChance => {
                let chances = match victim.kind {
                    Kind::Global => victim.chances.saturating_sub(1),
                    Kind::Local | Kind::Duplicate => self.settings.chances,
                };
                if chances == 0 {
                    return Fate::Drop;
                }
                put(self.other_node(self.id, turn), chances)
            }
            MemoryPolicy::Hash if self.settings.is_exclusive && victim.kind != Kind::Global => {
                put(self.members.homes(victim.uid).first().copied(), 0)
            }
            MemoryPolicy::Hash | MemoryPolicy::None => Fate::Drop,
        }
    }

    fn evict(&mut self, victim: &Page, fate: Fate, turn: &mut Turn<'_>) {
        let uid = victim.uid;
        match fate {
            Fate::Put { to, chances } => {
                let age_ms = victim.age_ms(4, turn.now_ms);
                let message = Message::PutPage {
                    uid,
                    age_ms,
                    chances,
                };
                turn.actions.push(Action::Send { to, message });
            }
            Fate::Drop if victim.kind == Kind::Duplicate => {}
            Fate::Drop => {
                let replaced = &mut self.epoch.counts.replaced;
                *replaced = replaced.saturating_add(1);
            }
        }
        self.discard(uid, turn);
    }

    /// A random member other than this node and `except`.
    pub(super) fn other_node(&self, except: NodeId, turn: &mut Turn<'_>) -> Option<NodeId> {
        let nodes = || self.members.list().iter().map(|member| member.node);
        let others = || nodes().filter(|node| *node != self.id && *node != except);
        match others().count() {
            0 => None,
            count => others().nth(below(count as u64, (turn.random)()) as usize),
        }
    }
}
