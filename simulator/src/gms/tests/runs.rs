//! Whole simulations: laws, determinism, and shapes that hand-worked scenarios predict.

use super::*;
use crate::swept::Spread;
use proptest::prelude::*;

#[test]
fn the_same_seed_gives_the_same_outcome() {
    for policy in MemoryPolicy::ALL {
        let scenario = Scenario {
            policy,
            has_bystanders: true,
            bystander_pages: 600,
            ..small()
        };
        let outcome = simulate(&scenario, 3).unwrap();
        assert_eq!(outcome, simulate(&scenario, 3).unwrap(), "{policy}");
        assert_ne!(outcome, simulate(&scenario, 4).unwrap(), "{policy}");
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let text = "system = 'gms'\nseeds = [1, 2]\n[scenario]\ncounted_faults = 200\n\
                [sweep]\npolicy = ['gms', 'n-chance']\nrich_nodes = [0, 2]";
    let file = ScenarioFile::parse(text).unwrap();
    assert_eq!(runs(&file).unwrap(), 8);
    let of = |threads| rows(&file, &[], threads, &|_| {}).unwrap();
    let found = [1, 3].map(|threads| of(std::num::NonZeroUsize::new(threads).unwrap()));
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].len(), 4);
    assert_eq!(found[0][1].settings, ["gms", "2"]);
    let speedups: Vec<Option<Spread>> = found[0].iter().map(|row| row.values[0]).collect();
    assert!(
        speedups
            .iter()
            .flatten()
            .all(|s| s.low <= s.median && s.median <= s.high)
    );
}

/// Idle memory for all pages: after the first pass nearly every fault finds its page in another node's memory.
#[test]
fn enough_idle_memory_replaces_the_disk() {
    let ample = Scenario {
        idle_frames: 20_000,
        ..small()
    };
    let with = simulate(&ample, 1).unwrap();
    let without = simulate(&ample.without_cluster(), 1).unwrap();
    let reads = &with.clients[0].reads;
    assert!(reads.cluster > 10 * reads.source, "{reads:?}");
    let speedup = speedups(&without, &with)[0];
    assert!(speedup > 2.0, "{speedup}");
    let window = with.window.unwrap();
    assert!(window.page_transfers >= reads.cluster);
    assert!(with.epochs > 3);
}

/// Scenario G as a whole system: a loop over all frames of the cluster. A frame that is returned keeps every page; a
/// receiver that is drawn by weight has no free frame and drops a page that is needed.
#[test]
fn a_returned_frame_saves_reads_when_memory_is_just_enough() {
    let source = |swap| {
        let scenario = Scenario {
            swap,
            idle_frames: NEEDED_FRAMES,
            counted_faults: 4_000,
            ..small()
        };
        simulate(&scenario, 1).unwrap().clients[0].reads.source
    };
    assert!(source(Swap::Return) <= source(Swap::Weights));
}

#[test]
fn without_idle_frames_the_cluster_changes_little() {
    let none = Scenario {
        idle_frames: 0,
        ..small()
    };
    let with = simulate(&none, 1).unwrap();
    let without = simulate(&none.without_cluster(), 1).unwrap();
    assert_eq!(with.clients[0].reads.cluster, 0);
    let speedup = speedups(&without, &with)[0];
    assert!((0.9..=1.01).contains(&speedup), "{speedup}");
    // Without receivers nothing ends an epoch early. The time before the first weights is no epoch.
    assert_eq!(with.usual_epochs_share, Some(1.0));
}

#[test]
fn an_exchange_moves_bystanders() {
    let still = Scenario {
        has_bystanders: true,
        bystander_pages: 3_000,
        rich_nodes: 1,
        rich_percent: 80.0,
        ..small()
    };
    let moving = Scenario {
        exchange_ms: 1_000,
        ..still.clone()
    };
    let [still, moving] = [still, moving].map(|scenario| simulate(&scenario, 2).unwrap());
    assert_ne!(still.clients, moving.clients);
    assert!(still.window.unwrap().bystander_slowdown.unwrap() >= 0.99);
    assert_eq!(moving.window.unwrap().bystander_slowdown, None);
}

/// The idle memory is fixed (section 5.4): the program that stops frees as many frames as the other one takes. Pages
/// that it left behind would be younger than the client's, which would be lost.
#[test]
fn idle_memory_stays_the_same_when_nodes_change_places() {
    let moving = Scenario {
        client_frames: 14_000,
        counted_faults: 2_000,
        idle_nodes: 2,
        idle_frames: 4_400,
        rich_nodes: 1,
        rich_percent: 90.0,
        has_bystanders: true,
        bystander_pages: 3_500,
        start_ms: 30_000,
        // Once, near the end of the client's first pass.
        exchange_ms: 58_000,
        ..Scenario::default()
    };
    let reads = &simulate(&moving, 1).unwrap().clients[0].reads;
    assert!(reads.cluster > 10 * reads.source, "{reads:?}");
}

/// An owner takes all idle memory of one node in the first pass: later reads of its pages go to the disk.
#[test]
fn an_owner_takes_memory_and_pages_are_read_from_disk_again() {
    let still = Scenario {
        idle_frames: 20_000,
        ..small()
    };
    let begin_ms = 100_000;
    let change = |at_ms, frames| OwnerChange {
        node: 0,
        at_ms,
        frames,
    };
    let taken = Scenario {
        owners: vec![
            change(0, 6_667),
            change(begin_ms / 2, 0),
            change(begin_ms, 6_667),
        ],
        ..still.clone()
    };
    let source = |scenario: &Scenario| {
        let outcome = simulate(scenario, 1).unwrap();
        outcome.clients[0].reads.source
    };
    assert!(source(&taken) > source(&still) + 20);
}

#[test]
fn recorded_hosts_change_frames() {
    let host = crate::hosts::Timeline::always_idle("a", 8192 * 100);
    let mode = gleaner_schemas::lending::Mode::Paper;
    let change = |node, frames| OwnerChange {
        node,
        at_ms: 0,
        frames,
    };
    let hosts = [host.clone(), host];
    assert_eq!(
        owner_changes(&hosts, mode, 1_000),
        [change(0, 100), change(1, 100)]
    );
    assert_eq!(owner_changes(&hosts[..1], mode, 30), [change(0, 30)]);
}

fn cluster() -> impl Strategy<Value = Scenario> {
    let counts = (1..4_u32, 0..5_u32, 0..9_000_u32, 0..3_u32, 100..4_000_u32);
    let programs = prop::sample::subsequence(Program::ALL.to_vec(), 1..3);
    let rules = (
        prop::sample::select(MemoryPolicy::ALL.to_vec()),
        any::<[bool; 3]>(),
        4..9_u32,
    );
    (counts, programs, rules).prop_map(|(counts, programs, (policy, flags, boost_quarters))| {
        let (clients, idle_nodes, idle_frames, rich_nodes, bystander_pages) = counts;
        let [is_returned, has_bystanders, is_moving] = flags;
        Scenario {
            policy,
            programs,
            clients,
            idle_nodes,
            idle_frames,
            boost_quarters,
            bystander_pages,
            has_bystanders,
            swap: if is_returned {
                Swap::Return
            } else {
                Swap::Weights
            },
            rich_nodes: rich_nodes.min(idle_nodes),
            exchange_ms: if is_moving { 700 } else { 0 },
            owners: owners(if is_moving { idle_nodes } else { 0 }, idle_frames),
            counted_faults: 100,
            ..Scenario::default()
        }
    })
}

/// Owners that come and go on every node with idle memory.
fn owners(idle_nodes: u32, idle_frames: u32) -> Vec<OwnerChange> {
    let change = |n: u32| OwnerChange {
        node: n % idle_nodes.max(1),
        at_ms: u64::from(n) * 4_321,
        frames: if n.is_multiple_of(3) {
            0
        } else {
            idle_frames / 2
        },
    };
    (0..idle_nodes * 20).map(change).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The simulation checks the laws of conservation itself, in every run.
    #[test]
    fn laws_hold_in_random_clusters(scenario in cluster(), seed in 0..9_u64) {
        let outcome = simulate(&scenario, seed);
        let outcome = outcome.map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        prop_assert_eq!(outcome.clients.len(), scenario.clients as usize);
        for client in &outcome.clients {
            prop_assert!(client.reads.sum() >= 100 && client.elapsed_ns > 0);
        }
    }
}
