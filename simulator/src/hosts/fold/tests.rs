use super::*;
use crate::event::SECOND;
use gleaner_policy::accounting::Categories;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// A host of 100 MiB whose owner was active `owner_idle_s` ago.
fn sample(time_s: i64, owner_idle_s: i64, load5: f64, available_mib: u64) -> Sample {
    Sample {
        time_ms: time_s * 1000,
        sequence: time_s,
        boottime_ms: Some(time_s * 1000),
        owner_idle_ms: Some(owner_idle_s * 1000),
        load5: Some(load5),
        memory: Categories {
            physical_bytes: 100 * MIB,
            static_kernel_bytes: Some(2 * MIB),
            dynamic_kernel_bytes: 8 * MIB,
            lotsfree_bytes: Some(MIB),
            available_bytes: available_mib * MIB,
            ..Categories::default()
        },
        has_categories: true,
        mem_available_bytes: Some(40 * MIB),
        follows_gap: false,
    }
}

fn reading() -> Reading {
    Reading::between(0, 100_000_000)
}

fn folded(samples: &[Sample], reading: &Reading) -> Vec<(u64, Presence, u64)> {
    let found = timeline("h", samples, &Processes::default(), reading);
    (found.changes.iter())
        .map(|c| (c.at_ns / SECOND, c.presence, c.lendable.paper_bytes / MIB))
        .collect()
}

use Presence::{Idle, InUse, Unseen};

#[test]
fn an_absence_from_its_start_to_the_return() {
    let samples = [
        sample(0, 0, 0.1, 50),
        sample(90, 80, 0.1, 50),
        sample(300, 290, 0.1, 60), // not yet five minutes
        sample(390, 380, 0.1, 60), // idle: 60 − 15
        sample(480, 470, 0.1, 60), // the same, so no change
        sample(570, 560, 0.1, 40), // 40 − 15
        sample(660, 30, 0.1, 40),  // back at 630
        sample(750, 120, 0.1, 40),
    ];
    let expected = [
        (0, InUse, 0),
        (390, Idle, 45),
        (570, Idle, 25),
        (630, InUse, 0),
        (750, Unseen, 0),
    ];
    assert_eq!(folded(&samples, &reading()), expected);
    let found = timeline("h", &samples, &Processes::default(), &reading());
    let gentle: Vec<u64> = (found.changes.iter())
        .map(|c| c.lendable.bytes(Mode::Gentle) / MIB)
        .collect();
    // The smaller of 40 − 15 and what the paper's mode has.
    assert_eq!(gentle, [0, 25, 25, 0, 0]);
    assert_eq!(found.idle_ns(u64::MAX), 240 * SECOND);
    let [back] = found.returns[..] else { panic!() };
    assert_eq!((back.at_ns, back.cause), (630 * SECOND, Cause::Owner));
    assert_eq!(back.wanted, None, "no process was recorded");
}

#[test]
fn load_ends_it_with_its_sample_and_a_visit_between_two() {
    let samples = [
        sample(0, 900, 0.1, 50),
        sample(300, 1200, 0.1, 50),
        sample(390, 1290, 0.9, 50),
    ];
    let expected = [(0, InUse, 0), (300, Idle, 35), (390, Unseen, 0)];
    assert_eq!(folded(&samples, &reading()), expected);
    let found = timeline("h", &samples, &Processes::default(), &reading());
    assert_eq!(found.returns[0].cause, Cause::Load);
    assert_eq!(
        found.changes[2].returned,
        Some(0),
        "the end of the run hides no return"
    );
    // Here at 1200, and gone again for long enough before the next sample.
    let visited = [
        sample(0, 900, 0.1, 50),
        sample(300, 1200, 0.1, 50),
        sample(1500, 300, 0.1, 50),
    ];
    let expected = [
        (0, InUse, 0),
        (300, Idle, 35),
        (1200, InUse, 0),
        (1500, Unseen, 0),
    ];
    assert_eq!(folded(&visited, &reading()), expected);
}

#[test]
fn nothing_is_lent_across_a_gap_nor_by_who_cannot_be_seen() {
    let mut samples = vec![
        sample(0, 900, 0.1, 50),
        sample(300, 1200, 0.1, 50),
        sample(390, 1290, 0.1, 50),
        sample(9000, 9900, 0.1, 50),
        sample(9300, 10200, 0.1, 50),
        sample(9390, 10290, 0.1, 50),
    ];
    samples[3].follows_gap = true;
    samples[5].owner_idle_ms = None;
    let expected = [
        (0, InUse, 0),
        (300, Idle, 35),
        (390, Unseen, 0),
        (9000, InUse, 0),
        (9300, Idle, 35),
        (9390, Unseen, 0),
    ];
    assert_eq!(folded(&samples, &reading()), expected);
    let none = timeline("h", &samples, &Processes::default(), &reading());
    assert!(none.returns.is_empty(), "no owner was seen to return");
    let always = Reading {
        is_always_idle: true,
        ..reading()
    };
    let expected = [
        (0, Idle, 35),
        (390, Unseen, 0),
        (9000, Idle, 35),
        (9390, Unseen, 0),
    ];
    assert_eq!(folded(&samples, &always), expected);
}

#[test]
fn what_came_before_the_begin_is_its_state() {
    let samples = [
        sample(0, 900, 0.1, 50),
        sample(300, 1200, 0.1, 50),
        sample(390, 10, 0.1, 50),
        sample(700, 320, 0.1, 50),
        sample(790, 410, 0.1, 50),
    ];
    let later = Reading::between(750_000, 100_000_000);
    assert_eq!(folded(&samples, &later), [(0, Idle, 35), (40, Unseen, 0)]);
}

proptest! {
    /// Changes go forward, differ from what was before, and lend only where the host is idle.
    #[test]
    fn changes_are_in_order_and_change_something(
        steps in prop::collection::vec((1..400i64, 0..900i64, 0.0..0.5f64, 0..90u64, any::<bool>()), 0..60)
    ) {
        let mut time_s = 0;
        let samples: Vec<Sample> = steps.into_iter().map(|(step, idle, load, available, gap)| {
            time_s += step;
            Sample { follows_gap: gap && idle % 5 == 0, ..sample(time_s, idle, load, available) }
        }).collect();
        let found = timeline("h", &samples, &Processes::default(), &reading());
        for pair in found.changes.windows(2) {
            prop_assert!(pair[0].at_ns < pair[1].at_ns);
            let changed = (pair[0].presence, pair[0].lendable) != (pair[1].presence, pair[1].lendable);
            prop_assert!(changed || pair[1].returned.is_some());
        }
        for change in &found.changes {
            prop_assert!(change.presence == Presence::Idle || change.lendable.paper_bytes == 0);
            prop_assert!(change.lendable.gentle_bytes <= change.lendable.paper_bytes);
        }
        let told: Vec<u32> = found.changes.iter().filter_map(|c| c.returned).collect();
        prop_assert_eq!(told, (0..found.returns.len() as u32).collect::<Vec<_>>());
    }
}
