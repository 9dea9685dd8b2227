//! Scenarios C, G and I: whole clusters.

use super::network::Network;
use super::uid;
use crate::global::message::{Event, Message, Origin};
use crate::global::pages::Kind;
use crate::global::settings::{MemoryPolicy, Settings, Swap};
use crate::global::{NodeId, Uid};
use std::collections::VecDeque;

const P: NodeId = 0;
const Q: NodeId = 1;
const R: NodeId = 2;

fn sorted(letters: &str) -> Vec<Uid> {
    let mut uids: Vec<Uid> = letters.chars().map(|letter| uid(letter as u32)).collect();
    uids.sort();
    uids
}

fn letter(letter: char) -> Uid {
    uid(letter as u32)
}

#[test]
fn scenario_c_the_four_cases_with_full_knowledge() {
    let settings = Settings {
        policy: MemoryPolicy::Exact,
        ..Settings::default()
    };
    let mut cluster = Network::new(&[3, 3, 3], settings);
    // The beginning: pages in the order of their last use.
    for (at_s, node, page, is_global) in [
        (-500, R, 'd', false),
        (-50, P, 'g', true),
        (-40, Q, 'y', true),
        (-30, Q, 'x', true),
        (-10, Q, 'c', false),
        (-5, R, 'f', false),
        (-3, R, 'e', false),
        (-2, P, 'b', false),
        (-1, P, 'a', false),
    ] {
        if is_global {
            cluster.put(node, letter(page), at_s, 0);
        } else {
            assert_eq!(cluster.read(node, letter(page), at_s), Origin::Source);
        }
    }
    cluster.puts.clear();
    let pages = |cluster: &Network| [P, Q, R].map(|node| cluster.pages(node));
    let expected =
        |nodes: [(&str, &str); 3]| nodes.map(|(local, global)| (sorted(local), sorted(global)));
    assert_eq!(
        pages(&cluster),
        expected([("ab", "g"), ("c", "xy"), ("def", "")])
    );

    // Case 1: P's global page takes the frame of x on Q.
    assert_eq!(cluster.read(P, letter('x'), 0), Origin::Cluster);
    assert_eq!(
        pages(&cluster),
        expected([("abx", ""), ("c", "gy"), ("def", "")])
    );
    // Case 2: P has no global page; its least recently used page is b.
    assert_eq!(cluster.read(P, letter('y'), 1), Origin::Cluster);
    assert_eq!(
        pages(&cluster),
        expected([("axy", ""), ("c", "bg"), ("def", "")])
    );
    // Case 3: d on R is the cluster's oldest page, of 502 s.
    assert_eq!(cluster.read(P, letter('z'), 2), Origin::Source);
    assert_eq!(
        pages(&cluster),
        expected([("xyz", ""), ("c", "bg"), ("ef", "a")])
    );
    // Case 4: e is copied; the oldest is g, of 53 · 5/4 = 66.25 s.
    let g = cluster.node(Q).pages().get(letter('g')).unwrap();
    assert_eq!(g.age_ms(5, 1_003_000), 66_250);
    assert_eq!(cluster.read(P, letter('e'), 3), Origin::Cluster);
    assert_eq!(
        pages(&cluster),
        expected([("eyz", ""), ("c", "bx"), ("ef", "a")])
    );
    let kinds = |cluster: &Network| {
        [P, R].map(|node| {
            cluster
                .node(node)
                .pages()
                .get(letter('e'))
                .map(|page| page.kind)
        })
    };
    assert_eq!(kinds(&cluster), [Some(Kind::Duplicate); 2]);
    assert_eq!(cluster.puts.len(), 4);

    // The least recently used page on P is now a duplicate: it is dropped, and no other page is lost.
    cluster.read(P, letter('y'), 4);
    cluster.read(P, letter('z'), 5);
    assert_eq!(cluster.read(P, letter('h'), 6), Origin::Source);
    assert_eq!(
        pages(&cluster),
        expected([("hyz", ""), ("c", "bx"), ("ef", "a")])
    );
    assert_eq!(kinds(&cluster), [None, Some(Kind::Local)]);
    assert_eq!(cluster.puts.len(), 4);
}

/// P with two frames, Q and R with one each; P reads pages 1 to 4 in turn.
fn four_pages(swap: Swap) -> Network {
    let settings = Settings {
        swap,
        ..Settings::default()
    };
    let mut cluster = Network::new(&[2, 1, 1], settings);
    cluster.put(Q, uid(1), 1, 0);
    cluster.put(R, uid(2), 2, 0);
    cluster.read(P, uid(3), 3);
    cluster.read(P, uid(4), 4);
    cluster.weigh(&[(Q, 1), (R, 1)], u64::MAX);
    cluster
}

#[test]
fn scenario_g_a_returned_frame_loses_no_page() {
    let mut cluster = four_pages(Swap::Return);
    for at_s in 5..25 {
        let page = (at_s - 1) % 4 + 1;
        assert_eq!(cluster.read(P, uid(page as u32), at_s), Origin::Cluster);
        let counts = [P, Q, R].map(|node| cluster.node(node).pages().len());
        assert_eq!(counts, [2, 1, 1]);
    }
}

#[test]
fn scenario_g_drawn_receivers_lose_half_a_page_per_read() {
    const READS: i64 = 6;
    let mut loads = [0; READS as usize];
    // Every sequence of draws: bit i chooses the receiver after read i.
    for sequence in 0_u64..1 << READS {
        let mut cluster = four_pages(Swap::Weights);
        cluster.random = (0..READS)
            .map(|i| (sequence >> i) << 63)
            .collect::<VecDeque<_>>();
        for (at_s, loads) in (5..).zip(&mut loads) {
            let page = (at_s - 1) % 4 + 1;
            let origin = cluster.read(P, uid(page as u32), at_s);
            *loads += u64::from(origin == Origin::Source);
        }
        assert!(cluster.random.is_empty(), "one draw per read");
    }
    assert_eq!(loads, [0, 32, 32, 32, 32, 32]);
}

#[test]
fn scenario_i_a_late_message_removes_nothing_of_another_node() {
    let mut cluster = Network::new(&[2, 2, 2], Settings::default());
    // A page whose entry is on R, and which Q has read.
    let page = (0..)
        .map(uid)
        .find(|uid| cluster.node(P).members().owner(*uid) == Some(R))
        .unwrap();
    cluster.read(Q, page, 1);
    // Q drops the page; its message to R stays in transit.
    cluster.step(Q, &Event::Frames(0));
    assert_eq!(cluster.in_transit(), 1);
    cluster.step(P, &Event::Read { uid: page });
    while cluster.in_transit() > 1 {
        cluster.deliver(1);
    }
    assert_eq!(cluster.ready.last(), Some(&(P, page, Origin::Source)));
    cluster.settle();
    let holders: Vec<NodeId> = cluster
        .node(R)
        .directory()
        .holders(page)
        .map(|holder| holder.node)
        .collect();
    assert_eq!(holders, [P]);
}

#[test]
fn a_program_that_ends_frees_its_pages_but_no_global_ones() {
    let mut cluster = Network::new(&[2, 2, 2], Settings::default());
    cluster.read(P, uid(1), 1);
    cluster.read(Q, uid(1), 2);
    cluster.put(P, uid(2), 3, 0);
    for page in [1, 2, 3] {
        cluster.step(P, &Event::Freed { uid: uid(page) });
    }
    cluster.settle();
    let pages: Vec<Uid> = cluster.node(P).pages().iter().map(|p| p.uid).collect();
    assert_eq!(pages, [uid(2)], "held for other nodes");
    let copy = cluster.node(Q).pages().get(uid(1)).unwrap();
    assert_eq!(copy.kind, Kind::Local, "no longer a duplicate");
}

#[test]
fn a_page_that_is_on_its_way_is_read_once_from_its_source() {
    let mut cluster = Network::new(&[2, 2, 2], Settings::default());
    for node in [P, Q, R] {
        cluster.step(node, &Event::Read { uid: uid(7) });
    }
    cluster.settle();
    let count = |wanted| {
        cluster
            .ready
            .iter()
            .filter(|(_, _, origin)| *origin == wanted)
            .count()
    };
    assert_eq!((count(Origin::Source), count(Origin::Cluster)), (1, 2));
}

#[test]
fn a_silent_node_delays_a_read_until_the_timeout() {
    let mut cluster = Network::new(&[2, 2], Settings::default());
    let page = (0..)
        .map(uid)
        .find(|uid| cluster.node(P).members().owner(*uid) == Some(Q))
        .unwrap();
    cluster.step(P, &Event::Read { uid: page });
    assert_eq!(cluster.in_transit(), 1);
    // The request stays in transit.
    cluster.now_ms += 499;
    cluster.step(P, &Event::Tick);
    assert!(cluster.ready.is_empty());
    cluster.now_ms += 1;
    cluster.step(P, &Event::Tick);
    let at = cluster.in_transit() - 1;
    cluster.deliver(at);
    assert_eq!(cluster.ready, [(P, page, Origin::Source)]);
    // The late request changes nothing.
    cluster.settle();
    assert_eq!(cluster.ready.len(), 1);
    assert!(
        cluster
            .node(Q)
            .directory()
            .holders(page)
            .any(|holder| holder.node == P)
    );
}

#[test]
fn a_silent_initiator_is_replaced_by_the_next_node() {
    let mut cluster = Network::new(&[2, 2, 2], Settings::default());
    let epochs = |cluster: &Network| {
        [P, Q, R].map(|node| {
            let weights = &cluster.node(node).epoch().weights;
            (weights.epoch, weights.initiator)
        })
    };
    cluster.step(P, &Event::Tick);
    cluster.settle();
    assert_eq!(epochs(&cluster), [(1, P); 3]);
    // Six frames are too few for weights: the next initiators are in the order of their numbers.
    let weights = &cluster.node(R).epoch().weights;
    assert_eq!((weights.min_age_ms, weights.length_ms), (0, 10_000));
    assert_eq!(weights.successors, [P, Q, R]);
    // P is silent: Q waits 2 s longer than the epoch lasts.
    for (now_ms, expected) in [(11_999, (1, P)), (12_000, (2, Q))] {
        cluster.now_ms = now_ms;
        for node in [Q, R] {
            cluster.step(node, &Event::Tick);
        }
        cluster.settle();
        assert_eq!(epochs(&cluster), [expected; 3]);
    }
}

#[test]
fn homes_keep_a_copy_or_send_the_page_away() {
    for (is_exclusive, copies) in [(false, 2), (true, 1)] {
        let settings = Settings {
            policy: MemoryPolicy::Hash,
            is_exclusive,
            ..Settings::default()
        };
        let mut cluster = Network::new(&[1, 4, 4], settings);
        let is_elsewhere = |uid: &Uid| cluster.node(P).members().homes(*uid).first() == Some(&Q);
        let mut pages = (0..).map(uid).filter(is_elsewhere);
        let (first, second) = (pages.next().unwrap(), pages.next().unwrap());
        assert_eq!(cluster.read(P, first, 1), Origin::Source);
        assert_eq!(cluster.read(P, second, 2), Origin::Source);
        assert_eq!(cluster.read(P, first, 3), Origin::Cluster);
        let holds = |node: NodeId| usize::from(cluster.node(node).pages().get(first).is_some());
        assert_eq!(holds(P) + holds(Q) + holds(R), copies);
    }
}

#[test]
fn a_homes_own_reads_do_not_push_out_the_pages_that_it_holds_for_others() {
    let settings = Settings {
        policy: MemoryPolicy::Hash,
        local_frames: 1,
        ..Settings::default()
    };
    let mut cluster = Network::new(&[4, 4], settings);
    let home = |cluster: &Network, uid: Uid| cluster.node(P).members().homes(uid)[0];
    let of = |node: NodeId| {
        (0..)
            .map(uid)
            .filter(move |uid| home(&Network::new(&[4, 4], settings), *uid) == node)
    };
    let at_p: Vec<Uid> = of(P).take(3).collect();
    let at_q: Vec<Uid> = of(Q).take(4).collect();
    // P reads the pages of which it is the home, and then many others.
    for (at_s, page) in (1..).zip(at_p.iter().chain(&at_q).chain(&at_q)) {
        cluster.read(P, *page, at_s);
    }
    for page in &at_p {
        let held = cluster.node(P).pages().get(*page).unwrap();
        assert_eq!(held.kind, Kind::Global);
    }
    assert_eq!(cluster.node(P).pages().local_count(), 1);
    assert_eq!(cluster.read(Q, at_p[0], 20), Origin::Cluster);
}

#[test]
fn messages_have_sizes() {
    let put = Message::PutPage {
        uid: uid(1),
        age_ms: 0,
        chances: 0,
    };
    assert_eq!((put.bytes(), put.has_data()), (26, true));
    let alone = Message::Alone { uid: uid(1) };
    assert_eq!((alone.bytes(), alone.has_data()), (17, false));
}
