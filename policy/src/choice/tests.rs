//! Tests: choices worked by hand, thrashing, and rules of random sequences.

use super::*;
use proptest::prelude::*;

/// Servers numbered from 0 with this room, none of them busy.
fn servers(free_pages: &[u32]) -> impl Iterator<Item = PageServer> + Clone + '_ {
    free_pages
        .iter()
        .enumerate()
        .map(|(number, free)| PageServer {
            number,
            free_pages: *free,
            is_busy: false,
            has_copy: false,
        })
}

/// A client with `stick` whose two servers answer in 100 and in `other_us`, from second 0 on. Returns the
/// seconds at which it changes.
fn changes(other_us: u64, seconds: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut chooser = Chooser::new(Choice::Stick);
    let mut last = None;
    let mut changes = Vec::new();
    for second in seconds {
        let now_us = second * SECOND_US;
        let chosen = chooser.choose(servers(&[20, 10]), now_us);
        if last.is_some() && last != chosen {
            changes.push(second);
        }
        last = chosen;
        chooser.answered(0, 100, now_us);
        chooser.answered(1, other_us, now_us);
    }
    assert_eq!(chooser.changes_count(), changes.len() as u64);
    changes
}

#[test]
fn spread_takes_the_most_room_and_avoids_busy_servers() {
    let mut chooser = Chooser::new(Choice::Spread);
    assert_eq!(chooser.choose(servers(&[3, 7, 7, 0]), 0), Some(2));
    let first_is_idle = servers(&[3, 7]).map(|server| PageServer {
        is_busy: server.number == 1,
        ..server
    });
    assert_eq!(chooser.choose(first_is_idle, 0), Some(0));
    let busy = servers(&[0, 7]).map(|server| PageServer {
        is_busy: true,
        ..server
    });
    assert_eq!(chooser.choose(busy, 0), Some(1));
    assert_eq!(chooser.choose(servers(&[0, 0]), 0), None);
}

#[test]
fn a_server_must_be_better_by_a_fifth_for_30_s() {
    // The first comparison is at second 1, after the first answers.
    assert_eq!(changes(79, 0..100), [31]);
    assert_eq!(changes(81, 0..100), Vec::<i64>::new());
    // A client that does not choose for more than 10 s begins anew.
    assert_eq!(changes(79, (0..20).chain(31..100)), [62]);
}

#[test]
fn a_full_or_lost_server_is_replaced_at_once() {
    let mut chooser = Chooser::new(Choice::Stick);
    assert_eq!(chooser.choose(servers(&[20, 10, 10]), 0), Some(0));
    chooser.answered(1, 300, 0);
    chooser.answered(2, 200, 0);
    assert_eq!(chooser.choose(servers(&[0, 10, 10]), 1), Some(2));
    // Room alone is no reason to return.
    assert_eq!(chooser.choose(servers(&[20, 10, 10]), 2), Some(2));
    chooser.forget(2);
    assert_eq!(chooser.choose(servers(&[20, 10, 10]), 3), Some(1));
    assert_eq!(chooser.changes_count(), 0, "none of them was by preference");
}

#[test]
fn the_second_copy_has_a_server_of_its_own() {
    let mut chooser = Chooser::new(Choice::Stick);
    let second_copy_of = |first: usize| {
        servers(&[30, 20, 10]).map(move |server| PageServer {
            has_copy: server.number == first,
            ..server
        })
    };
    for now_us in 0..5 {
        assert_eq!(chooser.choose(servers(&[30, 20, 10]), now_us), Some(0));
        assert_eq!(chooser.choose(second_copy_of(0), now_us), Some(1));
    }
}

#[test]
fn answers_older_than_10_s_do_not_count() {
    let mut record = Record::default();
    record.add(100, 0);
    record.add(300, 9 * SECOND_US);
    assert_eq!(record.mean_us(9 * SECOND_US), Some(200.0));
    assert_eq!(record.mean_us(10 * SECOND_US), Some(300.0));
    record.add(50, 10 * SECOND_US);
    assert_eq!(record.mean_us(18 * SECOND_US), Some(175.0));
    assert_eq!(record.mean_us(20 * SECOND_US), None);
}

/// Felten and Zahorjan's thrashing: one server becomes attractive, and the clients that flood it slow it
/// down. Every client changes once in 30 s at most, although a better server exists all the time.
#[test]
fn eight_clients_do_not_thrash() {
    const CLIENTS: usize = 8;
    const SERVERS: usize = 4;
    let mut choosers: Vec<Chooser> = (0..CLIENTS).map(|_| Chooser::new(Choice::Stick)).collect();
    let mut at = [0; CLIENTS];
    let mut changed_us: [Vec<i64>; CLIENTS] = Default::default();
    for (client, chooser) in choosers.iter_mut().enumerate() {
        chooser.answered(client % SERVERS, 900, 0);
        let chosen = chooser.choose(servers(&[100; SERVERS]), 0);
        at[client] = chosen.unwrap();
        assert_eq!(at[client], client % SERVERS);
    }
    for tenth in 1..6_000 {
        let now_us = tenth * SECOND_US / 10;
        let load = |server: usize| at.iter().filter(|at| **at == server).count() as u64;
        let answer_us: [u64; SERVERS] = std::array::from_fn(|server| {
            let is_attractive = server == 0 && tenth > 600;
            let alone_us = if is_attractive { 10 } else { 100 };
            alone_us * (1 + load(server)).pow(2)
        });
        for (client, chooser) in choosers.iter_mut().enumerate() {
            for (server, took_us) in answer_us.iter().enumerate() {
                chooser.answered(server, *took_us, now_us);
            }
            let chosen = chooser.choose(servers(&[100; SERVERS]), now_us).unwrap();
            if chosen != at[client] {
                changed_us[client].push(now_us);
                at[client] = chosen;
            }
        }
    }
    for (client, times_us) in changed_us.iter().enumerate() {
        assert!(times_us.len() >= 2, "client {client}: {times_us:?}");
        let is_slow = times_us
            .windows(2)
            .all(|pair| pair[1] - pair[0] >= PATIENCE_US);
        assert!(is_slow, "client {client}: {times_us:?}");
    }
}

proptest! {
    /// The chosen server has room, and no copy yet; one is chosen whenever there is such a server. A server
    /// that can take the page is left at most once in 30 s.
    #[test]
    fn choices_are_possible_and_slow(
        steps in prop::collection::vec(
            (0..4_usize, 1..1_000_u64, 0..3_000_000_i64, prop::collection::vec(0..3_u32, 4)),
            1..200,
        ),
        is_spread in any::<bool>(),
    ) {
        let choice = if is_spread { Choice::Spread } else { Choice::Stick };
        let mut chooser = Chooser::new(choice);
        let mut now_us = 0;
        let mut last: Option<usize> = None;
        let mut left_us: Option<i64> = None;
        for (number, took_us, pause_us, free_pages) in steps {
            now_us += pause_us;
            chooser.answered(number, took_us, now_us);
            let chosen = chooser.choose(servers(&free_pages), now_us);
            prop_assert_eq!(chosen.is_some(), free_pages.iter().any(|free| *free > 0));
            let Some(chosen) = chosen else { continue };
            prop_assert!(free_pages[chosen] > 0);
            let has_left = last.is_some_and(|last| last != chosen && free_pages[last] > 0);
            if choice == Choice::Stick && has_left {
                prop_assert!(left_us.is_none_or(|left_us| now_us - left_us >= PATIENCE_US));
                left_us = Some(now_us);
            }
            last = Some(chosen);
        }
    }
}
