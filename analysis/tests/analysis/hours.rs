//! Findings by hour of the week, worked by hand. Noon is that of Friday, 20 November 2026, UTC.

use crate::recording::{MIB, Recording, sample};
use gleaner_analysis::AnalysisError;
use gleaner_schemas::findings::{Findings, Parameters};
use gleaner_schemas::rows::SampleRow;

/// Findings of samples at 11:50, 12:05 and 12:50; the owner left at 12:00.
fn found(time_zone: &str) -> Result<Findings, AnalysisError> {
    let mut r = Recording::new();
    r.host("a", 2700);
    for (sequence, minute, available, idle_min) in
        [(1, -10, 600, 0), (2, 5, 40, 5), (3, 50, 300, 50)]
    {
        let row = SampleRow {
            owner_idle_ms: Some(idle_min * 60_000),
            ..sample(available)
        };
        r.row("a", sequence, minute * 60, &row);
    }
    r.analyzed(&Parameters {
        dip_threshold_bytes: vec![400 * MIB],
        dip_threshold_shares: vec![0.05],
        time_zone: time_zone.to_owned(),
        ..Parameters::default()
    })
}

#[test]
fn worked_by_hand() {
    let f = found("UTC").unwrap();
    let available = f.memory_usage_by_hour.iter();
    let available: Vec<_> = available
        .filter(|u| u.category == "available" && u.size_class == "all")
        .map(|u| {
            (
                u.weekday,
                u.hour,
                u.samples_count,
                u.mean_bytes,
                u.min_bytes,
            )
        })
        .collect();
    let mib = MIB as f64;
    let expected = [
        (5, 11, 1, 600.0 * mib, 600 * MIB),
        (5, 12, 2, 170.0 * mib, 40 * MIB),
    ];
    assert_eq!(available, expected);
    let share = f.memory_usage_by_hour.iter();
    let share = share.filter(|u| u.category == "available" && u.hour == 12);
    let share: Vec<f64> = share.map(|u| u.mean_share).collect();
    assert_eq!(share.len(), 2, "its class, and all");
    assert!((share[0] - 170.0 / 1024.0).abs() < 1e-9, "{share:?}");

    let dips: Vec<_> = (f.dips_by_hour.iter())
        .filter(|d| d.size_class == "all")
        .map(|d| {
            (
                d.hour,
                d.threshold_bytes,
                d.threshold_share,
                d.intervals_count,
                d.samples_count,
            )
        })
        .collect();
    let limit = Some(400 * MIB);
    // A threshold of 5 % of 1 GiB is 51 MiB.
    let expected = [
        (11, limit, None, 0, 1),
        (12, limit, None, 2, 2),
        (11, None, Some(0.05), 0, 1),
        (12, None, Some(0.05), 1, 2),
    ];
    assert_eq!(dips, expected);

    let idle: Vec<_> = (f.idle_by_hour.iter())
        .filter(|i| i.size_class == "all")
        .map(|i| (i.weekday, i.hour, i.samples_count, i.idle_share))
        .collect();
    // The load is known and low from 11:50 on; the owner has been away since 12:00.
    assert_eq!(idle, [(5, 11, 1, 0.0), (5, 12, 2, 1.0)]);
}

#[test]
fn hours_are_those_of_the_fleets_clocks() {
    let f = found("Europe/Berlin").unwrap();
    let hours: Vec<i64> = f.idle_by_hour.iter().map(|i| i.hour).collect();
    assert_eq!(hours, [12, 13, 12, 13]);
    let error = found("Europe/Atlantis").unwrap_err().to_string();
    assert!(error.contains("Europe/Atlantis"), "{error}");
}
