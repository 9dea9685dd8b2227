//! `cargo run --release -p gleaner-policy --example global_speed` prints the speed of global memory management on one
//! core: weights of large clusters, local hits, faults that end in another node's memory, and bytes per entry of the
//! directories.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a measurement needs a clock and output"
)]

use gleaner_policy::global::age::Summary;
use gleaner_policy::global::members::{Member, Members};
use gleaner_policy::global::message::{Action, Event, Message, Weights};
use gleaner_policy::global::node::Node;
use gleaner_policy::global::settings::Settings;
use gleaner_policy::global::weights::{Division, TargetTable};
use gleaner_policy::global::{NodeId, Uid};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Least time that is measured for each row.
const MEASURED: Duration = Duration::from_secs(1);
/// Frames of each node: 1 GiB in pages of 8 KiB.
const FRAMES: u32 = 131_072;

fn main() {
    for nodes in [1_000, 10_000] {
        print_weights(nodes);
    }
    print_hits();
    print_faults();
}

/// Multiplicative congruential numbers, good enough to visit pages in no order.
fn numbers() -> impl FnMut() -> u64 {
    let mut state = 1_u64;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.rotate_left(32)
    }
}

fn print_weights(nodes: u32) {
    let mut random = numbers();
    let mut summary = |_| {
        let mut summary = Summary {
            free_frames: (random() % 100) as u32,
            ..Summary::default()
        };
        for count in &mut summary.classes {
            *count = (random() % 200) as u32;
        }
        summary
    };
    let summaries: Vec<Summary> = (0..nodes).map(&mut summary).collect();
    let replacements = u64::from(nodes) * 2_000;
    let mut rounds = 0_u32;
    let begun = Instant::now();
    while begun.elapsed() < MEASURED {
        black_box(Division::new(black_box(&summaries), replacements));
        rounds += 1;
    }
    let weights_ms = begun.elapsed().as_secs_f64() * 1e3 / f64::from(rounds);
    let division = Division::new(&summaries, replacements);
    let mut random = numbers();
    let begun = Instant::now();
    let table = TargetTable::new((0..nodes).zip(division.weights));
    for node in 0..nodes {
        black_box(table.targets_of(node, &mut random));
    }
    let targets_ms = begun.elapsed().as_secs_f64() * 1e3;
    println!("{nodes:>6} nodes: weights {weights_ms:.3} ms, targets for all {targets_ms:.2} ms");
}

fn print_hits() {
    let mut node = Node::new(0, 1, FRAMES, Settings::default(), 0);
    let mut actions = Vec::new();
    let page = |number: u64| Uid::private(0, number % u64::from(FRAMES));
    for number in 0..u64::from(FRAMES) {
        let uid = page(number);
        node.step(&Event::Read { uid }, 0, &mut || 0, &mut actions);
        node.step(&Event::Loaded { uid }, 0, &mut || 0, &mut actions);
    }
    let mut random = numbers();
    let mut hits = 0_u64;
    let begun = Instant::now();
    while begun.elapsed() < MEASURED {
        for _ in 0..10_000 {
            actions.clear();
            let uid = page(random());
            node.step(&Event::Read { uid }, 1, &mut || 0, &mut actions);
        }
        hits += 10_000;
    }
    let per_s = hits as f64 / begun.elapsed().as_secs_f64();
    let bytes = node.pages().bytes() as f64 / f64::from(node.pages().len());
    println!(
        "local hits: {:.2} M/s; page frame directory: {bytes:.1} bytes per page",
        per_s / 1e6
    );
}

/// A client reads more pages than it has frames, in turn; the other nodes hold the rest.
fn print_faults() {
    let frames = [FRAMES / 4, FRAMES / 4, FRAMES / 4, FRAMES / 4];
    let new = |(id, frames): (NodeId, u32)| Node::new(id, 1, frames, Settings::default(), 0);
    let mut nodes: Vec<Node> = (0..).zip(frames).map(new).collect();
    let member = |node: NodeId| Member {
        node,
        generation: 1,
        frames: FRAMES / 4,
    };
    let members = Arc::new(Members::new((0..4).map(member).collect(), 0));
    let weights = Arc::new(Weights {
        epoch: 1,
        length_ms: i64::MAX / 4,
        min_age_ms: u64::MAX,
        targets: vec![(1, 1), (2, 1), (3, 1)],
        ..Weights::default()
    });
    let mut actions = Vec::new();
    let mut random = numbers();
    let mut queue = VecDeque::new();
    for id in 0..4 {
        queue.push_back((id, Event::Members(Arc::clone(&members))));
    }
    let message = Message::Weights(weights);
    queue.push_back((0, Event::Message { from: 1, message }));
    let (mut reads, mut begun) = (0_u64, None::<Instant>);
    let pages = u64::from(FRAMES / 4) * 3;
    let mut messages = 0_u64;
    // The first two passes fill the memories; they may take longer than the measurement.
    while begun.is_none_or(|begun| begun.elapsed() < MEASURED) {
        let Some((id, event)) = queue.pop_front() else {
            if reads == 2 * pages {
                (begun, messages) = (Some(Instant::now()), 0);
            }
            let uid = Uid::shared(u128::from(reads % pages));
            queue.push_back((0, Event::Read { uid }));
            reads += 1;
            continue;
        };
        let node: &mut Node = &mut nodes[id as usize];
        node.step(
            &event,
            (reads / 100) as i64 % 20_000,
            &mut random,
            &mut actions,
        );
        for action in actions.drain(..) {
            match action {
                Action::Send { to, message } => {
                    messages += 1;
                    queue.push_back((to, Event::Message { from: id, message }));
                }
                Action::Load { uid } => queue.push_back((id, Event::Loaded { uid })),
                Action::Store { .. } | Action::Ready { .. } | Action::Drop { .. } => {}
            }
        }
    }
    let seconds = begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
    let faults = (reads - 2 * pages) as f64;
    let bytes: usize = nodes.iter().map(|node| node.directory().bytes()).sum();
    let entries: usize = nodes.iter().map(|node| node.directory().len()).sum();
    println!(
        "faults: {:.2} M/s with {:.1} messages each; global cache directory: {:.1} bytes per page",
        faults / seconds / 1e6,
        messages as f64 / faults,
        bytes as f64 / entries.max(1) as f64
    );
}
