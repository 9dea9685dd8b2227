//! Availability and reclaims by hour of the week, worked by hand.
//!
//! One host of 1 GiB on Friday, 20 November 2026, with a sample every ten minutes from 11:00 to 14:00 UTC.
//! 900 MiB are available, except from 12:30 to 12:40: 100 MiB. The owner is away from 11:30 to 13:16.

use crate::recording::{MIB, Recording, sample};
use gleaner_schemas::findings::{Findings, Parameters, Scope};
use gleaner_schemas::rows::SampleRow;

/// A recording with samples at `minutes`, counted from noon.
fn recorded(minutes: impl Iterator<Item = i64>, is_in_sight: bool) -> Recording {
    let mut r = Recording::new();
    r.host("a", 600);
    for (i, minute) in minutes.enumerate() {
        let owner_idle_min = match minute {
            ..=75 => (minute + 30).max(0),
            76..90 => minute - 76,
            _ => 0,
        };
        let row = SampleRow {
            owner_idle_ms: is_in_sight.then_some(owner_idle_min * 60_000),
            ..sample(if minute == 30 { 100 } else { 900 })
        };
        r.row("a", i as i64 + 1, minute * 60, &row);
    }
    r
}

fn found(is_in_sight: bool, time_zone: &str) -> Findings {
    let parameters = Parameters {
        region_bytes: [64, 256, 512, 1024, 2048].map(|mib| mib * MIB).to_vec(),
        time_zone: time_zone.to_owned(),
        ..Parameters::default()
    };
    let minutes = (-60..=120).step_by(10);
    recorded(minutes, is_in_sight)
        .analyzed(&parameters)
        .unwrap()
}

/// Weekday; hour; available minutes of the sixty; share of them after which the region is still available an
/// hour later; minutes for which this outcome is known.
type Hour = (i64, i64, f64, Option<f64>, f64);

fn hours(f: &Findings, scope: Scope, region_mib: i64) -> Vec<Hour> {
    let all = f.availability_by_hour.iter();
    all.filter(|h| h.size_class == "all" && h.scope == scope)
        .filter(|h| h.region_bytes == region_mib * MIB)
        .map(|h| {
            let minutes = (h.available_share * 60.0).round();
            assert!((minutes / 60.0 - h.available_share).abs() < 1e-12);
            let still = h.available_1h_probability;
            (h.weekday, h.hour, minutes, still, h.counted_s / 60.0)
        })
        .collect()
}

#[test]
fn availability_by_hour() {
    let f = found(true, "UTC");
    // The first period lasts from 11:00 to 12:30, when memory runs short: only after an instant from 11:00 to
    // 11:30 does it last another hour. The second lasts from 12:40 to 14:00, the trace's end: only the hour
    // after an instant from 12:40 to 13:00 is within the trace.
    let middle = [
        (5, 11, 60.0, Some(0.5), 60.0),
        (5, 12, 50.0, Some(0.4), 50.0),
        (5, 13, 60.0, None, 0.0),
    ];
    assert_eq!(hours(&f, Scope::All, 256), middle);
    let smallest = [
        (5, 11, 60.0, Some(1.0), 60.0),
        (5, 12, 60.0, Some(1.0), 60.0),
        (5, 13, 60.0, None, 0.0),
    ];
    assert_eq!(hours(&f, Scope::All, 64), smallest);
    let largest = [11, 12, 13].map(|hour| (5, hour, 0.0, None, 0.0));
    assert_eq!(hours(&f, Scope::All, 1024), largest);
    // Only the smallest, a middle and the largest size have figures by hour: not the other middle size, 512,
    // and not 2048, which no host can have.
    assert_eq!(hours(&f, Scope::All, 512), []);
    assert_eq!(hours(&f, Scope::All, 2048), []);
    // The idle period lasts from 11:30 to 13:16. Instants before 13:00 have a known outcome an hour later;
    // none of their periods lasts that long.
    let idle = [
        (5, 11, 30.0, Some(0.0), 30.0),
        (5, 12, 50.0, Some(0.0), 50.0),
        (5, 13, 16.0, None, 0.0),
    ];
    assert_eq!(hours(&f, Scope::Idle, 256), idle);
}

#[test]
fn hours_sum_to_all_time() {
    let f = found(true, "UTC");
    for scope in [Scope::All, Scope::Idle] {
        let minutes: f64 = hours(&f, scope, 256).iter().map(|h| h.2).sum();
        let of_all_time = f
            .availability_periods
            .iter()
            .find(|p| p.size_class == "all" && p.scope == scope && p.region_bytes == 256 * MIB);
        let share = of_all_time.unwrap().available_time_share.unwrap();
        assert!((minutes / 180.0 - share).abs() < 1e-12);
        let followed: f64 = hours(&f, scope, 256).iter().map(|h| h.4).sum();
        let odds = f.availability_odds.iter().find(|o| {
            let is_an_hour = o.ahead_s == 3600.0 && o.size_class == "all";
            is_an_hour && o.scope == scope && o.region_bytes == 256 * MIB
        });
        assert_eq!(odds.unwrap().observed_s, followed * 60.0);
    }
}

#[test]
fn reclaims_by_hour() {
    let f = found(true, "Europe/Berlin");
    let of_all = f.reclaims_by_hour.iter().filter(|r| r.size_class == "all");
    let all: Vec<_> = of_all
        .map(|r| {
            let minutes = r.idle_hours_s / 60.0;
            (r.weekday, r.hour, r.returns_count, minutes, r.per_idle_hour)
        })
        .collect();
    // In Berlin, the hours are one ahead of UTC.
    let expected = [
        (5, 12, 0, 30.0, Some(0.0)),
        (5, 13, 0, 60.0, Some(0.0)),
        (5, 14, 1, 16.0, Some(3.75)),
    ];
    assert_eq!(all, expected);
    let hours: Vec<i64> = hours(&f, Scope::All, 64).iter().map(|h| h.1).collect();
    assert_eq!(hours, [12, 13, 14]);
}

#[test]
fn an_owner_out_of_sight_leaves_idle_time_out() {
    let f = found(false, "UTC");
    assert_eq!(hours(&f, Scope::All, 64).len(), 3);
    assert_eq!(hours(&f, Scope::Idle, 64), []);
    assert!(f.reclaims_by_hour.is_empty());
}

#[test]
fn samples_that_cover_no_time_are_in_no_hour() {
    let parameters = Parameters {
        region_bytes: vec![64 * MIB],
        ..Parameters::default()
    };
    for minutes in [vec![0], vec![0, 100, 200]] {
        let f = recorded(minutes.into_iter(), true)
            .analyzed(&parameters)
            .unwrap();
        assert!(
            f.availability_by_hour.is_empty(),
            "{:?}",
            f.availability_by_hour
        );
        assert!(f.reclaims_by_hour.is_empty());
    }
}
