//! The cluster's measures worked by hand: cells of a minute, hosts of 1 GiB, a headroom of 256 MiB (a cell is
//! a step of the time grid).

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_schemas::findings::{Findings, Parameters, Peak, Residence, Scope};
use gleaner_schemas::rows::{ClockRow, GapRow, HostRow, SampleRow};
use proptest::prelude::*;

const BYTES: f64 = MIB as f64;

fn parameters() -> Parameters {
    Parameters {
        minimum_period_s: 0.0,
        idle_after_s: 60.0,
        headroom_share: 0.25,
        cluster_cell_s: 60.0,
        region_bytes: vec![100 * MIB],
        ..Parameters::default()
    }
}

/// Records a host whose owner is away all the time. `samples` are pairs: second, MiB available.
fn away(r: &mut Recording, host: &str, samples: &[(i64, i64)]) {
    for (i, &(second, available)) in samples.iter().enumerate() {
        let row = SampleRow {
            owner_idle_ms: Some(3_600_000),
            ..sample(available)
        };
        r.row(host, 10 + i as i64, second, &row);
    }
}

/// Records a host whose owner's activity is unknown. `samples` are pairs: second, MiB available.
fn blind(r: &mut Recording, host: &str, samples: &[(i64, i64)]) {
    for (i, &(second, available)) in samples.iter().enumerate() {
        r.row(host, 10 + i as i64, second, &sample(available));
    }
}

/// On host a, idleness is unknown. It has 600 MiB available for half of the first minute, 400 for the other
/// half, then 500. Host b exists from the second minute on, and is idle.
fn two_hosts() -> Findings {
    let mut r = Recording::new();
    let a = [(0, 600), (30, 400), (60, 500), (120, 500), (180, 700)];
    blind(&mut r, "a", &a);
    away(&mut r, "b", &[(60, 300), (120, 200), (180, 900)]);
    r.analyzed(&parameters()).unwrap()
}

#[test]
fn totals_are_of_the_hosts_seen() {
    let f = two_hosts();
    assert_eq!(f.parameters.cluster_cell_s, 60.0);
    let mib = |bytes: Option<f64>| bytes.map(|b| b / BYTES);
    let found: Vec<_> = (f.cluster_over_time.iter())
        .map(|p| {
            (
                (p.time_ms - NOON) / 60_000,
                (p.hosts_seen_count, p.hosts_idle_count),
                (p.physical_bytes / BYTES, p.available_bytes / BYTES),
                p.min_available_bytes / MIB,
                (mib(p.idle_available_bytes), mib(p.idle_paper_quota_bytes)),
                p.is_after_gap,
            )
        })
        .collect();
    let none = (None, None);
    assert_eq!(
        found,
        [
            (0, (1.0, None), (1024.0, 500.0), 400, none, false),
            (
                1,
                (2.0, Some(1.0)),
                (2048.0, 800.0),
                800,
                (Some(300.0), Some(44.0)),
                false
            ),
            (
                2,
                (2.0, Some(1.0)),
                (2048.0, 700.0),
                700,
                (Some(200.0), Some(0.0)),
                false
            ),
        ]
    );
    let harvestable = f.cluster_over_time.iter().map(|p| p.idle_harvestable_bytes);
    // MemAvailable less the headroom of 256 MiB; b has 300 MiB, then 200.
    assert!(harvestable.map(mib).eq([None, Some(44.0), Some(0.0)]));
    // On all hosts: a has 344 and 144 in the first minute, then 244; b has 44, then 0.
    let harvestable = f.cluster_over_time.iter().map(|p| p.harvestable_bytes);
    assert!(
        harvestable
            .map(mib)
            .eq([Some(244.0), Some(288.0), Some(244.0)])
    );

    let [all, idle] = &f.cluster_available[..] else {
        panic!("{:?}", f.cluster_available)
    };
    assert_eq!((all.scope, all.cells_count), (Scope::All, 3));
    assert!((all.mean_bytes / BYTES - 2000.0 / 3.0).abs() < 1e-6);
    let sizes = [all.p1_bytes, all.p5_bytes, all.median_bytes, all.max_bytes];
    assert_eq!(sizes.map(|b| b / MIB), [500, 500, 700, 800]);
    assert!((all.share_of_physical - 2000.0 / 5120.0).abs() < 1e-9);
    assert_eq!((idle.scope, idle.cells_count), (Scope::Idle, 2));
    assert_eq!(idle.mean_bytes / BYTES, 250.0);
    assert_eq!(idle.share_of_physical, 250.0 / 2048.0);
}

#[test]
fn a_cell_that_is_cut_is_not_seen() {
    let mut r = Recording::new();
    let row = HostRow {
        sample_interval_ms: 60_000,
        ..HostRow::default()
    };
    r.row("a", 0, 0, &row);
    // Cells that are cut are missing: the trace begins in the first minute, a gap lies in the fourth to
    // sixth, and the trace ends in the eighth.
    let times = [(10, 500), (70, 500), (130, 500), (190, 500)];
    blind(&mut r, "a", &times);
    for (i, second) in [320, 380, 440].into_iter().enumerate() {
        r.row("a", 30 + i as i64, second, &sample(500));
    }
    let f = r.analyzed(&parameters()).unwrap();
    let found: Vec<_> = (f.cluster_over_time.iter())
        .map(|p| ((p.time_ms - NOON) / 60_000, p.is_after_gap))
        .collect();
    assert_eq!(found, [(1, false), (2, false), (6, true)]);
}

#[test]
fn a_clock_set_back_is_seen_once() {
    let mut r = Recording::new();
    // The host records three minutes; then its clock is set back by two minutes.
    let times = [0, 60, 120, 180, 60, 120, 180, 240];
    for (i, second) in times.into_iter().enumerate() {
        let mib = if i < 4 { 500 } else { 300 };
        r.row("a", 1 + i as i64, second, &sample(mib));
    }
    let f = r.analyzed(&parameters()).unwrap();
    let found: Vec<_> = (f.cluster_over_time.iter())
        .map(|p| (p.hosts_seen_count, p.available_bytes / BYTES))
        .collect();
    // If a cell is recorded twice, the first record counts.
    assert_eq!(
        found,
        [(1.0, 500.0), (1.0, 500.0), (1.0, 500.0), (1.0, 300.0)]
    );
}

#[test]
fn years_between_two_clocks_cost_nothing() {
    let mut r = Recording::new();
    let years_s = -50 * 365 * 86_400;
    away(&mut r, "a", &[(0, 500), (60, 500), (120, 500)]);
    away(&mut r, "b", &[(years_s, 300), (years_s + 60, 300)]);
    let f = r.analyzed(&parameters()).unwrap();
    let found: Vec<_> = f.cluster_over_time.iter().map(|p| p.is_after_gap).collect();
    assert_eq!(found, [false, true, false]);
}

#[test]
fn a_step_of_more_than_a_day_is_held_by_no_sample() {
    let mut r = Recording::new();
    let row = HostRow {
        sample_interval_ms: 30 * 86_400_000,
        ..HostRow::default()
    };
    r.row("a", 0, 0, &row);
    away(&mut r, "a", &[(0, 500), (120, 500), (2_000_000, 500)]);
    let f = r.analyzed(&parameters()).unwrap();
    assert_eq!((f.gaps.len(), f.cluster_over_time.len()), (0, 2));
}

/// Records a gap with its cause.
fn gap(r: &mut Recording, host: &str, sequence: i64, from: i64, to: i64, cause: &str) {
    let gap = GapRow {
        from_time_ms: NOON + from * 1000,
        to_time_ms: NOON + to * 1000,
        cause: cause.into(),
    };
    r.row(host, sequence, to, &gap);
}

/// For 25 minutes host a has 244 MiB to lend. So has host b, except in minutes 15 to 17, a gap with this
/// cause.
fn one_is_gone_for_three_minutes(cause: &str) -> Findings {
    let mut r = Recording::new();
    let minutes = |range: std::ops::RangeInclusive<i64>| -> Vec<(i64, i64)> {
        range.map(|minute| (minute * 60, 500)).collect()
    };
    away(&mut r, "a", &minutes(0..=25));
    away(&mut r, "b", &minutes(0..=15));
    gap(&mut r, "b", 90, 900, 1080, cause);
    for (i, (second, available)) in minutes(18..=25).into_iter().enumerate() {
        let row = SampleRow {
            owner_idle_ms: Some(3_600_000),
            ..sample(available)
        };
        r.row("b", 100 + i as i64, second, &row);
    }
    r.analyzed(&parameters()).unwrap()
}

#[test]
fn who_sleeps_has_lost_what_it_lent() {
    let found = |cause| -> Vec<(Residence, f64, i64, f64, i64)> {
        let f = one_is_gone_for_three_minutes(cause);
        let of_ten_minutes = f.guarantees.into_iter();
        of_ten_minutes
            .filter(|g| g.scope == Scope::All)
            .inspect(|g| assert_eq!((g.ahead_s, g.mean_now_bytes), (600.0, 488.0 * BYTES)))
            .map(|g| {
                let share = g.share_of_now.unwrap();
                (
                    g.residence,
                    g.probability,
                    g.bytes / MIB,
                    share,
                    g.cells_count,
                )
            })
            .collect()
    };
    // The horizon is ten minutes, and minutes 0 to 14 can be followed. From minute 5 on, b's memory is lost
    // within the horizon.
    let mut expected = Vec::new();
    for residence in [Residence::Stays, Residence::Somewhere] {
        for probability in [0.5, 0.9] {
            expected.push((residence, probability, 244, 0.5, 15));
        }
    }
    assert_eq!(found("sleep"), expected);
    assert_eq!(found("late"), expected);
    // From ten of these fifteen minutes on, one of two copies is lost; both are never lost.
    let f = one_is_gone_for_three_minutes("sleep");
    let pair = f.copies.iter().find(|c| c.scope == Scope::All).unwrap();
    assert_eq!(
        (pair.copies_count, pair.region_bytes, pair.ahead_s),
        (2, 100 * MIB, 600.0)
    );
    assert_eq!(
        (
            pair.choices_count,
            pair.one_lost_probability,
            pair.all_lost_probability
        ),
        (15.0, 1.0 / 3.0, 0.0)
    );
    assert_eq!(pair.all_lost_if_independent_probability, 1.0 / 9.0);
    assert_eq!(
        (pair.all_lost_ratio, pair.none_lost_probability),
        (Some(0.0), 1.0 / 3.0)
    );
    assert!(
        f.copies
            .iter()
            .all(|c| c.copies_count == 2 && c.ahead_s == 600.0)
    );
    // In a gap with the cause `unwritable` nothing is known of the host. Ten outcomes are therefore unknown:
    // only minutes 0 to 4 count.
    let unknown = |residence| (residence, 0.5, 488, 1.0, 5);
    assert_eq!(
        found("unwritable"),
        [Residence::Stays, Residence::Somewhere].map(unknown)
    );
}

#[test]
fn who_is_not_reached_has_lost_what_it_lent() {
    let mut r = Recording::new();
    let minutes: Vec<_> = (0..=25).map(|minute| (minute * 60, 500)).collect();
    away(&mut r, "a", &minutes);
    away(&mut r, "b", &minutes);
    // The collector hears from b every minute, but not in minutes 14 to 20.
    let clock = ClockRow {
        skew_ms: 0,
        collector: None,
    };
    for minute in (0..=13).chain(21..=25) {
        r.row("b", 1000 + minute, minute * 60, &clock);
    }
    let f = r.analyzed(&parameters()).unwrap();
    // The horizon is ten minutes, and minutes 0 to 14 can be followed. From minute 3 on, it reaches into b's
    // silence.
    let stays: Vec<_> = (f.guarantees.iter())
        .filter(|g| g.scope == Scope::All && g.residence == Residence::Stays)
        .map(|g| (g.probability, g.bytes / MIB, g.cells_count))
        .collect();
    assert_eq!(stays, [(0.5, 244, 15), (0.9, 244, 15)]);
    let pair = f.copies.iter().find(|c| c.scope == Scope::All).unwrap();
    // From minute 13 on, b has nothing to lend.
    assert_eq!(
        (pair.choices_count, pair.none_lost_probability),
        (13.0, 3.0 / 13.0)
    );
}

/// Six minutes of a host whose owner is away, except for one short visit, `seconds_before` seconds before
/// minute 4.
fn visited(r: &mut Recording, host: &str, seconds_before: i64) {
    let idle_s = [3600, 3660, 3720, 3780].into_iter();
    let idle_s = idle_s.chain([0, 60, 120].map(|s| s + seconds_before));
    for (minute, idle_s) in idle_s.enumerate() {
        let row = SampleRow {
            owner_idle_ms: Some(idle_s * 1000),
            ..sample(500)
        };
        r.row(host, 10 + minute as i64, minute as i64 * 60, &row);
    }
}

#[test]
fn owners_come_back_together() {
    let fleet = || {
        let mut r = Recording::new();
        visited(&mut r, "a", 30);
        visited(&mut r, "b", 50);
        let minutes: Vec<_> = (0..=6).map(|minute| (minute * 60, 300)).collect();
        away(&mut r, "c", &minutes);
        blind(&mut r, "d", &minutes);
        r
    };
    let f = fleet().analyzed(&parameters()).unwrap();
    let [worst] = &f.worst_returns[..] else {
        panic!("{:?}", f.worst_returns)
    };
    // In the fourth minute, two hosts reclaim 244 MiB each, of the 532 that three idle hosts had.
    assert_eq!(worst.time_ms, NOON + 180_000);
    assert_eq!((worst.hosts_count, worst.idle_hosts_before_count), (2, 3));
    assert_eq!(
        (worst.reclaimed_bytes, worst.share_of_quota),
        (488 * MIB, Some(488.0 / 532.0))
    );

    let [hour] = &f.returns_by_hour[..] else {
        panic!("{:?}", f.returns_by_hour)
    };
    // Weekday 5 is Friday.
    assert_eq!((hour.weekday, hour.hour, hour.cells_count), (5, 12, 6));
    assert_eq!(
        (hour.mean_returns_per_cell, hour.max_returns_per_cell),
        (2.0 / 6.0, 2)
    );
    assert_eq!(hour.share_of_idle_hosts, Some(2.0 / 18.0));
    assert!((hour.mean_reclaimed_bytes / BYTES - 488.0 / 6.0).abs() < 1e-6);
    assert_eq!(hour.max_reclaimed_bytes, 488 * MIB);
    // The owners left immediately, so all of that minute is idle time. But no lease of these hosts lasts
    // through it.
    let visit = &f.cluster_over_time[3];
    assert_eq!(visit.hosts_idle_count, Some(3.0));
    assert_eq!(visit.min_idle_available_bytes, Some(300 * MIB));

    let berlin = Parameters {
        time_zone: "Europe/Berlin".into(),
        ..parameters()
    };
    let f = fleet().analyzed(&berlin).unwrap();
    assert_eq!(f.returns_by_hour[0].hour, 13);
}

#[test]
fn classes_and_hosts_give_their_parts() {
    let mut r = Recording::new();
    blind(&mut r, "a", &[(0, 600), (60, 400), (120, 500), (180, 700)]);
    for (i, available) in [300, 200, 900].into_iter().enumerate() {
        let row = SampleRow {
            physical_bytes: 4096 * MIB,
            ..sample(available)
        };
        r.row("b", 10 + i as i64, 60 + 60 * i as i64, &row);
    }
    let f = r.analyzed(&parameters()).unwrap();
    let by_class: Vec<_> = (f.contribution_by_class.iter())
        .map(|c| {
            (
                c.size_class.as_str(),
                c.hosts_count,
                c.available_share,
                c.physical_share,
            )
        })
        .collect();
    // Of 3072 MiB-minutes, a has 1500 available; of 8192, b has 500.
    assert_eq!(
        by_class,
        [
            ("512-1024 MiB", 1, 0.75, 3072.0 / 11264.0),
            ("2-4 GiB", 1, 0.25, 8192.0 / 11264.0)
        ]
    );
    let by_rank: Vec<_> = (f.contribution_by_rank.iter())
        .map(|c| (c.scope, c.hosts_count, c.hosts_share, c.available_share))
        .collect();
    assert_eq!(
        by_rank,
        [(Scope::All, 1, 0.5, 0.75), (Scope::All, 2, 1.0, 1.0)]
    );

    let points: Vec<_> = (f.class_over_time.iter())
        .map(|p| {
            let minute = (p.time_ms - NOON) / 60_000;
            (p.size_class.as_str(), minute, p.available_bytes / BYTES)
        })
        .collect();
    let (small, large) = ("512-1024 MiB", "2-4 GiB");
    let expected = [(small, 0, 600.0), (small, 1, 400.0), (small, 2, 500.0)];
    assert_eq!(points[..3], expected);
    assert_eq!(points[3..], [(large, 1, 300.0), (large, 2, 200.0)]);
    let first = &f.class_over_time[0];
    assert_eq!(first.kernel_bytes, Some(84.0 * BYTES));
    assert_eq!(first.process_bytes, Some(324.0 * BYTES));
    assert_eq!(
        (first.file_cache_bytes, first.hosts_seen_count),
        (Some(0.0), 1.0)
    );
}

#[test]
fn a_pool_saves_where_peaks_are_apart() {
    let pools = |samples_of_b: &[(i64, i64)]| -> Vec<(i64, i64, f64)> {
        let mut r = Recording::new();
        away(&mut r, "a", &[(0, 100), (60, 600), (120, 600)]);
        away(&mut r, "b", samples_of_b);
        let f = r.analyzed(&parameters()).unwrap();
        let largest = f.pooling.iter().filter(|p| p.peak == Peak::Max);
        largest
            .map(|p| {
                let pooled = p.peak_of_sums_bytes / BYTES;
                (p.pool_hosts_count, p.sum_of_peaks_bytes / MIB, pooled)
            })
            .collect()
    };
    // The hosts' demands are 924 and 424 MiB, then 424 and 924.
    let apart = pools(&[(0, 600), (60, 100), (120, 100)]);
    assert_eq!(apart, [(1, 1848, 1848.0), (2, 1848, 1348.0)]);
    // For a host that appeared later, no saving is known.
    let later = pools(&[(60, 100), (120, 100)]);
    assert_eq!(later, [(1, 1848, 1848.0), (2, 1848, 1848.0)]);
}

#[test]
fn a_host_demands_nothing_while_it_is_off_and_its_memory_while_it_sleeps() {
    let pool_needs = |cause: &str, boot_after: &str| {
        let mut r = Recording::new();
        for (i, minute) in (0..=5).chain(10..=15).enumerate() {
            let boot_id = if minute < 10 { "one" } else { boot_after };
            let row = SampleRow {
                boot_id: Some(boot_id.into()),
                ..sample(100)
            };
            r.row("a", 10 + 2 * i as i64, minute * 60, &row);
        }
        gap(&mut r, "a", 21, 300, 600, cause);
        let available = |minute| if minute == 7 { 100 } else { 600 };
        let of_b: Vec<_> = (0..=15).map(|m| (m * 60, available(m))).collect();
        blind(&mut r, "b", &of_b);
        let f = r.analyzed(&parameters()).unwrap();
        let both = f.pooling.iter().find(|p| p.pool_hosts_count == 2).unwrap();
        assert_eq!(
            (both.peak, both.sum_of_peaks_bytes),
            (Peak::Max, 1848 * MIB)
        );
        both.peak_of_sums_bytes / BYTES
    };
    // Host a uses 924 MiB; b uses 424, but 924 in minute 7, while a is off or asleep.
    assert_eq!(pool_needs("boot", "two"), 1348.0);
    assert_eq!(pool_needs("sleep", "one"), 1848.0);
}

fn why_not<'a>(f: &'a Findings, measure: &str) -> Option<&'a str> {
    let found = f
        .missing_measures
        .iter()
        .find(|n| n.measure == measure && n.host_id == "all");
    found.map(|n| n.reason.as_str())
}

#[test]
fn one_sample_says_nothing_of_the_cluster() {
    let mut r = Recording::new();
    away(&mut r, "a", &[(0, 500)]);
    let f = r.analyzed(&parameters()).unwrap();
    assert!(
        why_not(&f, "cluster_over_time")
            .unwrap()
            .contains("cell of 1 min")
    );
    assert!(f.cluster_over_time.is_empty() && f.cluster_available.is_empty());
    assert!(f.class_over_time.is_empty() && f.contribution_by_rank.is_empty());
    assert!(f.guarantees.is_empty() && f.copies.is_empty() && f.pooling.is_empty());
}

#[test]
fn one_host_alone_has_totals_and_says_what_it_lacks() {
    let mut r = Recording::new();
    blind(&mut r, "a", &[(0, 500), (60, 500), (120, 500)]);
    let f = r.analyzed(&parameters()).unwrap();
    assert_eq!(f.cluster_available.len(), 1);
    assert_eq!(f.contribution_by_rank.len(), 1);
    assert!(
        why_not(&f, "cluster_available")
            .unwrap()
            .contains("of no host can it be told")
    );
    let too_far = why_not(&f, "guarantees").unwrap();
    assert!(
        too_far.starts_with("in all time, 10 min, 1 h, 4 h, 12 h, 1 d ahead"),
        "{too_far}"
    );
    assert!(why_not(&f, "copies").unwrap().contains("no two hosts"));
    assert!(why_not(&f, "pooling").unwrap().contains("two hosts"));
    assert!(f.worst_returns.is_empty() && f.returns_by_hour.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Compares one host on the grid with a walk over its samples and idle periods, second by second.
    #[test]
    fn a_host_on_the_grid_equals_the_slow_version(
        steps in prop::collection::vec((prop_oneof![8 => 5..200i64, 1 => 201..500i64], 0..900i64, 0..200i64), 1..60)
    ) {
        let mut r = Recording::new();
        let hundred_seconds = HostRow { sample_interval_ms: 100_000, ..HostRow::default() };
        r.row("a", 0, 0, &hundred_seconds);
        let mut samples = Vec::new();
        let mut second = 0;
        for (i, (step, available, idle_s)) in steps.into_iter().enumerate() {
            second += step;
            let row = SampleRow { owner_idle_ms: Some(idle_s * 1000), ..sample(available) };
            r.row("a", 1 + i as i64, second, &row);
            samples.push((second, available * MIB));
        }
        let f = r.analyzed(&parameters()).unwrap();
        // Memory available at a second, if known.
        let known = |second: i64| {
            let next = samples.iter().position(|s| s.0 > second)?;
            let (at, available) = *samples.get(next.checked_sub(1)?)?;
            (samples[next].0 - at <= 200).then_some(available)
        };
        let in_ms = |second: i64| NOON + second * 1000;
        let mut points = f.cluster_over_time.iter();
        let mut returns = 0;
        for minute in 0..second / 60 + 1 {
            let seconds = minute * 60..minute * 60 + 60;
            // Samples are seconds apart, so no gap has length 0.
            let values: Option<Vec<i64>> = seconds.clone().map(known).collect();
            let Some(values) = values else { continue };
            let point = points.next().unwrap();
            prop_assert_eq!(point.time_ms, in_ms(seconds.start));
            prop_assert_eq!(point.available_bytes, (values.iter().sum::<i64>() / 60) as f64);
            prop_assert_eq!(point.min_available_bytes, *values.iter().min().unwrap());
            let Some(idle_count) = point.hosts_idle_count else { continue };
            let (from, to) = (in_ms(seconds.start), in_ms(seconds.end));
            let idle_ms: i64 = f.idle_periods.iter()
                .map(|p| (p.to_time_ms.min(to) - p.from_time_ms.max(from)).max(0)).sum();
            prop_assert_eq!(idle_count, idle_ms as f64 / 60_000.0);
            let open = f.idle_periods.iter().find(|p| p.from_time_ms <= from && from < p.to_time_ms);
            let returned = open.is_some_and(|p| p.to_time_ms <= to && !p.is_end_censored);
            returns += i64::from(returned);
            let whole = open.is_some_and(|p| p.to_time_ms >= to) && !returned;
            let least = if whole { *values.iter().min().unwrap() } else { 0 };
            prop_assert_eq!(point.min_idle_available_bytes, Some(least));
        }
        prop_assert!(points.next().is_none());
        let found: f64 = f.returns_by_hour.iter()
            .map(|h| h.mean_returns_per_cell * h.cells_count as f64).sum();
        prop_assert!((found - returns as f64).abs() < 1e-9);
    }
}
