//! Scenarios D, E, F and H: one node's decisions.

use super::network::Network;
use super::uid;
use crate::global::NodeId;
use crate::global::directory::Holder;
use crate::global::message::{Action, Event, Message, Origin, Weights};
use crate::global::node::Node;
use crate::global::pages::Kind;
use crate::global::settings::{MemoryPolicy, Settings};
use std::sync::Arc;

/// Actions of a node after an event at `at_s`; draws are 0.
fn step(node: &mut Node, event: &Event, at_s: i64) -> Vec<Action> {
    let mut actions = Vec::new();
    node.step(event, at_s * 1000, &mut || 0, &mut actions);
    actions
}

fn message(message: Message) -> Event {
    Event::Message { from: 9, message }
}

fn put(number: u32, age_s: u64) -> Event {
    message(Message::PutPage {
        uid: uid(number),
        age_ms: age_s * 1000,
        chances: 0,
    })
}

/// A node that is alone reads a page.
fn read(node: &mut Node, number: u32, at_s: i64) -> Vec<Action> {
    let uid = uid(number);
    step(node, &Event::Read { uid }, at_s);
    step(node, &Event::Loaded { uid }, at_s)
}

fn weights(own_weight: u64, is_counter: bool, min_age_ms: u64) -> Event {
    message(Message::Weights(Arc::new(Weights {
        epoch: 1,
        initiator: 9,
        length_ms: 10_000,
        min_age_ms,
        own_weight,
        is_counter,
        successors: vec![5],
        targets: vec![(7, 1)],
        ..Weights::default()
    })))
}

const ENDED: Action = Action::Send {
    to: 5,
    message: Message::Ended { epoch: 1 },
};

#[test]
fn scenario_d_ages_count_from_the_begin_of_the_epoch() {
    for (last_use_s, is_sent) in [(930, true), (928, false)] {
        let mut node = Node::new(0, 1, 1, Settings::default(), 0);
        read(&mut node, 1, last_use_s);
        step(&mut node, &weights(0, false, 72_000), 1_000);
        let actions = read(&mut node, 2, 1_005);
        let sent = Action::Send {
            to: 7,
            message: Message::PutPage {
                uid: uid(1),
                age_ms: (1_005 - last_use_s) as u64 * 1000,
                chances: 0,
            },
        };
        assert_eq!(actions.contains(&sent), is_sent);
        assert!(actions.contains(&Action::Drop { uid: uid(1) }));
    }
}

#[test]
fn without_recent_weights_nothing_is_sent() {
    let mut node = Node::new(0, 1, 1, Settings::default(), 0);
    let is_put = |actions: &[Action]| {
        actions
            .iter()
            .any(|action| matches!(action, Action::Send { .. }))
    };
    read(&mut node, 1, 1);
    assert!(!is_put(&read(&mut node, 2, 2)), "no weights yet");
    step(&mut node, &weights(0, false, 72_000), 3);
    assert!(is_put(&read(&mut node, 3, 4)));
    assert!(is_put(&read(&mut node, 4, 32)));
    assert!(!is_put(&read(&mut node, 5, 33)), "30 s without weights");
}

#[test]
fn scenario_e_a_refused_page_does_not_count() {
    let mut node = Node::new(1, 1, 99, Settings::default(), 0);
    step(&mut node, &weights(100, true, 0), 100);
    for number in 0..99 {
        assert!(!step(&mut node, &put(number, 10), 101).contains(&ENDED));
    }
    // Older than every page here: refused.
    assert!(!step(&mut node, &put(500, 60), 102).contains(&ENDED));
    assert_eq!(node.epoch().counts.received, 99);
    assert!(node.pages().get(uid(500)).is_none());
    // A page that the node has already.
    assert!(step(&mut node, &put(3, 10), 103).contains(&ENDED));
    assert!(
        !step(&mut node, &put(4, 10), 103).contains(&ENDED),
        "reported once"
    );
}

#[test]
fn scenario_f_young_victims_end_the_epoch() {
    for (own_weight, ends_at) in [(20, 8), (40, 10)] {
        let mut node = Node::new(1, 1, 1, Settings::default(), 0);
        read(&mut node, 1, 95);
        step(&mut node, &weights(own_weight, false, 72_000), 100);
        for count in 1..=ends_at {
            let actions = step(&mut node, &put(100 + count, 50), 101);
            assert_eq!(actions.contains(&ENDED), count == ends_at, "put {count}");
        }
        assert_eq!(node.epoch().counts.received, 0);
    }
}

const S: NodeId = 0;
const T1: NodeId = 1;
const T2: NodeId = 2;

/// Cluster of scenario H. S has one frame with page 2, last used at 0 s. T2 is full, with duplicates that
/// were last used at -9 and -5 s.
fn chances(frames_of_t1: u32) -> Network {
    let settings = Settings {
        policy: MemoryPolicy::NChance,
        ..Settings::default()
    };
    let mut cluster = Network::new(&[1, frames_of_t1, 2], settings);
    cluster.read(T1, uid(10), -30);
    for (number, at_s) in [(20, -9), (21, -5)] {
        cluster.read(T2, uid(number), at_s);
        // A reader outside of the cluster makes the page a duplicate.
        let message = Message::Forward {
            uid: uid(number),
            reader: Holder {
                node: 99,
                ..Holder::default()
            },
        };
        cluster.step(T2, &Event::Message { from: 99, message });
        cluster.settle();
    }
    cluster.read(S, uid(2), 0);
    cluster
}

#[test]
fn scenario_h_a_full_node_forwards_a_single_page() {
    let mut cluster = chances(1);
    // S draws T1, the first other node.
    cluster.read(S, uid(3), 0);
    assert_eq!(cluster.puts, [(T1, uid(2)), (T2, uid(2))]);
    let page = cluster.node(T2).pages().get(uid(2)).unwrap();
    assert_eq!((page.kind, page.chances), (Kind::Global, 1));
    assert_eq!(page.last_use_ms, cluster.now_ms, "youngest");
    assert!(cluster.node(T2).pages().get(uid(20)).is_none(), "of 9 s");
    assert!(cluster.node(T2).pages().get(uid(21)).is_some(), "of 5 s");
    // T2 uses its other page, and evicts the unused one: no chance is left.
    cluster.puts.clear();
    cluster.read(T2, uid(21), 1);
    assert_eq!(cluster.read(T2, uid(22), 2), Origin::Source);
    assert!(cluster.node(T2).pages().get(uid(2)).is_none());
    assert!(cluster.puts.is_empty());
}

#[test]
fn scenario_h_a_free_frame_stores_the_page_with_its_chances() {
    let mut cluster = chances(2);
    cluster.read(S, uid(3), 0);
    let page = cluster.node(T1).pages().get(uid(2)).unwrap();
    assert_eq!((page.kind, page.chances), (Kind::Global, 2));
    cluster.read(T1, uid(10), 1);
    cluster.puts.clear();
    // T1 draws T2, the second other node.
    cluster.random = [u64::MAX].into();
    cluster.read(T1, uid(11), 2);
    assert_eq!(cluster.puts, [(T2, uid(2))]);
    let page = cluster.node(T2).pages().get(uid(2)).unwrap();
    assert_eq!(page.chances, 1);
}
