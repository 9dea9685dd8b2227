use super::*;
use crate::event::SECOND;
use gleaner_policy::accounting::Categories;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// A sample of a 100 MiB host whose owner was active `owner_idle_s` seconds ago. The headroom is 15 MiB.
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
            reserve_bytes: Some(MIB),
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
        .map(|c| (c.at_ns / SECOND, c.presence, c.quotas.paper_bytes / MIB))
        .collect()
}

use Presence::{Idle, InUse, Unseen};

#[test]
fn an_absence_from_its_start_to_the_return() {
    let samples = [
        sample(0, 0, 0.1, 50),
        sample(90, 80, 0.1, 50),
        sample(300, 290, 0.1, 60), // not yet five minutes
        sample(390, 380, 0.1, 60), // idle: lends 60 − 15
        sample(480, 470, 0.1, 60), // lends the same, so no change
        sample(570, 560, 0.1, 40), // lends 40 − 15
        sample(660, 30, 0.1, 40),  // the owner returned at 630
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
        .map(|c| c.quotas.bytes(Mode::Gentle) / MIB)
        .collect();
    // Gentle mode lends the smaller of MemAvailable less the headroom (40 − 15) and paper mode's amount.
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
    // The owner returns at 1200 s and leaves again. At the next sample the host has been idle for 300 s.
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
    /// Changes are in order of time and differ from the state before. In paper mode, only idle hosts lend.
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
            let changed = (pair[0].presence, pair[0].quotas) != (pair[1].presence, pair[1].quotas);
            prop_assert!(changed || pair[1].returned.is_some());
        }
        for change in &found.changes {
            prop_assert!(change.presence == Presence::Idle || change.quotas.paper_bytes == 0);
            prop_assert!(change.quotas.gentle_bytes <= change.quotas.paper_bytes);
        }
        let told: Vec<u32> = found.changes.iter().filter_map(|c| c.returned).collect();
        prop_assert_eq!(told, (0..found.returns.len() as u32).collect::<Vec<_>>());
    }
}

mod foresight {
    use super::*;
    use gleaner_policy::forecast::AHEAD_S;
    use gleaner_policy::forecast::table::Table;
    use gleaner_schemas::findings::{ForecastCell, Scope};
    use jiff::tz::TimeZone;
    use std::sync::Arc;

    /// A cell of a forecast table, for regions in these bins of age, margin and low water.
    fn cell(scope: Scope, bins: [Option<i64>; 3], ahead_s: i64, probability: f64) -> ForecastCell {
        ForecastCell {
            scope,
            region_bytes: Some(32 << 20),
            region_share: None,
            age_bin: bins[0],
            margin_bin: bins[1],
            low_bin: bins[2],
            ahead_s,
            probability,
            instants_count: 1,
        }
    }

    fn expecting(cells: &[ForecastCell], for_s: i64, confidence: f64) -> Reading {
        Reading {
            foresight: Some(super::super::super::Foresight {
                table: Arc::new(Table::new(cells, &[], &[])),
                duration_ms: for_s * 1000,
                confidence,
                time_zone: TimeZone::UTC,
            }),
            ..reading()
        }
    }

    /// Forecasts with two ages. For a young region, a larger margin gives a higher probability. A region that
    /// is half an hour old stays with probability 0.95, whatever its margin.
    fn young_and_old() -> [ForecastCell; 4] {
        [
            cell(Scope::Idle, [Some(0), Some(0), None], 600, 0.5),
            cell(Scope::Idle, [Some(0), Some(1), None], 600, 0.8),
            cell(Scope::Idle, [Some(0), Some(2), None], 600, 0.95),
            cell(Scope::Idle, [Some(1), None, None], 600, 0.95),
        ]
    }

    #[test]
    fn a_table_by_hand_gives_a_timeline_by_hand() {
        let samples = [
            sample(0, 900, 0.1, 60),
            sample(300, 1200, 0.1, 60), // idle for 300 s: 60 − 15 are lent without a forecast
            sample(1790, 2690, 0.1, 60), // idle for 1790 s
            sample(1800, 2700, 0.1, 60), // idle for half an hour
            sample(1900, 2800, 0.1, 40), // lends 40 − 15
            sample(2000, 10, 0.1, 40),  // the owner returned at 1990
        ];
        let lent = |confidence| folded(&samples, &expecting(&young_and_old(), 600, confidence));
        let expected = |young: u64, old: u64, less: u64| {
            let all = [
                (0, InUse, 0),
                (300, Idle, young),
                (1800, Idle, old),
                (1900, Idle, less),
                (1990, InUse, 0),
                (2000, Unseen, 0),
            ];
            all.to_vec()
        };
        // The sizes tried are sixteenths of the quota (45 MiB), rounded down to whole slabs. The margin is
        // the available memory divided by the lent part and the 15 MiB held back: 60 / (32 + 15) is above
        // 1.25, and 60 / (38 + 15) above 1.1.
        assert_eq!(lent(0.9), expected(32, 44, 24));
        assert_eq!(lent(0.8), expected(38, 44, 24));
        let never = [
            (0, InUse, 0),
            (300, Idle, 0),
            (1990, InUse, 0),
            (2000, Unseen, 0),
        ];
        assert_eq!(lent(0.96), never);
        // For a confidence of 0.5, all 44 MiB are certain enough, whether the region is young or old.
        let all = lent(0.5);
        assert_eq!(all[1..3], [(300, Idle, 44), (1900, Idle, 24)]);
        // The table has no forecast for one hour ahead, so nothing is lent.
        let reading = expecting(&young_and_old(), 3600, 0.1);
        assert_eq!(folded(&samples, &reading), never);
        // In gentle mode the quota is 40 − 15 MiB. A part of 16 MiB has a margin of 40 / (16 + 15), above
        // 1.25.
        let reading = expecting(&young_and_old(), 600, 0.9);
        let found = timeline("h", &samples, &Processes::default(), &reading);
        let gentle = found.changes.iter().map(|c| c.quotas.gentle_bytes / MIB);
        assert_eq!(gentle.collect::<Vec<_>>(), [0, 16, 24, 24, 0, 0]);
        assert_eq!(found.returns.len(), 1, "owners come back as ever");
    }

    #[test]
    fn the_lowest_of_a_day_counts_across_gaps() {
        // A region of 44 + 15 MiB is expected to stay only if the low water was never below its size.
        let cells = [
            cell(Scope::Idle, [Some(0), Some(0), Some(0)], 600, 0.3),
            cell(Scope::Idle, [Some(0), Some(0), Some(2)], 600, 0.95),
        ];
        let mut samples = [
            sample(0, 900, 0.1, 20),
            sample(85_900, 0, 0.1, 60),
            sample(86_300, 400, 0.1, 60),
            sample(87_300, 1400, 0.1, 60), // more than 24 hours and ten minutes after the dip
        ];
        samples[1].follows_gap = true;
        let reading = expecting(&cells, 600, 0.9);
        let lent: Vec<_> = folded(&samples, &reading).into_iter().skip(1).collect();
        // The run ends with its last sample: from there on nothing is lent.
        assert_eq!(lent, [(86_300, Idle, 0), (87_300, Unseen, 0)]);
        let longer = [&samples[..], &[sample(87_400, 1500, 0.1, 60)]].concat();
        let lent: Vec<_> = folded(&longer, &reading).into_iter().skip(1).collect();
        let expected = [(86_300, Idle, 0), (87_300, Idle, 44), (87_400, Unseen, 0)];
        assert_eq!(lent, expected);
        // For the low water, samples are read from a day earlier; these samples are not simulated.
        assert!(reading.lead_ms() <= super::reading().lead_ms() - 86_400_000);
    }

    #[test]
    fn hosts_in_use_and_hosts_without_owners_need_not_stay_idle() {
        let of = |scope| cell(scope, [Some(3), None, None], 600, 0.95);
        let busy = |time_s| Sample {
            mem_available_bytes: Some(90 * MIB),
            ..sample(time_s, 0, 0.1, 90)
        };
        // In spare mode, a host in use lends 90 − 50 MiB. The host never had less memory available, so the
        // region counts as a day old.
        let spare = |scope| {
            let samples = [busy(0), busy(100)];
            let reading = expecting(&[of(scope)], 600, 0.9);
            let found = timeline("h", &samples, &Processes::default(), &reading);
            found.changes[0].quotas.spare_bytes / MIB
        };
        assert_eq!((spare(Scope::All), spare(Scope::Idle)), (40, 0));
        let always = |scope| {
            let samples = [sample(0, 900, 0.1, 50), sample(300, 0, 0.9, 50)];
            let reading = Reading {
                is_always_idle: true,
                ..expecting(&[of(scope)], 600, 0.9)
            };
            folded(&samples, &reading)[0]
        };
        // The quota of 50 − 15 MiB, rounded down to whole slabs.
        assert_eq!(always(Scope::All), (0, Idle, 34));
        assert_eq!(always(Scope::Idle), (0, Idle, 0));
    }

    /// Memory that the host may lend at `at_ns`.
    fn quotas(of: &Timeline, at_ns: u64) -> ModeQuotas {
        let before = of.changes.partition_point(|change| change.at_ns <= at_ns);
        let last = before.checked_sub(1).and_then(|last| of.changes.get(last));
        last.map_or_else(ModeQuotas::default, |change| change.quotas)
    }

    fn is_at_most(less: &Timeline, more: &Timeline) -> bool {
        let mut times = less.changes.iter().chain(&more.changes).map(|c| c.at_ns);
        times.all(|at_ns| {
            let (less, more) = (quotas(less, at_ns), quotas(more, at_ns));
            let modes = [Mode::Paper, Mode::Gentle, Mode::Spare];
            modes.iter().all(|m| less.bytes(*m) <= more.bytes(*m))
        })
    }

    proptest! {
        /// With a forecast, a host never lends more than without one. A longer time or a higher confidence
        /// never makes it lend more. A forecast does not change the owner's returns.
        #[test]
        fn forecasts_never_lend_more(
            steps in prop::collection::vec(
                (1..2000i64, 0..1500i64, 0.0..0.35f64, 0..100u64, 0..100u64, any::<bool>()), 0..50),
            cells in prop::collection::vec(
                (any::<bool>(), prop::option::of(0..4i64), prop::option::of(0..6i64), 0..9usize, 0.5..1.0f64), 0..40),
            asked in prop::collection::vec((1..90_000i64, 0.5..1.0f64), 2..5),
        ) {
            let mut time_s = 0;
            let samples: Vec<Sample> = steps.into_iter().map(|(step, idle, load, available, stated, gap)| {
                time_s += step;
                Sample {
                    follows_gap: gap && idle % 5 == 0,
                    mem_available_bytes: Some(stated * MIB),
                    ..sample(time_s, idle, load, available)
                }
            }).collect();
            let cells: Vec<_> = cells.into_iter().map(|(idle, age, margin, ahead, p)| {
                let scope = if idle { Scope::Idle } else { Scope::All };
                // A cell with a bin of the margin must also have a bin of the age.
                cell(scope, [age, age.and(margin), None], AHEAD_S[ahead], p)
            }).collect();
            let of = |reading: &Reading| timeline("h", &samples, &Processes::default(), reading);
            let without = of(&reading());
            let with: Vec<_> = asked.into_iter().map(|(for_s, confidence)| {
                (for_s, confidence, of(&expecting(&cells, for_s, confidence)))
            }).collect();
            for (for_s, confidence, found) in &with {
                prop_assert!(is_at_most(found, &without));
                prop_assert_eq!(&found.returns, &without.returns);
                for (longer_s, surer, less) in &with {
                    prop_assert!(longer_s < for_s || surer < confidence || is_at_most(less, found));
                }
            }
        }
    }
}
