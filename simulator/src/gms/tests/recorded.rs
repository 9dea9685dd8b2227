//! Recorded hosts as nodes with idle memory: laws, determinism, and effects that follow from the records.

use super::*;
use crate::event::{HOUR, SECOND};
use crate::hosts::{Change, ModeQuotas, Presence, Timeline};
use gleaner_policy::quota::Mode;
use proptest::prelude::*;
use std::sync::Arc;

const MINUTE: u64 = 60 * SECOND;
const PAGE_BYTES: u32 = 8_192;
/// Frames that an idle host lends.
const FRAMES: u32 = 7_000;

fn change(at_ns: u64, presence: Presence, frames: u32) -> Change {
    let bytes = u64::from(frames) * u64::from(PAGE_BYTES);
    Change {
        at_ns,
        presence,
        quotas: ModeQuotas {
            paper_bytes: bytes,
            gentle_bytes: bytes,
            spare_bytes: bytes / 2,
        },
        seen: None,
        returned: None,
    }
}

/// A host whose owner comes and goes every `minutes`; 0: it is always idle.
fn host(minutes: u64) -> Timeline {
    let changes = (0..120_u64).map(|at| {
        let is_in_use = minutes > 0 && at / minutes % 2 == 1;
        let presence = match is_in_use {
            true => Presence::InUse,
            false => Presence::Idle,
        };
        change(at * MINUTE, presence, FRAMES)
    });
    Timeline {
        changes: changes.collect(),
        ..Timeline::default()
    }
}

fn with_hosts(hosts: &[Timeline], scenario: Scenario) -> Scenario {
    let rules = &scenario.recorded;
    let recorded = RecordedHosts::new(hosts, rules, scenario.frame_bytes, 2 * HOUR);
    Scenario {
        hosts: Some(Arc::new(recorded)),
        ..scenario
    }
}

fn source(outcome: &Outcome) -> u64 {
    outcome
        .clients
        .iter()
        .map(|client| client.reads.source)
        .sum()
}

#[test]
fn hosts_that_are_always_idle_replace_the_disk() {
    let scenario = with_hosts(&[host(0)], small());
    let outcome = simulate(&scenario, 1).unwrap();
    assert_eq!(outcome, simulate(&scenario, 1).unwrap());
    let reads = &outcome.clients[0].reads;
    assert!(reads.cluster > 10 * reads.source, "{reads:?}");
    let owners = outcome.owners.unwrap();
    assert_eq!(
        (owners.returns, owners.reclaimed_pages, owners.in_use_ns),
        (0, 0, 0)
    );
    assert_eq!(owners.cpu_share(), None, "no host was in use");
    assert!(outcome.traffic.page_transfers >= reads.cluster);
    let pages_bytes = outcome.traffic.page_transfers * u64::from(PAGE_BYTES);
    assert!(outcome.traffic.network_bytes > pages_bytes);
}

#[test]
fn owners_take_frames_back_and_reads_go_to_the_disk_again() {
    let still = simulate(&with_hosts(&[host(0)], small()), 1).unwrap();
    let moving = simulate(&with_hosts(&[host(1)], small()), 1).unwrap();
    assert!(source(&moving) > source(&still) + 20);
    let owners = moving.owners.unwrap();
    // Three nodes repeat one host, which is in use every other minute; two of them begin in an idle minute.
    assert!(
        owners.returns >= 2 && owners.reclaimed_pages > 0,
        "{owners:?}"
    );
    assert!(owners.in_use_ns > 0 && owners.in_use_ns < 3 * moving.end_ns);
    assert!(owners.in_use_kernel_ns < owners.in_use_ns);
}

#[test]
fn a_host_in_use_lends_in_mode_spare_alone() {
    let in_use = Timeline {
        changes: vec![change(0, Presence::InUse, FRAMES)],
        ..Timeline::default()
    };
    let cluster = |mode| {
        let recorded = Recorded {
            mode,
            ..Recorded::default()
        };
        let scenario = Scenario {
            recorded,
            ..small()
        };
        let outcome = simulate(&with_hosts(std::slice::from_ref(&in_use), scenario), 1).unwrap();
        let owners = outcome.owners.unwrap();
        assert!(owners.in_use_ns > 0);
        (
            outcome.clients[0].reads.cluster,
            owners.cpu_share().unwrap(),
        )
    };
    assert_eq!(cluster(Mode::Paper).0, 0);
    assert_eq!(cluster(Mode::Gentle).0, 0);
    let (reads, cpu_share) = cluster(Mode::Spare);
    assert!(reads > 0 && cpu_share > 0.0);
}

#[test]
fn clients_that_do_not_end_in_the_recorded_time_are_an_error() {
    let scenario = Scenario {
        compute_us: 10_000_000,
        counted_faults: 2_000,
        ..with_hosts(&[host(0)], small())
    };
    let error = simulate(&scenario, 1).unwrap_err();
    assert!(matches!(error, GmsError::TooShort { .. }), "{error}");
    assert!(error.to_string().contains("2 recorded hours"), "{error}");
}

#[test]
fn the_time_without_other_nodes_does_not_depend_on_them() {
    let scenario = with_hosts(&[host(1)], small());
    assert_eq!(scenario.without_cluster(), small().without_cluster());
    let other = Scenario {
        policy: MemoryPolicy::Hash,
        is_exclusive: true,
        idle_nodes: 7,
        ..small()
    };
    assert_eq!(other.without_cluster(), small().without_cluster());
}

#[test]
fn readers_of_shared_files_read_less_from_the_source() {
    let cluster = |program| {
        let scenario = Scenario {
            programs: vec![program],
            clients: 3,
            client_frames: 4_096,
            counted_faults: 100,
            frame_bytes: 8 * PAGE_BYTES,
            compute_us: 100,
            idle_nodes: 4,
            policy: MemoryPolicy::Gms,
            ..Scenario::default()
        };
        let hosts = Timeline {
            changes: vec![change(0, Presence::Idle, 8 * 5_000)],
            ..Timeline::default()
        };
        simulate(&with_hosts(&[hosts], scenario), 1).unwrap()
    };
    let (shared, private) = (
        cluster(Program::SharedReader),
        cluster(Program::PrivateReader),
    );
    assert!(source(&shared) < source(&private));
    let bytes =
        |outcome: &Outcome| outcome.traffic.network_bytes / outcome.traffic.page_transfers.max(1);
    assert!(
        bytes(&shared) >= u64::from(8 * PAGE_BYTES),
        "a transfer is a frame of 64 KiB"
    );
}

fn timelines() -> impl Strategy<Value = Vec<Timeline>> {
    let presence = prop::sample::select(vec![Presence::Idle, Presence::InUse, Presence::Unseen]);
    let changes = prop::collection::btree_map(0..60_u64, (presence, 0..6_000_u32), 0..20);
    let timeline = changes.prop_map(|changes| Timeline {
        changes: changes
            .into_iter()
            .map(|(minute, (presence, frames))| change(minute * MINUTE / 4, presence, frames))
            .collect(),
        ..Timeline::default()
    });
    prop::collection::vec(timeline, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// The simulation checks the laws of conservation itself, in every run.
    #[test]
    fn laws_hold_with_recorded_owners(
        hosts in timelines(),
        policy in prop::sample::select(MemoryPolicy::ALL.to_vec()),
        mode in prop::sample::select(vec![Mode::Paper, Mode::Gentle, Mode::Spare]),
        idle_nodes in 1..8_u32,
        is_exclusive in any::<bool>(),
        seed in 0..9_u64,
    ) {
        let scenario = Scenario {
            policy,
            is_exclusive,
            idle_nodes,
            clients: 2,
            programs: vec![Program::Oo7, Program::SharedReader],
            counted_faults: 100,
            recorded: Recorded { mode, shift_minutes: 7, ..Recorded::default() },
            ..Scenario::default()
        };
        let scenario = with_hosts(&hosts, scenario);
        let outcome = simulate(&scenario, seed);
        let outcome = outcome.map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        let owners = outcome.owners.unwrap_or_default();
        prop_assert!(owners.in_use_ns <= u64::from(idle_nodes) * outcome.end_ns);
        prop_assert_eq!(outcome.clients.len(), 2);
    }
}
