//! Model check of small clusters: the real nodes, and every order of events and messages.
//!
//! The case `pages` has three nodes with two frames each (one while memory is taken), three blocks, messages
//! that are late, reordered, doubled and lost, a node that restarts, members that learn of it at different
//! times, and memory that is taken. The case `initiators` has epochs with late and doubled messages, and
//! clocks that let several nodes begin an epoch at once.
//!
//! Messages to the directory are not lost: a driver repeats them until they are acknowledged.

use super::driver::{Driver, Results};
use super::uid;
use crate::global::members::{Member, Members};
use crate::global::message::{Event, Message, Weights};
use crate::global::node::Node;
use crate::global::pages::Kind;
use crate::global::settings::{MemoryPolicy, Settings};
use crate::global::{NodeId, Uid};
use stateright::{Checker, Model, Property};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const NODES: u32 = 3;

#[derive(Clone, Debug)]
struct Case {
    settings: Settings,
    /// Reads that may happen: node and block, each once, in any order.
    reads: Vec<(NodeId, u32)>,
    budget: Budget,
    /// True if nodes begin epochs by themselves.
    has_epochs: bool,
    /// Blocks that are in memory at the beginning: node and block, all global.
    stored: Vec<(NodeId, u32)>,
}

/// Number of times that each fault may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Budget {
    losses: u8,
    copies: u8,
    restarts: u8,
    takes: u8,
    seconds: u8,
}

#[derive(Clone, Debug)]
struct State {
    drivers: Vec<Driver>,
    /// Messages in transit, in no order.
    transit: Vec<(NodeId, NodeId, Message)>,
    loads: Vec<(NodeId, Uid)>,
    /// Nodes that have not learned of the last change of members.
    ignorant: BTreeSet<NodeId>,
    /// Nodes whose clock has not reached the present second.
    unticked: BTreeSet<NodeId>,
    reads: Vec<(NodeId, u32)>,
    budget: Budget,
    now_ms: i64,
    /// True if a timeout did not cause a read from the source.
    is_stuck: bool,
    /// True if the epoch of a node went back.
    went_back: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Read(usize),
    Deliver(usize),
    Lose(usize),
    Copy(usize),
    Load(usize),
    Restart(NodeId),
    Learn(NodeId),
    Take(NodeId),
    Timeout,
    SecondPasses,
    Tick(NodeId),
}

impl State {
    fn members(&self) -> Arc<Members> {
        let member = |driver: &Driver| Member {
            node: driver.node.id(),
            generation: driver.node.generation(),
            frames: 2,
        };
        Arc::new(Members::new(self.drivers.iter().map(member).collect(), 0))
    }

    fn step(&mut self, case: &Case, id: NodeId, event: &Event) {
        let driver = &mut self.drivers[id as usize];
        let before = epoch(&driver.node);
        let results = driver.step(event, self.now_ms, &mut || 0, case.settings.policy);
        self.went_back |= epoch(&driver.node) < before;
        let Results { sent, loads, .. } = results;
        let sent = sent.into_iter().filter(|(to, _)| *to < NODES);
        self.transit
            .extend(sent.map(|(to, message)| (id, to, message)));
        self.loads.extend(loads.into_iter().map(|uid| (id, uid)));
    }

    /// Weights with which every node puts its pages to the others.
    fn weigh(&mut self, case: &Case, id: NodeId) {
        let others = (0..NODES).filter(|node| *node != id);
        let message = Message::Weights(Arc::new(Weights {
            epoch: 1,
            initiator: 99,
            length_ms: i64::MAX / 4,
            min_age_ms: u64::MAX,
            targets: others.map(|node| (node, 1)).collect(),
            ..Weights::default()
        }));
        self.step(case, id, &Event::Message { from: 99, message });
    }

    /// True if nothing is on its way.
    fn is_quiet(&self) -> bool {
        self.transit.is_empty() && self.loads.is_empty()
    }

    fn is_waiting(&self) -> bool {
        let waits = |driver: &Driver| (0..3).any(|block| driver.node.is_fetching(uid(block)));
        self.drivers.iter().any(waits)
    }

    fn is_at_rest(&self) -> bool {
        self.is_quiet() && self.ignorant.is_empty() && !self.is_waiting()
    }

    fn pages(&self) -> impl Iterator<Item = (NodeId, Uid, Kind)> + '_ {
        self.drivers.iter().flat_map(|driver| {
            let pages = driver.node.pages().iter();
            pages.map(move |page| (driver.node.id(), page.uid, page.kind))
        })
    }

    fn is_found(&self, node: NodeId, uid: Uid) -> bool {
        let owner = self.drivers[node as usize].node.members().owner(uid);
        let owner = owner.and_then(|owner| self.drivers.get(owner as usize));
        owner.is_some_and(|owner| {
            let mut holders = owner.node.directory().holders(uid);
            holders.any(|holder| holder.node == node)
        })
    }

    fn has_dead_entry(&self) -> bool {
        let generation = |node: NodeId| self.drivers[node as usize].node.generation();
        let is_dead = |driver: &Driver| {
            let mut entries = driver.node.directory().iter();
            entries.any(|(_, holder)| holder.generation != generation(holder.node))
        };
        self.drivers.iter().any(is_dead)
    }
}

fn epoch(node: &Node) -> (u32, u64, NodeId) {
    let weights = &node.epoch().weights;
    (node.generation(), weights.epoch, weights.initiator)
}

/// Messages that a driver sends once.
fn may_be_lost(message: &Message) -> bool {
    match message {
        Message::GetPage { .. }
        | Message::Forward { .. }
        | Message::Page { .. }
        | Message::Miss { .. }
        | Message::PutPage { .. } => true,
        Message::Moved { .. }
        | Message::Gone { .. }
        | Message::Alone { .. }
        | Message::Discard { .. }
        | Message::ReportPlease { .. }
        | Message::Summary { .. }
        | Message::Weights(_)
        | Message::Ended { .. } => false,
    }
}

impl Model for Case {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let node = |id| Driver::new(Node::new(id, 1, 2, self.settings, 0));
        let mut state = State {
            drivers: (0..NODES).map(node).collect(),
            transit: Vec::new(),
            loads: Vec::new(),
            ignorant: BTreeSet::new(),
            unticked: BTreeSet::new(),
            reads: self.reads.clone(),
            budget: self.budget,
            now_ms: 0,
            is_stuck: false,
            went_back: false,
        };
        let members = state.members();
        for id in 0..NODES {
            state.step(self, id, &Event::Members(Arc::clone(&members)));
            if !self.has_epochs {
                state.weigh(self, id);
            }
        }
        for (node, block) in &self.stored {
            let message = Message::PutPage {
                uid: uid(*block),
                age_ms: 0,
                chances: 2,
            };
            state.step(self, *node, &Event::Message { from: 99, message });
        }
        while !state.transit.is_empty() {
            let (from, to, message) = state.transit.remove(0);
            state.step(self, to, &Event::Message { from, message });
        }
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        steps.extend((0..state.reads.len()).map(Step::Read));
        steps.extend((0..state.loads.len()).map(Step::Load));
        for (i, (_, _, message)) in state.transit.iter().enumerate() {
            steps.push(Step::Deliver(i));
            steps.extend((state.budget.copies > 0).then_some(Step::Copy(i)));
            let is_lossy = state.budget.losses > 0 && may_be_lost(message);
            steps.extend(is_lossy.then_some(Step::Lose(i)));
        }
        for id in 0..NODES {
            steps.extend((state.budget.restarts > 0).then_some(Step::Restart(id)));
            steps.extend((state.budget.takes > 0).then_some(Step::Take(id)));
            steps.extend(state.ignorant.contains(&id).then_some(Step::Learn(id)));
            steps.extend(state.unticked.contains(&id).then_some(Step::Tick(id)));
        }
        let is_late = state.is_quiet() && state.is_waiting();
        steps.extend(is_late.then_some(Step::Timeout));
        steps.extend((state.budget.seconds > 0).then_some(Step::SecondPasses));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut next = last.clone();
        match step {
            Step::Read(i) => {
                let (node, block) = next.reads.remove(i);
                next.step(self, node, &Event::Read { uid: uid(block) });
            }
            Step::Deliver(i) => {
                let (from, to, message) = next.transit.remove(i);
                next.step(self, to, &Event::Message { from, message });
            }
            Step::Copy(i) => {
                next.budget.copies -= 1;
                let (from, to, message) = next.transit[i].clone();
                next.step(self, to, &Event::Message { from, message });
            }
            Step::Lose(i) => {
                next.budget.losses -= 1;
                next.transit.remove(i);
            }
            Step::Load(i) => {
                let (node, uid) = next.loads.remove(i);
                next.step(self, node, &Event::Loaded { uid });
            }
            Step::Restart(id) => {
                next.budget.restarts -= 1;
                let generation = next.drivers[id as usize].node.generation() + 1;
                let node = Node::new(id, generation, 2, self.settings, next.now_ms);
                next.drivers[id as usize] = Driver::new(node);
                next.loads.retain(|(node, _)| *node != id);
                next.ignorant = (0..NODES).filter(|node| *node != id).collect();
                let members = next.members();
                next.step(self, id, &Event::Members(members));
                if !self.has_epochs {
                    next.weigh(self, id);
                }
            }
            Step::Learn(id) => {
                next.ignorant.remove(&id);
                let members = next.members();
                next.step(self, id, &Event::Members(members));
            }
            Step::Take(id) => {
                next.budget.takes -= 1;
                next.step(self, id, &Event::Frames(1));
            }
            Step::Timeout => {
                next.now_ms += self.settings.fetch_timeout_ms;
                for id in 0..NODES {
                    next.step(self, id, &Event::Tick);
                }
                next.is_stuck |= next.loads.is_empty();
            }
            Step::SecondPasses => {
                next.budget.seconds -= 1;
                next.now_ms += 1_000;
                next.unticked = (0..NODES).collect();
            }
            Step::Tick(id) => {
                next.unticked.remove(&id);
                next.step(self, id, &Event::Tick);
            }
        }
        next.transit
            .sort_by_cached_key(|(from, to, message)| (*to, *from, hash_of(message)));
        next.loads.sort();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Case>::always("every read ends", |_, s| !s.is_stuck),
            Property::<Case>::always("no epoch goes back", |_, s| !s.went_back),
            Property::<Case>::always("each resident block is found in the end", |_, s| {
                !s.is_at_rest() || s.pages().all(|(node, uid, _)| s.is_found(node, uid))
            }),
            Property::<Case>::always("no entry names a dead generation in the end", |_, s| {
                !s.is_at_rest() || !s.has_dead_entry()
            }),
            Property::<Case>::always("one global copy in the end", |_, s| {
                let mut global = BTreeSet::new();
                let pages = s.pages().filter(|(_, _, kind)| *kind == Kind::Global);
                let uids: Vec<Uid> = pages.map(|(_, uid, _)| uid).collect();
                !s.is_at_rest() || uids.into_iter().all(|uid| global.insert(uid))
            }),
            Property::<Case>::always("one epoch in the end", |case, s| {
                let epochs: BTreeSet<_> =
                    s.drivers.iter().map(|driver| epoch(&driver.node)).collect();
                let is_gathering = s.drivers.iter().any(|driver| driver.node.is_initiator());
                !case.has_epochs || !s.is_at_rest() || is_gathering || epochs.len() == 1
            }),
            Property::<Case>::sometimes("two nodes are initiators at once", |case, s| {
                let initiators = s.drivers.iter().filter(|driver| driver.node.is_initiator());
                !case.has_epochs || initiators.count() > 1
            }),
            Property::<Case>::sometimes("a run comes to rest", |case, s| {
                s.is_at_rest()
                    && s.reads.is_empty()
                    && (!case.has_epochs || epoch(&s.drivers[0].node).1 > 0)
            }),
        ]
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Hashes everything that can influence the next step.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for driver in &self.drivers {
            driver.node.hash_for_the_model(hasher);
        }
        (&self.transit, &self.loads, &self.ignorant, &self.reads).hash(hasher);
        self.unticked.hash(hasher);
        (self.budget, self.now_ms, self.is_stuck, self.went_back).hash(hasher);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        hash_of(self) == hash_of(other)
    }
}

fn check(case: Case, fewest_states: usize) {
    let checker = case.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let count = checker.unique_state_count();
    assert!(count > fewest_states, "{count} states are not all of them");
}

fn pages(policy: MemoryPolicy, reads: &[(NodeId, u32)], budget: Budget) -> Case {
    Case {
        settings: Settings {
            policy,
            ..Settings::default()
        },
        reads: reads.to_vec(),
        budget,
        has_epochs: false,
        stored: vec![(1, 0), (2, 1)],
    }
}

#[test]
fn readers_of_one_block_with_lost_and_doubled_messages() {
    let budget = Budget {
        losses: 1,
        copies: 1,
        ..Budget::default()
    };
    let reads = [(0, 0), (1, 2), (2, 0)];
    check(pages(MemoryPolicy::Gms, &reads, budget), 31_000);
}

#[test]
fn nodes_that_evict_each_others_pages() {
    let budget = Budget {
        losses: 1,
        ..Budget::default()
    };
    let reads = [(0, 0), (0, 1), (0, 2)];
    check(pages(MemoryPolicy::Gms, &reads, budget), 9_900);
    check(pages(MemoryPolicy::NChance, &reads, budget), 1_000);
}

#[test]
fn a_node_that_restarts() {
    let budget = Budget {
        restarts: 1,
        ..Budget::default()
    };
    let reads = [(0, 0), (1, 2), (2, 0)];
    check(pages(MemoryPolicy::Gms, &reads, budget), 73_000);
    let budget = Budget {
        losses: 1,
        ..budget
    };
    check(pages(MemoryPolicy::Gms, &reads[..2], budget), 1_000);
}

#[test]
fn memory_that_is_taken() {
    let budget = Budget {
        takes: 2,
        losses: 1,
        ..Budget::default()
    };
    check(pages(MemoryPolicy::Gms, &[(0, 0), (1, 2)], budget), 1_100);
}

#[test]
fn initiators_that_begin_at_once() {
    let case = Case {
        budget: Budget {
            copies: 1,
            seconds: 2,
            ..Budget::default()
        },
        has_epochs: true,
        ..pages(MemoryPolicy::Gms, &[], Budget::default())
    };
    check(case, 45_000);
}
