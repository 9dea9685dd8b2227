//! Random runs of whole clusters: laws of conservation, and equality with plain LRU where the rules say so.

use super::network::Network;
use super::uid;
use crate::global::message::{Event, Origin};
use crate::global::pages::Kind;
use crate::global::settings::{MemoryPolicy, Settings, Swap, Victim};
use crate::global::{NodeId, Uid};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const NODES: u32 = 3;
const PAGES: u32 = 9;

#[derive(Clone, Copy, Debug)]
enum Step {
    Read(NodeId, u32),
    Deliver(prop::sample::Index),
    Wait(i64),
    Frames(NodeId, u32),
    Free(NodeId, u32),
    Members,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..NODES, 0..PAGES).prop_map(|(node, page)| Step::Read(node, page)),
        16 => any::<prop::sample::Index>().prop_map(Step::Deliver),
        3 => (1..8_000_i64).prop_map(Step::Wait),
        1 => (0..NODES, 0..4_u32).prop_map(|(node, frames)| Step::Frames(node, frames)),
        1 => (0..NODES, 0..PAGES).prop_map(|(node, page)| Step::Free(node, page)),
        1 => Just(Step::Members),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let choices = (any::<bool>(), any::<bool>(), any::<bool>(), 1..=2_usize);
    let local_frames = prop_oneof![Just(u32::MAX), 0..4_u32];
    let policies = prop::sample::select(MemoryPolicy::ALL.to_vec());
    (policies, choices, local_frames).prop_map(
        |(policy, (is_returned, is_global_first, is_exclusive, homes), local_frames)| Settings {
            policy,
            swap: if is_returned {
                Swap::Return
            } else {
                Swap::Weights
            },
            victim: if is_global_first {
                Victim::GlobalFirst
            } else {
                Victim::Oldest
            },
            is_exclusive,
            homes,
            local_frames,
            ..Settings::default()
        },
    )
}

impl Network {
    fn wait(&mut self, ms: i64) {
        self.now_ms += ms;
        for node in 0..NODES {
            self.step(node, &Event::Tick);
        }
    }

    /// Checks the state after all messages have arrived and all timeouts have passed.
    fn check_at_rest(&self, has_directory: bool) {
        let mut global = BTreeSet::new();
        for node in 0..NODES {
            for page in 0..PAGES {
                assert!(
                    !self.node(node).is_fetching(uid(page)),
                    "a read does not end"
                );
            }
            if !has_directory {
                continue;
            }
            for page in self.node(node).pages().iter() {
                let owner = self.node(node).members().owner(page.uid).unwrap();
                let mut holders = self.node(owner).directory().holders(page.uid);
                assert!(
                    holders.any(|holder| holder.node == node),
                    "{page:?} on {node} is not found"
                );
                if page.kind == Kind::Global {
                    assert!(global.insert(page.uid), "two global copies: {page:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The driver checks its own laws in every step.
    #[test]
    fn laws_hold_in_every_run(
        settings in settings(),
        steps in prop::collection::vec(step(), 0..150),
        numbers in prop::collection::vec(any::<u64>(), 64),
    ) {
        let mut cluster = Network::new(&[2, 2, 3], settings);
        // Seven frames are too few for weights of their own.
        cluster.weigh(&[(0, 1), (1, 1), (2, 1)], u64::MAX);
        cluster.random = numbers.into();
        for step in steps {
            match step {
                Step::Read(node, page) => cluster.step(node, &Event::Read { uid: uid(page) }),
                Step::Deliver(at) if cluster.in_transit() > 0 => {
                    let at = at.index(cluster.in_transit());
                    cluster.deliver(at);
                }
                Step::Deliver(_) => {}
                Step::Wait(ms) => cluster.wait(ms),
                Step::Frames(node, frames) => cluster.step(node, &Event::Frames(frames)),
                Step::Free(node, page) => cluster.step(node, &Event::Freed { uid: uid(page) }),
                Step::Members => {
                    let members = cluster.members();
                    for node in 0..NODES {
                        cluster.step(node, &Event::Members(Arc::clone(&members)));
                    }
                }
            }
        }
        cluster.settle();
        cluster.wait(settings.fetch_timeout_ms);
        cluster.settle();
        let has_directory = !matches!(settings.policy, MemoryPolicy::Hash | MemoryPolicy::None);
        cluster.check_at_rest(has_directory);
    }

    #[test]
    fn one_node_is_plain_lru(
        reads in prop::collection::vec(0..12_u32, 1..100),
        policy in prop::sample::select(MemoryPolicy::ALL.to_vec()),
    ) {
        let settings = Settings { policy, boost_quarters: 4, ..Settings::default() };
        let mut cluster = Network::new(&[5], settings);
        let mut lru = PlainLru::new(5);
        for (at_s, page) in (0..).zip(reads) {
            let origin = cluster.read(0, uid(page), at_s);
            prop_assert_eq!(origin == Origin::Local, lru.read(uid(page)));
            let local: Vec<Uid> = cluster.node(0).pages().iter().map(|page| page.uid).collect();
            prop_assert_eq!(&local, &lru.pages);
        }
    }

    /// With full knowledge, one active client uses all frames of the cluster as one LRU cache.
    #[test]
    fn exact_with_one_client_is_lru_of_all_frames(reads in prop::collection::vec(0..14_u32, 1..150)) {
        let settings = Settings {
            policy: MemoryPolicy::Exact,
            boost_quarters: 4,
            ..Settings::default()
        };
        let mut cluster = Network::new(&[3, 2, 4], settings);
        let mut lru = PlainLru::new(9);
        for (at_s, page) in (0..).zip(reads) {
            let origin = cluster.read(0, uid(page), at_s);
            prop_assert_eq!(origin != Origin::Source, lru.read(uid(page)), "page {} at {}", page, at_s);
        }
    }
}

/// Least recently used order as a list, oldest first.
struct PlainLru {
    pages: Vec<Uid>,
    frames: usize,
}

impl PlainLru {
    fn new(frames: usize) -> Self {
        Self {
            pages: Vec::new(),
            frames,
        }
    }

    /// Returns true for a hit.
    fn read(&mut self, uid: Uid) -> bool {
        let at = self.pages.iter().position(|page| *page == uid);
        if let Some(at) = at {
            self.pages.remove(at);
        } else if self.pages.len() == self.frames {
            self.pages.remove(0);
        }
        self.pages.push(uid);
        at.is_some()
    }
}
