//! Tests: shutdowns worked by hand, laws in random runs, determinism, files and their inputs.

mod inputs;

use super::*;
use proptest::prelude::*;
use std::num::NonZeroUsize;

/// Pages of a lease of 256 MiB.
const LEASE_PAGES: u32 = 65_536;

/// A lease of 256 MiB whose owner returns after a second; the client is nearly idle.
fn lease(shutdown: Shutdown) -> Scenario {
    Scenario {
        shutdown,
        choice: Choice::Stick,
        clients: 1,
        client_pages: vec![LEASE_PAGES],
        page_ins_per_s: 0.001,
        page_outs_per_s: 0.0,
        servers: 2,
        server_pages: LEASE_PAGES,
        owners: vec![RoomChange {
            server: 0,
            at_ms: 1_000,
            pages: 0,
        }],
        length_ms: 2_000,
        ..Scenario::default()
    }
}

/// Time in ms until 99 % of the lease is the owner's.
fn owner_ms(scenario: &Scenario) -> f64 {
    let outcome = simulate(scenario, 1).unwrap();
    assert_eq!(outcome.returns[0].pages, LEASE_PAGES);
    outcome.returns[0].owner_ns.unwrap() as f64 / 1e6
}

#[test]
fn a_lease_is_the_owner_s_as_fast_as_the_link_or_the_disk() {
    // All pages take 2.147 s by 1 Gbit/s, 0.215 s by 10 Gbit/s and 215 s by 10 Mbit/s: 99 % of them a
    // hundredth less.
    for shutdown in [Shutdown::Migrate, Shutdown::MigrateReserved] {
        for (link_mbit_per_s, all_ms) in [(1e3, 2_147.5), (1e4, 214.7), (10.0, 214_748.4)] {
            let scenario = Scenario {
                link_mbit_per_s,
                ..lease(shutdown)
            };
            let share = owner_ms(&scenario) / all_ms;
            assert!(
                (0.985..1.0).contains(&share),
                "{shutdown:?}, {link_mbit_per_s}: {share}"
            );
        }
    }
    // A disk of 100 MB/s takes 2.684 s, at the server and at the client.
    for shutdown in [Shutdown::ServerDisk, Shutdown::ClientDisk] {
        let share = owner_ms(&lease(shutdown)) / 2_684.4;
        assert!((0.985..1.0).contains(&share), "{shutdown:?}: {share}");
    }
}

#[test]
fn dropped_pages_are_the_owner_s_within_milliseconds() {
    // 64,881 pages of 100 ns; replicas' holders are informed first.
    assert_eq!(owner_ms(&lease(Shutdown::AtOnce)), 6.4881);
    assert_eq!(owner_ms(&lease(Shutdown::Replicate)), 6.5081);
}

#[test]
fn only_dropping_at_once_loses_pages_and_a_disk_replaces_them() {
    for shutdown in Shutdown::ALL {
        for has_disk_copy in [false, true] {
            let scenario = Scenario {
                has_disk_copy,
                ..lease(shutdown)
            };
            let outcome = simulate(&scenario, 1).unwrap();
            let is_lossy = shutdown == Shutdown::AtOnce && !has_disk_copy;
            let lost = if is_lossy { u64::from(LEASE_PAGES) } else { 0 };
            assert_eq!(outcome.lost_pages, lost, "{shutdown:?}");
            let has_replica = shutdown == Shutdown::Replicate;
            let sole = if has_disk_copy || has_replica {
                0
            } else {
                u64::from(LEASE_PAGES)
            };
            assert_eq!(outcome.lost_with_one_pages, sole, "{shutdown:?}");
            let is_prepared = [Shutdown::Replicate, Shutdown::MigrateReserved].contains(&shutdown);
            assert_eq!(outcome.distinct_share, if is_prepared { 0.5 } else { 1.0 });
            let disk_bytes = outcome.returns[0].owner_disk_bytes;
            assert_eq!(
                disk_bytes > 0,
                shutdown == Shutdown::ServerDisk,
                "{shutdown:?}"
            );
        }
    }
}

#[test]
fn a_burst_sends_each_page_once() {
    let outcome = simulate(&lease(Shutdown::MigrateReserved), 1).unwrap();
    let page_bytes = u64::from(LEASE_PAGES) * PAGE_BYTES;
    let sent_bytes = outcome.returns[0].network_bytes;
    // Heads, callbacks: 28 bytes each.
    assert_eq!(sent_bytes, page_bytes + u64::from(LEASE_PAGES) * (28 + 28));
    let lazy = Scenario {
        forwarding: Forwarding::NextReference,
        ..lease(Shutdown::MigrateReserved)
    };
    let outcome = simulate(&lazy, 1).unwrap();
    assert_eq!(
        outcome.returns[0].network_bytes,
        page_bytes + u64::from(LEASE_PAGES) * 28
    );
}

/// A server with all 16,384 pages becomes dormant; the two other servers have 8,192 second copies each, and now
/// copy these to each other.
fn copied(copy_pace: CopyPace) -> Outcome {
    let scenario = Scenario {
        copy_pace,
        client_pages: vec![16_384],
        page_ins_per_s: 1_000.0,
        servers: 3,
        ..lease(Shutdown::Replicate)
    };
    simulate(&scenario, 1).unwrap()
}

/// Longest page-in, which may have begun just before the return.
fn longest_ns(outcome: &Outcome) -> u64 {
    let parts = [&outcome.before, &outcome.during];
    let longest = parts.map(|part| part.times_ns.last().copied());
    longest.into_iter().flatten().max().unwrap()
}

#[test]
fn second_copies_yield_to_page_ins() {
    // A page-in: request and page with a latency of 20 us each, 20 us of CPU, and 32.768 us on the link.
    let alone_ns = 92_768;
    let idle = copied(CopyPace::WhenIdle);
    assert_eq!(idle.before.quantile_ns(0.99), Some(alone_ns));
    // A page-in waits for one copy at most. The first one may ask the dormant server in vain, for 60 us.
    let idle_ns = longest_ns(&idle);
    assert!(idle_ns > alone_ns, "no page-in met a copy");
    assert!(idle_ns <= alone_ns + 32_768 + 60_000, "{idle_ns}");
    // 8,192 copies take 268.4 ms of each link.
    let at_once = copied(CopyPace::AtOnce);
    let at_once_ms = longest_ns(&at_once) / 1_000_000;
    assert!((200..269).contains(&at_once_ms), "{at_once_ms}");
}

#[test]
fn second_copies_are_complete_again_after_idle_moments() {
    let [idle_ms, at_once_ms] = [CopyPace::WhenIdle, CopyPace::AtOnce].map(|copy_pace| {
        let outcome = copied(copy_pace);
        let owner = &outcome.returns[0];
        // Each page: a notice, a callback, a copy with its head, and the copy's acknowledgement.
        assert_eq!(owner.network_bytes, 16_384 * (28 + 28 + 4_124 + 28));
        assert_eq!(outcome.lost_pages, 0);
        owner.copied_ns.unwrap() / 1_000_000
    });
    assert_eq!(at_once_ms, 268);
    // A page-in delays its server's copies by 52.8 us at most, its CPU time and its page. A second has fewer than
    // 1,100 page-ins, at two servers.
    assert!((269..310).contains(&idle_ms), "{idle_ms}");
    let without_copies = simulate(&lease(Shutdown::AtOnce), 1).unwrap();
    assert_eq!(without_copies.returns[0].copied_ns, None);
}

#[test]
fn sticking_depends_on_fewer_servers_and_spreading_balances_load() {
    let [spread, stick] = [Choice::Spread, Choice::Stick].map(|choice| {
        let scenario = Scenario {
            choice,
            // Two clients of four servers, in turn, find the same servers freest again and again.
            clients: 3,
            client_pages: vec![400],
            server_pages: 1_000,
            length_ms: 20_000,
            ..Scenario::default()
        };
        simulate(&scenario, 1).unwrap()
    });
    assert_eq!(stick.servers_of_clients, 3);
    assert!(spread.servers_of_clients > 2 * 3);
    assert!(spread.load_variation().unwrap() < 0.5);
    assert!(stick.load_variation().unwrap() > 0.5);
    assert_eq!(
        (spread.lost_with_one_pages, stick.lost_with_one_pages),
        (300, 400)
    );
}

/// Page-outs are not waited for, and here they are made faster than one reaches a server.
#[test]
fn page_outs_do_not_take_the_last_place_from_each_other_for_ever() {
    let scenario = Scenario {
        full: FullServers::SharedLru,
        has_disk_copy: true,
        clients: 2,
        client_pages: vec![50],
        page_outs_per_s: 50_000.0,
        servers: 1,
        server_pages: 1,
        latency_us: 1_000,
        length_ms: 100,
        ..Scenario::default()
    };
    simulate(&scenario, 1).unwrap();
}

/// The first client has eight times the pages of the other, and references them as often.
#[test]
fn one_order_of_all_pages_answers_more_than_fixed_parts() {
    let [fixed, shared] = [FullServers::FixedParts, FullServers::SharedLru].map(|full| {
        let scenario = Scenario {
            full,
            has_disk_copy: true,
            clients: 2,
            client_pages: vec![1_600, 200],
            page_ins_per_s: 20.0,
            page_outs_per_s: 0.0,
            disk_read_us: 100,
            servers: 1,
            server_pages: 1_000,
            length_ms: 600_000,
            ..Scenario::default()
        };
        let outcome = simulate(&scenario, 1).unwrap();
        outcome.server_page_ins as f64 / outcome.page_ins() as f64
    });
    // Fixed parts of 500 pages: 500 of 1,600, and all of 200. One order: 800 of 1,600 at most.
    assert!((0.6..0.72).contains(&fixed), "{fixed}");
    assert!(shared > fixed, "{shared} {fixed}");
}

#[test]
fn shipped_scenarios_can_be_run() {
    for (name, text) in SHIPPED {
        assert!(ScenarioFile::is_of_servers(text), "{name}");
        let file = ScenarioFile::parse(text).unwrap();
        assert!(!file.about.is_empty() && file.about.len() < 120, "{name}");
        assert!(runs(&file).unwrap() > 5, "{name}");
        assert!(
            !file.keys().is_empty() && !file.columns.is_empty(),
            "{name}"
        );
    }
}

#[test]
fn faulty_files_are_refused_by_line() {
    for (text, expected) in [
        ("system = 'server'", "line 1"),
        ("system = 'servers'\nsead = [1]", "line 2"),
        (
            "system = 'servers'\n[scenario]\nshutdown = 'later'",
            "line 3",
        ),
        (
            "system = 'servers'\n[scenario]\nclients = 0",
            "line 3: clients = 0",
        ),
        (
            "system = 'servers'\n[scenario]\nlink_mbit_per_s = nan",
            "line 3: link_mbit_per_s",
        ),
        (
            "system = 'servers'\n[scenario]\nfull = 'shared-lru'",
            "has_disk_copy",
        ),
        (
            "system = 'servers'\ncolumns = ['speedup']",
            "columns = speedup",
        ),
        (
            "system = 'servers'\n[sweep]\nchoice = ['best']",
            "sweep of choice",
        ),
        ("system = 'servers'\nseeds = []", "0 runs"),
    ] {
        let error = ScenarioFile::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    assert!(!ScenarioFile::is_of_servers("system = 'gms'"));
}

#[test]
fn results_do_not_depend_on_threads() {
    let text = "system = 'servers'\nseeds = [1, 2]\n\
                [scenario]\nclients = 2\nclient_pages = [100]\nlength_ms = 2000\n\
                [sweep]\nchoice = ['spread', 'stick']\nshutdown = ['migrate', 'at-once']";
    let file = ScenarioFile::parse(text).unwrap();
    let of = |threads| {
        let threads = NonZeroUsize::new(threads).unwrap();
        rows(&file, &Inputs::default(), threads, &|_| {}).unwrap()
    };
    let found = of(1);
    assert_eq!(found, of(3));
    assert_eq!((found.len(), runs(&file).unwrap()), (4, 8));
    assert_eq!(found[1].settings, ["spread", "at-once"]);
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    let policies = (
        prop::sample::select(Shutdown::ALL.to_vec()),
        any::<[bool; 4]>(),
        prop::sample::select(vec![
            FullServers::ClientDisk,
            FullServers::FixedParts,
            FullServers::SharedLru,
        ]),
    );
    let change = (0..3_u32, 0..4_000_u64, 0..150_u32);
    let owners = prop::collection::vec(change, 0..8);
    let counts = (1..4_u32, 1..200_u32, 0..200_u32, 1..20_u32);
    (policies, owners, counts).prop_map(|((shutdown, flags, full), owners, counts)| {
        let (clients, pages, server_pages, burst_pages) = counts;
        let owner = |(server, at_ms, pages)| RoomChange {
            server,
            at_ms,
            pages,
        };
        let [is_stick, is_lazy, has_disk, is_at_once] = flags;
        Scenario {
            shutdown,
            forwarding: if is_lazy {
                Forwarding::NextReference
            } else {
                Forwarding::Callback
            },
            copy_pace: if is_at_once {
                CopyPace::AtOnce
            } else {
                CopyPace::WhenIdle
            },
            choice: if is_stick {
                Choice::Stick
            } else {
                Choice::Spread
            },
            full,
            has_disk_copy: has_disk || full != FullServers::ClientDisk,
            clients,
            client_pages: vec![pages, 50],
            page_ins_per_s: 100.0,
            page_outs_per_s: 50.0,
            new_page_share: 0.2,
            servers: 3,
            server_pages,
            link_mbit_per_s: 10.0,
            burst_pages,
            owners: owners.into_iter().map(owner).collect(),
            length_ms: 5_000,
            ..Scenario::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The simulation checks the laws of conservation itself, in every run.
    #[test]
    fn laws_hold_in_random_runs(scenario in any_scenario(), seed in 0..9_u64) {
        let outcome = simulate(&scenario, seed);
        let outcome = outcome.map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        prop_assert_eq!(&outcome, &simulate(&scenario, seed).unwrap());
        prop_assert!(outcome.distinct_share <= 1.0);
    }
}
