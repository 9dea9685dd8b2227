//! The device with simulated servers, disk and client: events occur in any order, and no byte is ever wrong.

mod world;

use gleaner_policy::choice::Choice;
use gleaner_policy::eviction::Policy;
use gleaner_policy::shutdown::Revocation;
use proptest::prelude::*;
use world::{Forgery, PAGES, Step, World, step};

fn revocation() -> impl Strategy<Value = Revocation> {
    prop_oneof![
        Just(Revocation::Drop),
        Just(Revocation::Migrate),
        Just(Revocation::Disk)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// With a disk, no request fails, whatever happens to servers.
    #[test]
    fn with_a_disk_nothing_fails(
        steps in prop::collection::vec(step(3), 0..250),
        copies in 1..3usize,
        slots in 1..9u32,
        on_revocation in revocation(),
        eviction in prop::sample::select(&Policy::ALL[..]),
        choice in prop_oneof![Just(Choice::Spread), Just(Choice::Stick)],
        window_requests in prop_oneof![Just(0), 1..5_u32],
    ) {
        let settings = super::Settings {
            choice,
            window_requests,
            ..World::settings(eviction, copies, true, on_revocation)
        };
        let mut world = World::of(settings, 3, slots);
        for step in &steps {
            world.do_step(step);
        }
        world.settle();
        prop_assert_eq!(world.failed_reads + world.failed_writes, 0);
        prop_assert!(world.contents().into_iter().all(|is_right| is_right));
        prop_assert!(world.device.is_idle());
    }

    /// Without a disk errors may occur, but no wrong byte and no unanswered request.
    #[test]
    fn without_a_disk_nothing_is_wrong(
        steps in prop::collection::vec(step(3), 0..250),
        copies in 1..3usize,
        slots in 1..16u32,
    ) {
        let mut world = World::new(copies, false, 3, slots, Revocation::Migrate);
        for step in &steps {
            world.do_step(step);
        }
        world.settle();
        prop_assert!(world.device.is_idle());
        // Unless a server altered pages, no page is corrupt: late bytes of lost connections have overwritten
        // no page in use.
        let has_lied = steps.iter().any(|step| matches!(step, Step::Flip(_)));
        prop_assert!(has_lied || world.device.counters().corrupt_pages_count == 0);
    }

    /// With two copies of each page, two servers are lost for good, one after the other. The copies are
    /// restored in between, so no page is lost.
    #[test]
    fn with_two_copies_any_one_server_can_go(
        writes in prop::collection::vec((0..PAGES, any::<u8>()), 1..60),
        lost in 0..3usize,
    ) {
        let mut world = World::new(2, false, 3, 64, Revocation::Migrate);
        for (page, byte) in writes {
            world.do_step(&Step::Write(page, byte));
        }
        world.settle();
        world.do_step(&Step::Gone(lost));
        prop_assert!(world.contents().into_iter().all(|is_right| is_right));
        for _ in 0..50 {
            world.wait(500);
            world.settle();
            while !world.under_way.is_empty() {
                world.do_step(&Step::Deliver(0));
            }
        }
        world.do_step(&Step::Gone((lost + 1) % 3));
        prop_assert!(world.contents().into_iter().all(|is_right| is_right));
        prop_assert_eq!(world.failed_writes, 0);
    }
}

fn finish(world: &mut World) {
    for _ in 0..50 {
        world.wait(500);
        while !world.under_way.is_empty() {
            world.do_step(&Step::Deliver(0));
        }
    }
    world.settle();
}

#[test]
fn the_pages_used_last_are_the_ones_that_servers_have() {
    let mut world = World::new(1, true, 1, 4, Revocation::Migrate);
    for page in 0..8 {
        world.do_step(&Step::Write(page, page as u8));
        world.settle();
        finish(&mut world);
    }
    assert_eq!(world.device.counters().evicted_pages_count, 4);
    let disk_reads = |world: &World| world.device.counters().disk_reads_count;
    // Pages 4 to 7 are at servers. Page 4 is used once more, so that page 5 is evicted first.
    world.do_step(&Step::Read(4));
    finish(&mut world);
    assert_eq!(disk_reads(&world), 0);
    world.do_step(&Step::Read(0));
    finish(&mut world);
    assert_eq!(disk_reads(&world), 1);
    for page in [4, 6, 7, 0] {
        world.do_step(&Step::Read(page));
        finish(&mut world);
        assert_eq!(disk_reads(&world), 1, "page {page}");
    }
    world.do_step(&Step::Read(5));
    finish(&mut world);
    assert_eq!(disk_reads(&world), 2);
}

/// After the same writes, pages 4 and 0 are read. The pages that servers then hold depend on the policy.
#[test]
fn the_policy_chooses_the_pages_that_servers_have() {
    // Each page is checked in its own world, since reading a page may move it.
    let is_at_servers = |policy, page| {
        let mut world = World::evicting(policy, 1, true, 1, 4, Revocation::Migrate);
        let steps = (0..8).map(|page| Step::Write(page, page as u8));
        for step in steps.chain([Step::Read(4), Step::Read(0)]) {
            world.do_step(&step);
            finish(&mut world);
        }
        let before = world.device.counters().disk_reads_count;
        world.do_step(&Step::Read(page));
        finish(&mut world);
        world.device.counters().disk_reads_count == before
    };
    let at_servers = |policy| {
        let pages = (0..8).filter(|page| is_at_servers(policy, *page));
        pages.collect::<Vec<_>>()
    };
    assert_eq!(at_servers(Policy::Lru), [0, 4, 6, 7]); // page 5 is the least recently used
    assert_eq!(at_servers(Policy::Fifo), [0, 5, 6, 7]); // page 4 was stored before page 5
    assert_eq!(at_servers(Policy::FirstIn), [0, 1, 2, 3]); // page 4 was never admitted
    assert_eq!(at_servers(Policy::Sieve), [0, 4, 6, 7]); // clears the mark of page 4, evicts page 5
    assert_eq!(at_servers(Policy::S3Fifo), [0, 5, 6, 7]); // page 4 was used only once
}

#[test]
fn a_client_that_sticks_depends_on_one_server() {
    for (choice, used) in [(Choice::Spread, [6, 6]), (Choice::Stick, [12, 0])] {
        let settings = super::Settings {
            choice,
            ..World::settings(Policy::Lru, 1, true, Revocation::Migrate)
        };
        let mut world = World::of(settings, 2, 12);
        for page in 0..PAGES {
            world.do_step(&Step::Write(page, page as u8 + 1));
        }
        finish(&mut world);
        let servers = world.device.servers();
        let found: Vec<u32> = servers.iter().map(|server| server.used).collect();
        assert_eq!(found, used, "{choice:?}");
        assert!(world.contents().into_iter().all(|is_right| is_right));
    }
}

#[test]
fn a_lease_that_ends_is_emptied_and_then_released() {
    for (on_revocation, has_disk) in [
        (Revocation::Migrate, false),
        (Revocation::Migrate, true),
        (Revocation::Disk, true),
        (Revocation::Drop, true),
    ] {
        let mut world = World::new(1, has_disk, 2, 12, on_revocation);
        for page in 0..PAGES {
            world.do_step(&Step::Write(page, page as u8 + 1));
        }
        finish(&mut world);
        let used: Vec<u32> = world.device.servers().iter().map(|s| s.used).collect();
        assert_eq!(used, [6, 6]);
        world.do_step(&Step::Drain(0));
        finish(&mut world);
        assert_eq!(world.released, [0], "{on_revocation:?}");
        let left = world.device.servers();
        assert_eq!(left.len(), 1);
        let is_moved = on_revocation == Revocation::Migrate;
        assert_eq!(left[0].used, if is_moved { 12 } else { 6 });
        assert!(world.contents().into_iter().all(|is_right| is_right));
    }
}

#[test]
fn the_only_copy_lost_is_an_error_and_said_by_name() {
    let mut world = World::new(1, false, 1, 64, Revocation::Migrate);
    world.do_step(&Step::Write(3, 9));
    world.settle();
    world.do_step(&Step::Gone(0));
    world.do_step(&Step::Read(3));
    world.settle();
    assert_eq!(
        (world.failed_reads, world.device.counters().lost_pages_count),
        (1, 1)
    );
    let is_named = |words: &String| words.contains("page 3 cannot be read");
    assert!(world.notes.iter().any(is_named), "{:?}", world.notes);
    // Page 4 was never written, and so reads as zeroes. Page 5 cannot be written, since no server is left.
    world.do_step(&Step::Read(4));
    world.do_step(&Step::Write(5, 1));
    world.settle();
    assert_eq!((world.failed_reads, world.failed_writes), (1, 1));
}

#[test]
fn a_server_that_is_away_for_a_moment_is_waited_for() {
    let mut world = World::new(1, false, 1, 64, Revocation::Migrate);
    world.do_step(&Step::Write(3, 9));
    world.settle();
    world.do_step(&Step::Down(0));
    world.do_step(&Step::Read(3));
    world.do_step(&Step::Write(4, 1));
    world.wait(3000);
    assert_eq!(world.asked.len(), 2);
    world.do_step(&Step::Up(0));
    world.settle();
    assert_eq!((world.failed_reads, world.failed_writes), (0, 0));
    world.do_step(&Step::Down(0));
    world.do_step(&Step::Read(3));
    world.do_step(&Step::Write(4, 1));
    world.wait(6000);
    assert!(world.asked.is_empty());
    assert_eq!((world.failed_reads, world.failed_writes), (1, 1));
}

#[test]
fn a_server_that_is_slow_is_kept_and_one_that_is_silent_is_left() {
    let mut world = World::new(1, true, 1, 64, Revocation::Migrate);
    for page in 0..PAGES {
        world.do_step(&Step::Write(page, 1));
    }
    // Every answer comes late, but answers come every second: the server is slow, and not silent.
    while !world.under_way.is_empty() {
        world.wait(1000);
        for _ in 0..=world.under_way.len() / 2 {
            world.do_step(&Step::Deliver(0));
        }
    }
    assert_eq!(world.device.counters().disconnects_count, 0);
    world.do_step(&Step::Write(0, 2));
    world.do_step(&Step::Silent(0));
    world.wait(3000);
    assert_eq!(world.device.counters().disconnects_count, 1);
    assert!(world.contents().into_iter().all(|is_right| is_right));
}

#[test]
fn a_flush_waits_for_all_that_was_written_before() {
    let mut world = World::new(1, true, 1, 64, Revocation::Migrate);
    world.do_step(&Step::Write(3, 9));
    world.do_step(&Step::Flush);
    assert_eq!(world.asked.len(), 1, "the write was answered");
    world.do_step(&Step::Write(4, 9));
    world.do_step(&Step::Deliver(0));
    assert_eq!(world.asked.len(), 1);
    world.do_step(&Step::Deliver(0));
    assert_eq!(world.asked.len(), 0, "what came after is not waited for");
    assert!(!world.under_way.is_empty());
}

#[test]
fn a_server_that_changes_pages_is_found_out_and_left() {
    let mut world = World::new(1, true, 2, 64, Revocation::Migrate);
    for page in 0..PAGES {
        world.do_step(&Step::Write(page, page as u8 + 1));
    }
    finish(&mut world);
    world.do_step(&Step::Flip(0));
    assert!(world.contents().into_iter().all(|is_right| is_right));
    let corrupt = world.device.counters().corrupt_pages_count;
    assert_eq!(corrupt, 6);
    // The altered copies were replaced from disk: reading all pages again finds no further corrupt page.
    finish(&mut world);
    assert!(world.contents().into_iter().all(|is_right| is_right));
    assert_eq!(world.device.counters().corrupt_pages_count, corrupt);
}

#[test]
fn copies_that_cannot_be_reached_do_not_count() {
    let mut world = World::new(2, false, 2, 16, Revocation::Migrate);
    for page in 0..PAGES {
        world.do_step(&Step::Write(page, 7));
    }
    finish(&mut world);
    assert!(world.device.has_all_copies());
    world.do_step(&Step::Down(1));
    // However much time passes, only one copy of each page is reachable.
    finish(&mut world);
    assert!(!world.device.has_all_copies());
    assert_eq!(world.device.unreachable_pages(), PAGES);
    world.do_step(&Step::Up(1));
    finish(&mut world);
    assert!(world.device.has_all_copies());
}

#[test]
fn a_forged_answer_takes_no_copy_from_the_disk() {
    let mut world = World::new(1, true, 1, 16, Revocation::Migrate);
    for page in 0..PAGES {
        world.do_step(&Step::Write(page, 9));
        // While each page is in transit to the disk, the server answers the request that was sent to the
        // disk.
        world.do_step(&Step::Forge(0, 0, Forgery::Failed));
        world.do_step(&Step::Forge(0, 0, Forgery::Wrote));
        world.do_step(&Step::Up(0));
    }
    world.settle();
    world.do_step(&Step::Gone(0));
    assert!(world.contents().into_iter().all(|is_right| is_right));
    assert_eq!(world.device.counters().lost_pages_count, 0);
}

#[test]
fn a_request_that_is_left_out_among_answers_is_given_up() {
    let mut world = World::new(1, false, 1, 8, Revocation::Migrate);
    world.do_step(&Step::Write(0, 1));
    world.do_step(&Step::Silent(0));
    world.do_step(&Step::Deliver(0));
    // The server is connected again and answers other requests, but never the write of page 0.
    world.do_step(&Step::Up(0));
    for byte in 1..9 {
        world.do_step(&Step::Write(1, byte));
        world.do_step(&Step::Deliver(0));
        world.wait(1000);
    }
    assert_eq!(world.device.counters().disconnects_count, 1);
    finish(&mut world);
    assert!(world.asked.is_empty());
}

#[test]
fn a_lost_connection_costs_no_room_for_long() {
    let mut world = World::new(1, false, 1, 2 * PAGES, Revocation::Migrate);
    for byte in 1..100 {
        for page in 0..PAGES {
            world.do_step(&Step::Write(page, byte));
        }
        world.do_step(&Step::Down(0));
        world.do_step(&Step::Up(0));
        world.settle();
        for _ in 0..PAGES {
            world.do_step(&Step::Late(0));
        }
        world.wait(31_000);
    }
    assert_eq!(
        (
            world.failed_writes,
            world.device.counters().corrupt_pages_count
        ),
        (0, 0)
    );
    assert!(world.contents().into_iter().all(|is_right| is_right));
}
