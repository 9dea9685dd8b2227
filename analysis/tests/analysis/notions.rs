//! Three notions of available, worked by hand.
//!
//! One host of 1 GiB, a sample every 5 minutes from 0 to 60, times in minutes. 900 MiB are available, and the
//! owner has been away since before the trace. The headroom is 15 %, which is 153.6 MiB.

use crate::owner::{HEADROOM, contexts, with_processes};
use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_schemas::findings::{
    AvailabilityOdds, AvailabilityPeriods, Findings, LendingMode, Notion, NotionSizes, Parameters,
    Scope,
};
use gleaner_schemas::rows::{FileRow, GapRow, SampleRow};

fn parameters(measures: &[&str]) -> Parameters {
    Parameters {
        region_bytes: vec![256 * MIB],
        measures: measures.iter().map(|m| (*m).to_owned()).collect(),
        ..Parameters::default()
    }
}

/// A recording in which MemAvailable is 600 MiB, but 300 MiB from 45 to 50, and unknown at 30.
fn harvested() -> Recording {
    let mut r = Recording::new();
    r.host("a", 300);
    for (i, minute) in (0..=60).step_by(5).enumerate() {
        let row = SampleRow {
            owner_idle_ms: Some((minute + 60) * 60_000),
            mem_available_bytes: match minute {
                30 => None,
                45 => Some(300 * MIB),
                _ => Some(600 * MIB),
            },
            ..sample(900)
        };
        r.row("a", i as i64 + 1, minute * 60, &row);
    }
    r
}

/// A recording in which a file of 700 MiB is open at 20 only, and the owner's activity is unknown from 40 on.
fn with_a_file() -> Recording {
    let mut r = Recording::new();
    r.host("a", 300);
    for (i, minute) in (0..=60).step_by(5).enumerate() {
        let in_use_mib = if minute == 20 { 700 } else { 0 };
        let row = SampleRow {
            owner_idle_ms: (minute < 40).then_some((minute + 60) * 60_000),
            file_cache_bytes: in_use_mib * MIB,
            is_complete_state: minute == 0,
            ..sample(900 - in_use_mib)
        };
        let sequence = i as i64 + 1;
        r.row("a", sequence, minute * 60, &row);
        if minute == 20 || minute == 25 {
            let file = FileRow {
                file_id: 1,
                open_processes_count: i64::from(minute == 20),
                cached_bytes: (minute == 20).then_some(700 * MIB),
                ..Default::default()
            };
            r.row("a", sequence, minute * 60, &file);
        }
    }
    r
}

fn periods(f: &Findings, scope: Scope, notion: Notion) -> Option<&AvailabilityPeriods> {
    let of = |p: &&AvailabilityPeriods| (p.scope, p.notion) == (scope, notion);
    f.availability_periods
        .iter()
        .filter(|p| p.size_class == "all")
        .find(of)
}

fn sizes(f: &Findings, scope: Scope, notion: Notion) -> Option<&NotionSizes> {
    let of = |n: &&NotionSizes| (n.scope, n.notion) == (scope, notion);
    f.notions.iter().filter(|n| n.size_class == "all").find(of)
}

#[test]
fn what_is_unknown_cuts_periods_on_both_sides() {
    let f = harvested().analyzed(&parameters(&[])).unwrap();
    for scope in [Scope::All, Scope::Idle] {
        // The periods are 0-25, cut where the size is unknown; 35-45, its start cut in the same way; and
        // 50-60.
        let p = periods(&f, scope, Notion::Harvestable).unwrap();
        assert_eq!((p.periods_count, p.censored_count), (3, 3));
        assert_eq!(
            (
                p.start_censored_count,
                p.end_censored_count,
                p.ended_by_memory_count
            ),
            (2, 2, 1)
        );
        assert_eq!(p.mean_s, Some(15.0 * 60.0));
        // The size is known for 25 minutes twice.
        assert_eq!(p.available_time_share, Some(45.0 / 50.0));
        // Ten minutes later, the outcome is known for instants in 0-15 and 35-45, and for none after 50.
        let of = |o: &&AvailabilityOdds| {
            let is_of_all = o.size_class == "all" && o.ahead_s == 600.0;
            is_of_all && (o.scope, o.notion) == (scope, Notion::Harvestable)
        };
        let ten = f.availability_odds.iter().find(of).unwrap();
        assert_eq!((ten.observed_s, ten.available_probability), (1500.0, 0.6));
        assert_eq!(ten.lost_to_memory_probability, 0.4);
        let available = periods(&f, scope, Notion::Available).unwrap();
        assert_eq!(
            (available.periods_count, available.longest_s),
            (1, Some(3600.0))
        );
        // No file was recorded, so sizes by the paper's notion are unknown.
        assert_eq!(periods(&f, scope, Notion::Paper), None);
        assert_eq!(sizes(&f, scope, Notion::Paper), None);
    }
    // Survival curves are made only of memory available now.
    let curve = f.survival_curves.iter();
    assert_eq!(curve.filter(|c| c.size_class == "all").count(), 2);
}

#[test]
fn what_is_unknown_ends_what_can_be_followed() {
    // Enough memory is harvestable until 20, too little from 20 to 30. The host sleeps from 30 to 60, which
    // ends leases and hides nothing. At 60 the size is unknown.
    let mut r = Recording::new();
    r.host("a", 300);
    let minutes = (0..=30).step_by(5).chain((60..=120).step_by(5));
    for (i, minute) in minutes.enumerate() {
        let sequence = 2 * i as i64 + 1;
        let row = SampleRow {
            mem_available_bytes: match minute {
                60 => None,
                20..=30 => Some(300 * MIB),
                _ => Some(600 * MIB),
            },
            ..sample(900)
        };
        if minute == 60 {
            let gap = GapRow {
                from_time_ms: NOON + 30 * 60_000,
                to_time_ms: NOON + 60 * 60_000,
                cause: "sleep".into(),
            };
            r.row("a", sequence - 1, minute * 60, &gap);
        }
        r.row("a", sequence, minute * 60, &row);
    }
    let f = r.analyzed(&parameters(&[])).unwrap();
    let half_an_hour = |notion: Notion| {
        let of = |o: &&AvailabilityOdds| {
            o.size_class == "all" && o.ahead_s == 1800.0 && o.notion == notion
        };
        let odds = f.availability_odds.iter().find(of).unwrap();
        (odds.observed_s / 60.0, odds.available_probability)
    };
    // Of 0-20 the state half an hour later is unknown; of 65-120 it is known for the part before 90.
    assert_eq!(half_an_hour(Notion::Harvestable), (25.0, 1.0));
    // Memory available now can be followed all the time: 0-30, which the sleep ends, and 60-90.
    assert_eq!(half_an_hour(Notion::Available), (60.0, 0.5));
}

#[test]
fn how_much_there_is_side_by_side() {
    let f = harvested().analyzed(&parameters(&["notions"])).unwrap();
    let mib = MIB as f64;
    let headroom = HEADROOM as f64;
    let now = sizes(&f, Scope::All, Notion::Available).unwrap();
    assert_eq!((now.samples_count, now.mean_bytes), (13, 900.0 * mib));
    assert!((now.mean_share - 900.0 / 1024.0).abs() < 1e-12);
    let harvestable = sizes(&f, Scope::Idle, Notion::Harvestable).unwrap();
    assert_eq!(harvestable.samples_count, 12);
    assert!((harvestable.mean_bytes - (575.0 * mib - headroom)).abs() < 1.0);
    assert_eq!(harvestable.median_bytes, 600.0 * mib - headroom);
    assert_eq!(harvestable.p5_bytes, 300.0 * mib - headroom);
    // No owner returned, so no cost of lending is known.
    assert_eq!(harvestable.mean_memory_context_bytes, None);
}

#[test]
fn the_papers_notion_ends_where_idleness_cannot_be_told() {
    let f = with_a_file().analyzed(&parameters(&[])).unwrap();
    // The file is live as long as the owner is known to be away, from 0 to 35: of 900 MiB, 200 remain
    // available.
    for scope in [Scope::All, Scope::Idle] {
        let paper = sizes(&f, scope, Notion::Paper).unwrap();
        assert_eq!(paper.samples_count, 8);
        assert_eq!(paper.mean_bytes, (200 * MIB) as f64);
        let p = periods(&f, scope, Notion::Paper).unwrap();
        assert_eq!((p.periods_count, p.available_time_share), (0, Some(0.0)));
    }
    let small = Parameters {
        region_bytes: vec![200 * MIB],
        ..parameters(&[])
    };
    let f = with_a_file().analyzed(&small).unwrap();
    for (notion, minutes) in [(Notion::Available, 60.0), (Notion::Paper, 35.0)] {
        let p = periods(&f, Scope::All, notion).unwrap();
        assert_eq!(
            (
                p.periods_count,
                p.start_censored_count,
                p.end_censored_count
            ),
            (1, 1, 1)
        );
        assert_eq!(p.mean_s, Some(minutes * 60.0));
        assert_eq!(p.available_time_share, Some(1.0));
    }
}

#[test]
fn dips_by_each_notion() {
    let dips = |measures: &[&str], notion| {
        let parameters = Parameters {
            dip_threshold_bytes: vec![201 * MIB, 200 * MIB],
            dip_threshold_shares: Vec::new(),
            ..parameters(measures)
        };
        let f = with_a_file().analyzed(&parameters).unwrap();
        let all = f.dip_hosts.into_iter();
        all.filter(|d| d.notion == notion && d.size_class == "all" && d.hosts_count > 0)
            .map(|d| (d.threshold_bytes.unwrap() / MIB, d.minimum_intervals_count))
            .collect::<Vec<_>>()
    };
    // By the notion of memory available now, one sample has 200 MiB. By the paper's notion, eight samples
    // have 200 MiB, and the others are unknown.
    let measures = ["dip_hosts", "notions"];
    assert_eq!(dips(&measures, Notion::Available), [(200, 0), (201, 1)]);
    let by_the_paper = [(200, 0), (201, 1), (201, 6)];
    assert_eq!(dips(&measures, Notion::Paper), by_the_paper);
    assert_eq!(dips(&["dip_hosts"], Notion::Paper), []);
}

#[test]
fn what_lending_would_cost_stands_beside_idle_time() {
    let f = with_processes(0)
        .analyzed(&parameters(&["notions"]))
        .unwrap();
    let gentle = &contexts(&f, "all")[1];
    assert_eq!(gentle.mode, LendingMode::Gentle);
    let harvestable = sizes(&f, Scope::Idle, Notion::Harvestable).unwrap();
    // Harvestable memory before the headroom: ten samples of 500 MiB and one of 300.
    let mean = (5300.0 / 11.0) * MIB as f64 - HEADROOM as f64;
    assert!((harvestable.mean_bytes - mean).abs() < 1.0);
    assert_eq!(harvestable.mean_quota_bytes, gentle.mean_quota_bytes);
    assert!(harvestable.mean_quota_bytes.is_some());
    assert_eq!(
        harvestable.mean_memory_context_bytes,
        Some(gentle.mean_bytes)
    );
    assert_eq!(harvestable.p99_memory_context_bytes, Some(gentle.p99_bytes));
    // No lending mode uses this notion in idle time, and no mode lends in all time.
    for (scope, notion) in [
        (Scope::Idle, Notion::Available),
        (Scope::All, Notion::Harvestable),
    ] {
        let other = sizes(&f, scope, notion).unwrap();
        assert_eq!(other.mean_quota_bytes, None);
        assert_eq!(other.mean_memory_context_bytes, None);
    }
}

#[test]
fn the_other_notions_come_with_the_list_of_them() {
    let of = |measures: &[&str]| {
        let f = harvested().analyzed(&parameters(measures)).unwrap();
        let mut found: Vec<Notion> = f.availability_periods.iter().map(|p| p.notion).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    assert_eq!(of(&["availability_periods"]), [Notion::Available]);
    assert_eq!(
        of(&["availability_periods", "notions"]),
        [Notion::Available, Notion::Harvestable]
    );
}
