//! The simulated cluster: nodes with their machines, programs, and messages between them.
//!
//! A message waits for the receiver's CPU, then the policy's node handles it; the node's own messages leave when the
//! CPU work for them ends. A page occupies both links for a part of its way. The work of the kernel delays the
//! program on the same node.

mod actions;
mod exchange;
mod laws;
mod prefetch;
mod recorded;
mod window;

use super::check::Violation;
use super::costs::Costs;
use super::error::GmsError;
use super::frames;
use super::machine::Machine;
use super::outcome::Outcome;
use super::process::Process;
use super::programs::References;
use super::scenario::Scenario;
use crate::event::{DAY, MS, Queue};
use actions::bytes;
use gleaner_policy::global::members::{Member, Members};
use gleaner_policy::global::message::{Action, Event, Message};
use gleaner_policy::global::node::Node;
use gleaner_policy::global::pages::Kind;
use gleaner_policy::global::prefetch::PrefetchStage;
use gleaner_policy::global::settings::MemoryPolicy;
use gleaner_policy::global::{NodeId, Uid};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use recorded::Owners;
use std::collections::HashMap;
use std::sync::Arc;
use window::Snapshot;

/// Interval at which nodes look at their clocks.
const TICK_NS: u64 = 100 * MS;
/// Longest simulated time, in days.
const MOST_DAYS: u64 = 100;
/// Random stream of the policy's draws; clients' programs have the streams from 1 on.
const DRAWS: u64 = 0;
/// Random stream of bystanders and exchanges.
const SURROUNDINGS: u64 = 1 << 62;

#[derive(Clone, Debug)]
enum Scheduled {
    Arrival {
        from: NodeId,
        to: NodeId,
        message: Message,
    },
    Loaded {
        node: NodeId,
        uid: Uid,
    },
    /// The process goes on after a read.
    Resume(NodeId),
    /// The process has computed, and makes its next reference.
    Reference(NodeId),
    Tick,
    Exchange,
    /// The number of a node's frames changes.
    Frames(NodeId, u32),
    /// The state of the recorded host changes that is this node with idle memory.
    Owner(u32),
}

#[derive(Debug)]
struct Host {
    node: Node,
    machine: Machine,
    process: Option<Process>,
    /// Pages that were written since they were last on disk, with their places there.
    dirty: HashMap<Uid, u64>,
    /// Pages served to other nodes, or stored for them.
    operations: u64,
}

/// Sums of the whole cluster so far.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    sent_bytes: u64,
    received_bytes: u64,
    epoch_bytes: u64,
    page_transfers: u64,
    epochs: u64,
    usual_epochs: u64,
    last_epoch_ns: u64,
    events: u64,
}

pub(super) struct Cluster<'a> {
    scenario: &'a Scenario,
    costs: Costs,
    /// Upper bound of the frames of all nodes together.
    most_frames: u64,
    hosts: Vec<Host>,
    members: Arc<Members>,
    queue: Queue<Scheduled>,
    /// Random numbers of the policy.
    dice: ChaCha8Rng,
    /// Random numbers of exchanges.
    surroundings: ChaCha8Rng,
    /// Buffer of the actions of one step.
    actions: Vec<Action>,
    totals: Totals,
    counting: u32,
    ended: u32,
    window: (Option<Snapshot>, Option<Snapshot>),
    owners: Owners,
}

impl<'a> Cluster<'a> {
    /// The cluster of a checked scenario, before its begin. Clients have the first numbers, then the nodes with idle
    /// memory follow.
    pub(super) fn new(scenario: &'a Scenario, seed: u64) -> Self {
        let stream = |number| {
            let mut dice = ChaCha8Rng::seed_from_u64(seed);
            dice.set_stream(number);
            dice
        };
        let mut surroundings = stream(SURROUNDINGS);
        let settings = scenario.settings();
        let host = |id: NodeId, frames: u32, process: Option<Process>| Host {
            node: Node::new(id, 1, frames, settings, 0),
            machine: Machine::default(),
            process,
            dirty: HashMap::new(),
            operations: 0,
        };
        let mut hosts = Vec::new();
        let mut lent = Vec::new();
        for client in 0..scenario.clients {
            let program = scenario.program(client);
            let references = References::new(
                program,
                (seed, 1 + u64::from(client)),
                scenario.client_frames,
                scenario.counted_faults,
                frames::compute_ns(scenario),
            );
            let file = program.file_of(client);
            let process = Process::client(client, program, references, file);
            hosts.push(host(client, scenario.client_frames, Some(process)));
            lent.push(0);
        }
        for idle in 0..scenario.idle_nodes {
            let id = scenario.clients + idle;
            // A recorded host has the frames of its first state when the simulation begins.
            let own_frames = scenario.idle_frames_of(idle);
            let (idle_frames, lent_frames) = match &scenario.hosts {
                Some(recorded) => (0, recorded.mean_frames(idle)),
                None => (own_frames, own_frames),
            };
            let is_rich = idle < scenario.rich_nodes;
            let has_process = scenario.has_bystanders && (!is_rich || scenario.exchange_ms > 0);
            let begin = surroundings.next_u32() % scenario.bystander_pages.max(1);
            let process = has_process.then(|| {
                let think_ns = u64::from(scenario.bystander_us) * 1_000;
                let mut process = Process::bystander(id, scenario.bystander_pages, think_ns, begin);
                process.is_paused = is_rich;
                process
            });
            let used = scenario.bystander_pages_of(idle);
            hosts.push(host(id, idle_frames.saturating_add(used), process));
            lent.push(lent_frames);
        }
        let member = |(node, frames): (NodeId, &u32)| Member {
            node,
            generation: 1,
            frames: *frames,
        };
        let homes = match scenario.policy {
            MemoryPolicy::Hash => settings.homes,
            _ => 0,
        };
        let members = Members::new((0..).zip(&lent).map(member).collect(), homes);
        let of_clients = u64::from(scenario.clients) * u64::from(scenario.client_frames);
        let of_idle = (0..scenario.idle_nodes).map(|idle| scenario.most_frames_of(idle));
        Self {
            scenario,
            costs: frames::costs(scenario),
            most_frames: of_clients + of_idle.sum::<u64>(),
            hosts,
            members: Arc::new(members),
            queue: Queue::default(),
            dice: stream(DRAWS),
            surroundings,
            actions: Vec::new(),
            totals: Totals::default(),
            counting: 0,
            ended: 0,
            window: (None, None),
            owners: Owners::new(scenario),
        }
    }

    /// Runs until every client has ended, checks the laws, and returns the results.
    pub(super) fn run(mut self) -> Result<Outcome, GmsError> {
        self.begin_owners()?;
        let members = Event::Members(Arc::clone(&self.members));
        for id in self.ids() {
            self.step(id, &members, 0)?;
        }
        self.queue.put(0, Scheduled::Tick);
        if self.scenario.exchange_ms > 0 {
            let first_ms = u64::from(self.scenario.start_ms) + u64::from(self.scenario.exchange_ms);
            self.queue.put(first_ms * MS, Scheduled::Exchange);
        }
        for change in &self.scenario.owners {
            let frames = change.frames + self.scenario.bystander_pages_of(change.node);
            let event = Scheduled::Frames(self.scenario.clients + change.node, frames);
            self.queue.put(change.at_ms * MS, event);
        }
        for (id, host) in (0..).zip(&self.hosts) {
            let Some(process) = &host.process else {
                continue;
            };
            let begin_ms = match process.is_bystander() {
                true => 0,
                false => u64::from(self.scenario.start_ms),
            };
            self.queue.put(begin_ms * MS, Scheduled::Resume(id));
        }
        while self.ended < self.scenario.clients {
            let most_ns = self.recorded_ns().unwrap_or(MOST_DAYS * DAY);
            let next = self.queue.pop().filter(|(at_ns, _)| *at_ns <= most_ns);
            let Some((now_ns, event)) = next else {
                return Err(self.unfinished());
            };
            self.totals.events += 1;
            self.prefetch_next();
            self.happen(event, now_ns)?;
        }
        let end_ns = self.queue.now_ns();
        self.settle()?;
        self.check()?;
        Ok(self.outcome(end_ns))
    }

    fn unfinished(&self) -> GmsError {
        match &self.scenario.hosts {
            Some(hosts) => GmsError::TooShort {
                hours: hosts.hours(),
            },
            None => GmsError::Unfinished { days: MOST_DAYS },
        }
    }

    fn ids(&self) -> std::ops::Range<NodeId> {
        0..self.hosts.len() as NodeId
    }

    fn happen(&mut self, event: Scheduled, now_ns: u64) -> Result<(), GmsError> {
        match event {
            Scheduled::Arrival { from, to, message } => self.arrive(from, to, message, now_ns),
            Scheduled::Loaded { node, uid } => {
                self.step(node, &Event::Loaded { uid }, now_ns)?;
                Ok(())
            }
            Scheduled::Resume(node) => self.resume(node, now_ns),
            Scheduled::Reference(node) => self.refer(node, now_ns),
            Scheduled::Tick => self.tick(now_ns),
            Scheduled::Exchange => self.exchange(now_ns),
            Scheduled::Frames(node, frames) => {
                self.step(node, &Event::Frames(frames), now_ns)?;
                Ok(())
            }
            Scheduled::Owner(node) => self.change_owner(node, now_ns),
        }
    }

    fn arrive(
        &mut self,
        from: NodeId,
        to: NodeId,
        message: Message,
        now_ns: u64,
    ) -> Result<(), GmsError> {
        self.totals.received_bytes += bytes(&message, self.scenario.frame_bytes);
        self.step(to, &Event::Message { from, message }, now_ns)?;
        Ok(())
    }

    /// The process computes before its next reference. Local hits need no event, if nothing else happens before.
    fn resume(&mut self, id: NodeId, mut now_ns: u64) -> Result<(), GmsError> {
        loop {
            let host = &mut self.hosts[id as usize];
            let Some(process) = &mut host.process else {
                return Ok(());
            };
            process.is_parked = process.is_paused;
            if process.is_parked {
                return self.free_pages(id, now_ns);
            }
            let phase = process.change_phase(now_ns);
            process.kernel_ns = host.machine.kernel_ns;
            let then_ns = now_ns + process.think_ns();
            if let Some(phase) = phase {
                self.count_phase(phase, now_ns);
            }
            if self
                .queue
                .next_ns()
                .is_none_or(|next_ns| next_ns <= then_ns)
            {
                self.prefetch_reference(id, PrefetchStage::Index);
                self.queue.put(then_ns, Scheduled::Reference(id));
                return Ok(());
            }
            now_ns = then_ns;
            self.totals.events += 1;
            if !self.read(id, now_ns)? {
                return Ok(());
            }
        }
    }

    /// The process makes its next reference, unless the kernel took CPU time meanwhile.
    fn refer(&mut self, id: NodeId, now_ns: u64) -> Result<(), GmsError> {
        let host = &mut self.hosts[id as usize];
        if let Some(process) = &mut host.process {
            let taken_ns = host.machine.kernel_ns - process.kernel_ns;
            if taken_ns > 0 {
                process.kernel_ns = host.machine.kernel_ns;
                self.queue.put(now_ns + taken_ns, Scheduled::Reference(id));
                return Ok(());
            }
        }
        if self.read(id, now_ns)? {
            self.resume(id, now_ns)?;
        }
        Ok(())
    }

    /// The process reads its next page. Returns true for a local hit; otherwise a later event ends the wait.
    fn read(&mut self, id: NodeId, now_ns: u64) -> Result<bool, GmsError> {
        let process = self.hosts[id as usize].process.as_mut();
        match process.map(|process| process.ask(now_ns)) {
            Some(uid) => self.step(id, &Event::Read { uid }, now_ns),
            None => Ok(false),
        }
    }

    /// Steps the nodes for which something is due.
    fn tick(&mut self, now_ns: u64) -> Result<(), GmsError> {
        for id in self.ids() {
            if self.is_due(id, now_ns) {
                self.step(id, &Event::Tick, now_ns)?;
            }
        }
        self.queue.put(now_ns + TICK_NS, Scheduled::Tick);
        Ok(())
    }

    fn is_due(&self, id: NodeId, now_ns: u64) -> bool {
        let host = &self.hosts[id as usize];
        let is_epoch_due = self.scenario.policy == MemoryPolicy::Gms && {
            let begin_ms = host.node.epoch().next_begin_ms(id, &self.members);
            host.node.is_initiator() || begin_ms.is_some_and(|begin_ms| begin_ms <= ms(now_ns))
        };
        let since_ns = host.process.as_ref().and_then(Process::waits_since_ns);
        let timeout_ns = u64::from(self.scenario.fetch_timeout_ms) * MS;
        is_epoch_due || since_ns.is_some_and(|since_ns| since_ns + timeout_ns <= now_ns)
    }

    /// The program of a node has ended: the frames of its pages are free.
    fn free_pages(&mut self, id: NodeId, now_ns: u64) -> Result<(), GmsError> {
        let pages = self.hosts[id as usize].node.pages().iter();
        let used = pages.filter(|page| page.kind != Kind::Global);
        let used: Vec<Uid> = used.map(|page| page.uid).collect();
        for uid in used {
            self.step(id, &Event::Freed { uid }, now_ns)?;
        }
        Ok(())
    }

    /// The policy's node handles an event, and its actions are carried out. Returns true for a local hit.
    fn step(&mut self, id: NodeId, event: &Event, now_ns: u64) -> Result<bool, GmsError> {
        let mut actions = std::mem::take(&mut self.actions);
        if self.scenario.policy == MemoryPolicy::Exact && may_evict(event) {
            let oldest = Event::Oldest(self.oldest_node(now_ns));
            self.decide(id, &oldest, now_ns, &mut actions);
        }
        self.decide(id, event, now_ns, &mut actions);
        let is_local = self.carry_out(id, event, now_ns, &actions)?;
        actions.clear();
        self.actions = actions;
        let pages = self.hosts[id as usize].node.pages();
        if pages.is_over() {
            return Err(GmsError::Violation(Violation::Frames {
                node: id,
                pages: pages.len(),
                frames: pages.limit(),
                at_ns: now_ns,
            }));
        }
        Ok(is_local)
    }

    fn decide(&mut self, id: NodeId, event: &Event, now_ns: u64, actions: &mut Vec<Action>) {
        let dice = &mut self.dice;
        let node = &mut self.hosts[id as usize].node;
        node.step(event, ms(now_ns), &mut || dice.next_u64(), actions);
    }

    /// Node with the cluster's oldest frame; of equals, the lowest.
    fn oldest_node(&self, now_ns: u64) -> Option<NodeId> {
        let boost = self.scenario.boost_quarters;
        let mut best: Option<(u64, NodeId)> = None;
        for host in &self.hosts {
            let age_ms = host.node.pages().oldest_age_ms(boost, ms(now_ns));
            if let Some(age_ms) = age_ms
                && best.is_none_or(|(best_ms, _)| age_ms > best_ms)
            {
                best = Some((age_ms, host.node.id()));
            }
        }
        best.map(|(_, id)| id)
    }

    /// Delivers all that is under way; programs make no further references.
    fn settle(&mut self) -> Result<(), GmsError> {
        self.deliver_rest()?;
        // Readers that wait for each other read their pages from the source after a timeout.
        let now_ns = self.queue.now_ns() + u64::from(self.scenario.fetch_timeout_ms) * MS;
        for id in self.ids() {
            let process = self.hosts[id as usize].process.as_ref();
            if process.is_some_and(|process| process.waits_since_ns().is_some()) {
                self.step(id, &Event::Tick, now_ns)?;
            }
        }
        self.deliver_rest()
    }

    fn deliver_rest(&mut self) -> Result<(), GmsError> {
        while let Some((now_ns, event)) = self.queue.pop() {
            match event {
                Scheduled::Arrival { .. } | Scheduled::Loaded { .. } => {
                    self.happen(event, now_ns)?
                }
                Scheduled::Resume(_)
                | Scheduled::Reference(_)
                | Scheduled::Tick
                | Scheduled::Exchange
                | Scheduled::Frames(..)
                | Scheduled::Owner(_) => {}
            }
        }
        Ok(())
    }
}

/// Time on the policy's clock.
const fn ms(now_ns: u64) -> i64 {
    (now_ns / MS) as i64
}

/// Returns true if the event may bring a page for which another one leaves.
const fn may_evict(event: &Event) -> bool {
    matches!(
        event,
        Event::Loaded { .. }
            | Event::Message {
                message: Message::Page { .. } | Message::PutPage { .. },
                ..
            }
    )
}
