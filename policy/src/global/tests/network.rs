//! A cluster in one process: nodes, messages in transit, and a source that has every page.

use super::driver::{Driver, Results};
use crate::global::members::{Member, Members};
use crate::global::message::{Event, Message, Origin, Weights};
use crate::global::node::Node;
use crate::global::pages::{Kind, Page};
use crate::global::settings::{MemoryPolicy, Settings};
use crate::global::{NodeId, Uid};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug)]
enum Transit {
    Message(NodeId, NodeId, Message),
    Load(NodeId, Uid),
}

#[derive(Debug)]
pub(super) struct Network {
    pub(super) drivers: Vec<Driver>,
    settings: Settings,
    transit: VecDeque<Transit>,
    pub(super) now_ms: i64,
    /// Reads that have ended, in order.
    pub(super) ready: Vec<(NodeId, Uid, Origin)>,
    /// Puts that were sent, with their receivers.
    pub(super) puts: Vec<(NodeId, Uid)>,
    /// Random numbers that the nodes will draw; 0 after the last one.
    pub(super) random: VecDeque<u64>,
}

impl Network {
    /// Nodes 0, 1 ... with these numbers of frames, all members, 1,000 s before the zero of `read` and `put`.
    pub(super) fn new(frames: &[u32], settings: Settings) -> Self {
        let now_ms = 0;
        let nodes = (0..).zip(frames);
        let node = |(id, frames): (NodeId, &u32)| Node::new(id, 1, *frames, settings, now_ms);
        let mut network = Self {
            drivers: nodes.map(node).map(Driver::new).collect(),
            settings,
            transit: VecDeque::new(),
            now_ms,
            ready: Vec::new(),
            puts: Vec::new(),
            random: VecDeque::new(),
        };
        let members = network.members();
        for id in 0..frames.len() as NodeId {
            network.step(id, &Event::Members(Arc::clone(&members)));
        }
        network.settle();
        network
    }

    pub(super) fn members(&self) -> Arc<Members> {
        let member = |driver: &Driver| Member {
            node: driver.node.id(),
            generation: driver.node.generation(),
            frames: driver.node.pages().limit(),
        };
        let members = self.drivers.iter().map(member).collect();
        let homes = usize::from(self.settings.policy == MemoryPolicy::Hash) * self.settings.homes;
        Arc::new(Members::new(members, homes))
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.drivers[id as usize].node
    }

    /// The node handles an event; its messages and loads are in transit then.
    pub(super) fn step(&mut self, id: NodeId, event: &Event) {
        let policy = self.settings.policy;
        if policy == MemoryPolicy::Exact {
            let oldest = self.oldest();
            self.handle(id, &Event::Oldest(oldest), policy);
        }
        self.handle(id, event, policy);
    }

    fn handle(&mut self, id: NodeId, event: &Event, policy: MemoryPolicy) {
        let numbers = &mut self.random;
        let mut random = || numbers.pop_front().unwrap_or(0);
        let driver = &mut self.drivers[id as usize];
        let Results { sent, loads, ready } = driver.step(event, self.now_ms, &mut random, policy);
        for (to, message) in sent {
            if let Message::PutPage { uid, .. } = message {
                self.puts.push((to, uid));
            }
            self.transit.push_back(Transit::Message(id, to, message));
        }
        let loads = loads.into_iter().map(|uid| Transit::Load(id, uid));
        self.transit.extend(loads);
        let ready = ready.into_iter().map(|(uid, origin)| (id, uid, origin));
        self.ready.extend(ready);
    }

    /// Node with the cluster's oldest frame; of equals, the lowest.
    fn oldest(&self) -> Option<NodeId> {
        let boost = self.settings.boost_quarters;
        let mut best: Option<(u64, NodeId)> = None;
        for driver in &self.drivers {
            let age_ms = driver.node.pages().oldest_age_ms(boost, self.now_ms);
            if let Some(age_ms) = age_ms
                && best.is_none_or(|(best_ms, _)| age_ms > best_ms)
            {
                best = Some((age_ms, driver.node.id()));
            }
        }
        best.map(|(_, node)| node)
    }

    /// Number of messages and loads in transit.
    pub(super) fn in_transit(&self) -> usize {
        self.transit.len()
    }

    /// Delivers the message or load at that place in the order of sending.
    pub(super) fn deliver(&mut self, at: usize) {
        match self.transit.remove(at) {
            Some(Transit::Load(id, uid)) => self.step(id, &Event::Loaded { uid }),
            Some(Transit::Message(from, to, message)) if (to as usize) < self.drivers.len() => {
                self.step(to, &Event::Message { from, message });
            }
            Some(Transit::Message(..)) | None => {}
        }
    }

    /// Delivers everything, in the order of sending.
    pub(super) fn settle(&mut self) {
        while self.in_transit() > 0 {
            self.deliver(0);
        }
    }

    /// A program on `id` reads a page at `at_s`; returns the page's origin.
    pub(super) fn read(&mut self, id: NodeId, uid: Uid, at_s: i64) -> Origin {
        self.now_ms = 1_000_000 + at_s * 1000;
        self.step(id, &Event::Read { uid });
        self.settle();
        let (reader, read, origin) = *self.ready.last().unwrap();
        assert_eq!((reader, read), (id, uid), "the read has ended");
        origin
    }

    /// A node outside of the cluster puts a page to `id` that was used at that moment.
    pub(super) fn put(&mut self, id: NodeId, uid: Uid, at_s: i64, chances: u8) {
        self.now_ms = 1_000_000 + at_s * 1000;
        let message = Message::PutPage {
            uid,
            age_ms: 0,
            chances,
        };
        self.step(id, &Event::Message { from: 99, message });
        self.settle();
    }

    /// All nodes receive weights of epoch 1.
    pub(super) fn weigh(&mut self, weights: &[(NodeId, u64)], min_age_ms: u64) {
        for id in 0..self.drivers.len() as NodeId {
            let others = weights.iter().filter(|(node, _)| *node != id);
            let own = weights.iter().find(|(node, _)| *node == id);
            let message = Message::Weights(Arc::new(Weights {
                epoch: 1,
                initiator: 99,
                length_ms: 10_000,
                min_age_ms,
                own_weight: own.map_or(0, |(_, weight)| *weight),
                targets: others.copied().collect(),
                ..Weights::default()
            }));
            self.step(id, &Event::Message { from: 99, message });
        }
    }

    /// Pages on a node by number, global ones apart.
    pub(super) fn pages(&self, id: NodeId) -> (Vec<Uid>, Vec<Uid>) {
        let mut pages: Vec<Page> = self.node(id).pages().iter().collect();
        pages.sort_by_key(|page| page.uid);
        let (global, local): (Vec<_>, Vec<_>) = pages
            .into_iter()
            .partition(|page| page.kind == Kind::Global);
        let uids = |pages: Vec<Page>| pages.into_iter().map(|page| page.uid).collect();
        (uids(local), uids(global))
    }
}
