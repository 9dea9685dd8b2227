//! Tests of several concurrent clients.

use super::*;

fn borrower(name: &str, begin_ns: u64, blocks: &[u64]) -> Borrower<FixedProgram> {
    Borrower {
        name: name.to_owned(),
        host_id: None,
        begin_ns,
        program: FixedProgram::reading(blocks, 1000),
    }
}

fn on(host_id: &str, borrower: Borrower<FixedProgram>) -> Borrower<FixedProgram> {
    Borrower {
        host_id: Some(host_id.to_owned()),
        ..borrower
    }
}

fn shared(clients: &[Borrower<FixedProgram>], hosts: &[Timeline]) -> SharedOutcome {
    let scenario = Scenario {
        length_ns: SECOND,
        ..scenario()
    };
    simulate_clients(&scenario, clients, hosts).unwrap()
}

fn end_and_answers(client: &ClientOutcome) -> (Option<u64>, [u64; 3]) {
    (client.end_ns, answered(&client.counts))
}

#[test]
fn two_clients_want_the_one_region_that_a_host_has_room_for() {
    // One slab is free, which is enough for one region.
    let room = vec![change(0, Presence::Idle, (2 << 20) + 500, None)];
    let hosts = [host("h", room)];
    let clients = [
        borrower("first", 0, &[0, 0, 7]),
        borrower("second", 500, &[0, 0, 7]),
    ];
    let outcome = shared(&clients, &hosts);
    let [first, second] = &outcome.clients[..] else {
        panic!("{outcome:?}")
    };
    // The first client runs as if alone: it requests at 1000, has stored the region by 2115, and reads twice
    // in 1020.
    assert_eq!(end_and_answers(first), (Some(4155), [0, 2, 1]));
    // The second client is refused at 1500, knows it at 1510, and has read from disk by 1610. For a minute it
    // makes no more requests for memory, so the other two reads take 1000 + 100 each.
    assert_eq!(end_and_answers(second), (Some(3810), [0, 0, 3]));
    let regions = outcome.regions;
    assert_eq!(
        (
            regions.stored_count,
            regions.refusals,
            regions.deleted_count
        ),
        (1, 1, 1)
    );
    assert_eq!(
        (first.baseline_ns, first.speedup),
        (3300, Some(3300.0 / 4155.0))
    );
    assert_eq!(
        (second.baseline_ns, second.speedup),
        (3300, Some(3300.0 / 3310.0))
    );
    assert_eq!(
        (outcome.counts.requests_count, answered(&outcome.counts)),
        (6, [0, 2, 4])
    );
    // Until the first client's end, 1000 bytes are lent from 1000 on.
    assert_eq!(regions.mean_leased_bytes, 1000.0 * 3155.0 / SECOND as f64);
    // After the first client has ended, another client can use the slab.
    let late = borrower("late", 4155, &[0, 0, 7]);
    let outcome = shared(&[clients[0].clone(), late], &hosts);
    let ends: Vec<_> = outcome.clients.iter().map(end_and_answers).collect();
    assert_eq!(ends, [(Some(4155), [0, 2, 1]), (Some(2 * 4155), [0, 2, 1])]);
}

#[test]
fn what_one_client_lost_takes_nothing_of_another_ones() {
    // From 6000 on the host may keep only the region that came first, so it drops the second client's region.
    let less = vec![
        change(0, Presence::Idle, ROOM, None),
        change(6000, Presence::Idle, SLAB_BYTES + 1500, None),
    ];
    let clients = [
        borrower("first", 0, &[0; 9]),
        borrower("second", 500, &[0; 9]),
    ];
    let outcome = shared(&clients, &[host("h", less)]);
    let [first, second] = &outcome.clients[..] else {
        panic!("{outcome:?}")
    };
    assert_eq!(end_and_answers(first), (Some(2115 + 8 * 1020), [0, 8, 1]));
    // The second client's region is stored by 2615 and read three times by 5675. Then a request fails at
    // 6675, the manager refuses memory at 6685, and the block is read from disk by 6795. Four more reads take
    // 1100 each.
    assert_eq!(end_and_answers(second), (Some(6795 + 4 * 1100), [0, 3, 6]));
    let regions = outcome.regions;
    assert_eq!(
        (
            regions.dropped_by_shrink_count,
            regions.failed_accesses,
            regions.dropped_by_client_count
        ),
        (1, 1, 0)
    );
}

#[test]
fn a_clients_own_host_lends_nothing_until_it_has_ended() {
    let hosts = [always()];
    let own = on("always", borrower("own", 0, &[0, 0, 7]));
    let outcome = shared(&[own.clone(), borrower("other", 0, &[0, 0, 7])], &hosts);
    let ends: Vec<_> = outcome.clients.iter().map(end_and_answers).collect();
    // Both clients are refused at 1000, and know it at 1010.
    assert_eq!(ends, [(Some(3310), [0, 0, 3]), (Some(3310), [0, 0, 3])]);
    assert_eq!(outcome.owners.returns, 0);
    let outcome = shared(&[own.clone(), borrower("other", 3310, &[0, 0, 7])], &hosts);
    let other = &outcome.clients[1];
    assert_eq!(end_and_answers(other), (Some(3310 + 4155), [0, 2, 1]));
    // Two clients work on one host. When the first has ended, the second still works there, so the host lends
    // nothing.
    let second = on("always", borrower("second", 0, &[0; 9]));
    let outcome = shared(&[own, second, borrower("other", 3310, &[0, 0, 7])], &hosts);
    assert_eq!(answered(&outcome.clients[2].counts), [0, 0, 3]);

    let nowhere = on("nowhere", borrower("lost", 0, &[0]));
    let error = simulate_clients(&scenario(), &[nowhere], &hosts).unwrap_err();
    assert!(
        error.to_string().contains("clients.host_id = nowhere"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// A single client gives the same outcome as a simulation of one program.
    #[test]
    fn one_of_one_is_as_alone(
        hosts in prop::collection::vec(any_host(), 1..4),
        program in any_program(),
        cache_blocks in 0u64..10,
    ) {
        let mut scenario = scenario();
        scenario.client.local_cache_bytes = cache_blocks * 100;
        let (end_ns, counts, ..) = run(&scenario, &program, &hosts);
        let client = Borrower { name: "client".to_owned(), host_id: None, begin_ns: 0, program };
        let outcome = simulate_clients(&scenario, &[client], &hosts).unwrap();
        prop_assert_eq!((outcome.clients[0].end_ns, outcome.clients[0].counts), (Some(end_ns), counts));
    }

    /// For any clients, each client's requests are answered once, and hosts lend exactly the bytes of all
    /// clients' regions there; otherwise the simulation returns an error. A repetition gives the same result.
    #[test]
    fn it_holds_for_several(
        hosts in prop::collection::vec(any_host(), 1..4),
        programs in prop::collection::vec((any_program(), 0u64..4000, any::<bool>()), 1..4),
        placement in prop::sample::select(&Placement::ALL[..]),
        retention in prop::sample::select(&Policy::ALL[..]),
        drops_host in any::<bool>(),
    ) {
        let mut scenario = scenario();
        scenario.length_ns = 100_000;
        scenario.remote.placement = PlacementName(placement);
        scenario.remote.retention = RetentionName(retention);
        if !drops_host {
            scenario.remote.lost_region = LostRegion::DropRegion;
        }
        scenario.remote.refraction_ms = 0;
        let clients: Vec<_> = (programs.into_iter().enumerate())
            .map(|(at, (program, begin_ns, has_host))| Borrower {
                name: format!("client {at}"),
                host_id: has_host.then(|| hosts[at % hosts.len()].host_id.clone()),
                begin_ns,
                program,
            })
            .collect();
        let outcome = simulate_clients(&scenario, &clients, &hosts).unwrap();
        for (told, client) in outcome.clients.iter().zip(&clients) {
            let unanswered = told.counts.requests_count - answered(&told.counts).iter().sum::<u64>();
            prop_assert!(unanswered <= u64::from(client.program.processes));
            if told.end_ns.is_some() {
                prop_assert_eq!((unanswered, told.counts.requests_count), (0, client.program.requests.len() as u64));
            }
        }
        prop_assert!(outcome.regions.mean_leased_bytes <= outcome.regions.mean_quota_bytes);
        prop_assert_eq!(outcome, simulate_clients(&scenario, &clients, &hosts).unwrap());
    }
}
