//! Model check of every interleaving of a small case: the real [`Lender`], a store that performs the
//! actions, two clients, two links, a network that loses, repeats, delays and reorders messages, an owner
//! who leaves and returns, memory that runs short, time, outages of the recruiters, and memory servers that
//! are killed.
//!
//! The properties in `properties` are about the history (the `Ghost`), never about the lender's own state.

mod client;
mod ghost;
mod properties;

use super::*;
use crate::accounting::Categories;
use crate::idle::Verdict;
use crate::quota::Limits;
use client::{Client, Message, client_name};
use ghost::Ghost;
use stateright::{Checker, Model, Property};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

const SLAB: u64 = SLAB_BYTES;
const TICK_MS: i64 = 10_000;
const TERM_MS: i64 = 2 * TICK_MS;
const GRACE_MS: i64 = TICK_MS;
const PHYSICAL: u64 = 8;
/// Maximum number of slabs lent: `ROOM` normally, `LESS_ROOM` while memory is short.
const ROOM: u64 = 3;
const LESS_ROOM: u64 = 1;

/// The small case: requests, end, and number of failures.
#[derive(Clone, Debug, Default)]
struct Case {
    /// Slabs that each client requests.
    wants: [u64; 2],
    /// For each client, how often it may request a lease, renew it, and release it.
    asks: [[u8; 3]; 2],
    ends_at_ms: i64,
    budget: Budget,
    /// Scenes observed on any path.
    seen: Arc<Mutex<BTreeSet<&'static str>>>,
}

/// Number of times that each failure may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Budget {
    returns: u8,
    stale_samples: u8,
    falls: u8,
    kills: u8,
    outages: u8,
    copies: u8,
    revocations: u8,
}

#[derive(Clone, Debug)]
struct State {
    lender: Lender,
    generation: u64,
    now_ms: i64,
    /// Slabs of each lease of this generation, by the lease's number.
    store: BTreeMap<u8, u64>,
    /// Bytes that the store has reclaimed but not reported yet.
    reclaimed: Option<Vec<(u8, u64)>>,
    /// Messages in transit, in no order.
    requests: Vec<Message>,
    answers: Vec<(usize, Lease)>,
    clients: [Client; 2],
    is_idle: bool,
    has_less_room: bool,
    is_linked: bool,
    budget: Budget,
    ghost: Ghost,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Ask(usize),
    Renew(usize),
    Release(usize),
    Deliver(usize),
    DeliverACopy(usize),
    Answer(usize),
    /// The store reports the bytes that it has reclaimed.
    TellGivenBack,
    OwnerReturns,
    /// A sample taken before the owner returned arrives afterwards and says idle.
    StaleSample,
    OwnerLeaves,
    MemoryRunsShort,
    MemoryIsBack,
    /// The certificate of one client is revoked.
    CertificateIsRevoked(usize),
    RecruitersAreGone,
    RecruitersAreBack,
    Killed,
    TimePasses,
}

fn name(number: u8) -> String {
    format!("{number:032x}")
}

fn number(lease_id: &str) -> u8 {
    u8::from_str_radix(lease_id, 16).unwrap()
}

impl Case {
    fn lender(generation: u64) -> Lender {
        let settings = Settings {
            limits: Limits {
                headroom_share: 0.5,
                ..Limits::default()
            },
            rise_after_ms: TICK_MS,
            max_term_ms: TERM_MS,
            shrink_step_bytes: SLAB,
            shrink_every_ms: TICK_MS,
            outage_grace_ms: GRACE_MS,
            ..Settings::default()
        };
        Lender::new(settings, generation)
    }
}

impl State {
    /// Slabs that the owner leaves for lending.
    fn room(&self) -> u64 {
        match (self.is_idle, self.has_less_room) {
            (false, _) => 0,
            (true, false) => ROOM,
            (true, true) => LESS_ROOM,
        }
    }

    fn held(&self) -> u64 {
        self.store.values().sum()
    }

    fn sample(&mut self, since_ms: i64) {
        let room = if self.has_less_room { LESS_ROOM } else { ROOM };
        let held = self.held();
        let available_bytes = (PHYSICAL / 2 + room).saturating_sub(held) * SLAB;
        self.step(&Event::Sample {
            categories: Categories {
                physical_bytes: PHYSICAL * SLAB,
                available_bytes,
                guest_bytes: held * SLAB,
                ..Categories::default()
            },
            mem_available_bytes: Some(available_bytes),
            headroom_share: 0.5,
            verdict: Verdict::Idle { since_ms },
        });
    }

    /// The lender handles the event, and the memory server performs the actions.
    fn step(&mut self, event: &Event) {
        for action in self.lender.step(event, self.now_ms) {
            match action {
                Action::RevokeAll(_) => {
                    for id in std::mem::take(&mut self.store).into_keys() {
                        self.ghost.ended(id);
                    }
                }
                Action::Revoke { lease_id, cause } => {
                    let id = number(&lease_id);
                    self.store.remove(&id);
                    self.ghost.revoked(id, cause);
                }
                Action::Open {
                    lease_id, bytes, ..
                } => {
                    let id = number(&lease_id);
                    self.store.insert(id, bytes / SLAB);
                    let (room, held) = (self.room(), self.held());
                    self.ghost.opened(id, held <= room);
                }
                Action::Shrink { bytes, .. } => self.shrink(bytes / SLAB),
                Action::Answer {
                    link,
                    request_id,
                    outcome,
                } => {
                    self.ghost.answered(link, request_id, &outcome);
                    // A client learns nothing from answers other than grants.
                    if let Outcome::Granted { lease } = outcome {
                        self.answers.push((request_id as usize % 2, lease));
                    }
                }
                Action::Announce => {}
            }
        }
        let leases = self.lender.leases(self.now_ms);
        let not_told_of = self.reclaimed.as_deref().unwrap_or_default();
        self.ghost.look(&leases, &self.store, not_told_of);
    }

    /// Reclaims slabs of the oldest leases first.
    fn shrink(&mut self, mut slabs: u64) {
        let mut reclaimed = Vec::new();
        for (id, held) in &mut self.store {
            let less = slabs.min(*held);
            if less > 0 {
                *held -= less;
                slabs -= less;
                reclaimed.push((*id, less));
            }
        }
        self.ghost.scene("leases are shrunk");
        self.reclaimed = Some(reclaimed);
    }

    /// The memory server knows which leases this client has read and written: here, all of its own.
    fn revoke_certificate(&mut self, client: usize) {
        let theirs = client_name(client);
        let leases = self.lender.leases(self.now_ms);
        let (revoked, others): (Vec<_>, Vec<_>) =
            leases.into_iter().partition(|l| l.client == theirs);
        let ids = revoked.into_iter().map(|lease| lease.lease_id).collect();
        self.step(&Event::CertificateRevoked(ids));
        self.ghost.left(&self.lender.leases(self.now_ms), &others);
    }

    fn deliver(&mut self, message: &Message) {
        let event = message.event(&name(self.ghost.fresh()));
        self.step(&event);
    }
}

impl Model for Case {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            lender: Self::lender(1),
            generation: 1,
            now_ms: 0,
            store: BTreeMap::new(),
            reclaimed: None,
            requests: Vec::new(),
            answers: Vec::new(),
            clients: [0, 1].map(|i| Client::new(self.wants[i], self.asks[i])),
            is_idle: true,
            has_less_room: false,
            is_linked: true,
            budget: self.budget,
            ghost: Ghost::default(),
        };
        state.sample(0);
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (i, client) in state.clients.iter().enumerate() {
            steps.extend(client.may_ask().then_some(Step::Ask(i)));
            steps.extend(client.may_renew().then_some(Step::Renew(i)));
            steps.extend(client.may_release().then_some(Step::Release(i)));
            let is_revocable = state.budget.revocations > 0;
            steps.extend(is_revocable.then_some(Step::CertificateIsRevoked(i)));
        }
        for i in 0..state.requests.len() {
            steps.push(Step::Deliver(i));
            steps.extend((state.budget.copies > 0).then_some(Step::DeliverACopy(i)));
        }
        for i in 0..state.answers.len() {
            steps.push(Step::Answer(i));
        }
        let budget = &state.budget;
        let others = [
            (state.reclaimed.is_some(), Step::TellGivenBack),
            (state.is_idle && budget.returns > 0, Step::OwnerReturns),
            (
                !state.is_idle && budget.stale_samples > 0,
                Step::StaleSample,
            ),
            (!state.is_idle, Step::OwnerLeaves),
            (
                state.is_idle && !state.has_less_room && budget.falls > 0,
                Step::MemoryRunsShort,
            ),
            (state.is_idle && state.has_less_room, Step::MemoryIsBack),
            (
                state.is_linked && budget.outages > 0,
                Step::RecruitersAreGone,
            ),
            (!state.is_linked, Step::RecruitersAreBack),
            (budget.kills > 0, Step::Killed),
            (state.now_ms < self.ends_at_ms, Step::TimePasses),
        ];
        steps.extend(others.into_iter().filter(|(may, _)| *may).map(|(_, s)| s));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut next = last.clone();
        match step {
            Step::Ask(i) => next.requests.push(next.clients[i].ask(i)),
            Step::Renew(i) => next.requests.push(next.clients[i].renew(i)?),
            Step::Release(i) => next.requests.push(next.clients[i].release(i)?),
            Step::Deliver(i) => {
                let message = next.requests.remove(i);
                next.deliver(&message);
            }
            Step::DeliverACopy(i) => {
                next.budget.copies -= 1;
                let message = next.requests[i].clone();
                next.deliver(&message);
            }
            Step::Answer(i) => {
                let (client, lease) = next.answers.remove(i);
                next.clients[client].hear(&lease);
            }
            Step::TellGivenBack => {
                let reclaimed = next.reclaimed.take()?;
                let told = reclaimed.iter().map(|(id, n)| (name(*id), n * SLAB));
                next.step(&Event::Shrunk(told.collect()));
            }
            Step::OwnerReturns => {
                next.budget.returns -= 1;
                next.is_idle = false;
                next.step(&Event::Returned(Cause::Owner));
            }
            Step::StaleSample => {
                next.budget.stale_samples -= 1;
                next.sample(-TICK_MS);
            }
            Step::OwnerLeaves => {
                next.is_idle = true;
                next.sample(next.now_ms);
            }
            Step::MemoryRunsShort => {
                next.budget.falls -= 1;
                next.has_less_room = true;
                next.sample(next.now_ms);
            }
            Step::MemoryIsBack => {
                next.has_less_room = false;
                next.sample(next.now_ms);
            }
            Step::CertificateIsRevoked(i) => {
                next.budget.revocations -= 1;
                next.revoke_certificate(i);
            }
            Step::RecruitersAreGone => {
                next.budget.outages -= 1;
                next.is_linked = false;
                next.step(&Event::Linked(false));
            }
            Step::RecruitersAreBack => {
                next.is_linked = true;
                next.ghost.outage_ms = 0;
                next.step(&Event::Linked(true));
            }
            Step::Killed => {
                next.budget.kills -= 1;
                next.generation += 1;
                next.lender = Self::lender(next.generation);
                next.reclaimed = None;
                next.is_idle = false; // the new server has received no sample yet
                next.budget.stale_samples = 0; // no return is known that a stale sample could precede
                for id in std::mem::take(&mut next.store).into_keys() {
                    next.ghost.ended(id);
                }
                next.step(&Event::Linked(next.is_linked));
            }
            Step::TimePasses => {
                next.now_ms += TICK_MS;
                next.ghost.time_passes(next.is_linked);
                next.step(&Event::Tick);
            }
        }
        if next.clients.iter().all(|client| next.is_served(client)) {
            next.ghost.scene("both clients are served");
        }
        if let Ok(mut seen) = self.seen.lock() {
            seen.extend(next.ghost.scenes.drain(..));
        }
        next.requests.sort();
        let order = |(client, lease): &(usize, Lease)| (*client, lease.lease_id.clone());
        next.answers.sort_by_key(order);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

/// Hashes everything that can influence the next step.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let lender = &self.lender;
        (lender.shrinking, &lender.ledger, lender.now_ms).hash(hasher);
        lender.allowance.hash_for_the_model(hasher);
        (self.generation, &self.store, &self.reclaimed).hash(hasher);
        (&self.requests, &self.clients).hash(hasher);
        for (client, lease) in &self.answers {
            (client, &lease.lease_id, lease.generation).hash(hasher);
        }
        (self.is_idle, self.has_less_room, self.is_linked).hash(hasher);
        (self.budget, &self.ghost).hash(hasher);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let hash = |state: &Self| {
            let mut hasher = DefaultHasher::new();
            state.hash(&mut hasher);
            hasher.finish()
        };
        hash(self) == hash(other)
    }
}

fn check(case: Case, scenes: &[&str]) {
    let seen = Arc::clone(&case.seen);
    let checker = case.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let count = checker.unique_state_count();
    assert!(count > 10_000, "{count} states are not all of them");
    let seen = seen.lock().unwrap();
    for scene in scenes {
        assert!(seen.contains(scene), "in {count} states never: {scene}");
    }
}

#[test]
fn two_clients_a_network_and_an_owner() {
    let case = Case {
        wants: [2, 1],
        asks: [[2, 0, 1], [1, 0, 1]],
        ends_at_ms: 0,
        budget: Budget {
            returns: 1,
            stale_samples: 1,
            kills: 1,
            copies: 1,
            ..Budget::default()
        },
        ..Case::default()
    };
    check(
        case,
        &[
            "both clients are served",
            "a lease is released",
            "all leases are revoked",
            "refused: in use",
        ],
    );
}

#[test]
fn time_outages_and_memory_that_runs_short() {
    let case = Case {
        wants: [2, 1],
        asks: [[1, 1, 0], [1, 0, 0]],
        ends_at_ms: 4 * TICK_MS,
        budget: Budget {
            falls: 1,
            outages: 1,
            ..Budget::default()
        },
        ..Case::default()
    };
    check(
        case,
        &[
            "a lease runs out",
            "a lease is renewed",
            "leases are shrunk",
            "a lease is shrunk away",
            "an outage stops the time of leases",
            "refused: no such lease",
        ],
    );
}

#[test]
fn a_client_whose_certificate_is_revoked() {
    let case = Case {
        wants: [2, 1],
        asks: [[2, 1, 0], [1, 0, 1]],
        ends_at_ms: 2 * TICK_MS,
        budget: Budget {
            falls: 1,
            revocations: 1,
            ..Budget::default()
        },
        ..Case::default()
    };
    check(
        case,
        &[
            "a lease ends by revocation",
            "both clients are served",
            "refused: no such lease",
        ],
    );
}

#[test]
fn two_clients_want_more_than_there_is() {
    let case = Case {
        wants: [2, 2],
        asks: [[1, 1, 1], [2, 0, 1]],
        ends_at_ms: 2 * TICK_MS,
        budget: Budget {
            returns: 1,
            ..Budget::default()
        },
        ..Case::default()
    };
    check(case, &["refused: no memory", "a lease runs out"]);
}
