//! A thinned dataset gives the same dips, no new gaps, and nearly the same means.

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_analysis::analyze;
use gleaner_dataset::{Dataset, Policy, Writer};
use gleaner_schemas::findings::{Findings, Notion, Parameters};
use gleaner_schemas::rows::{GapRow, SampleRow};
use std::time::{Duration, SystemTime};

const INTERVAL_S: i64 = 90;
const DAYS: i64 = 3;

/// Available memory rises and falls daily, with noise, a dip at night and a sleep.
fn fleet() -> Recording {
    let mut recording = Recording::new();
    recording.host("a", INTERVAL_S);
    let mut noise = 7_u64;
    let mut before = None;
    for step in 0..DAYS * 86_400 / INTERVAL_S {
        let second = step * INTERVAL_S;
        if (100_000..110_000).contains(&second) {
            continue; // asleep
        }
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let day = (second as f64 / 86_400.0 * std::f64::consts::TAU).sin();
        let mut available = 500 + (200.0 * day) as i64 + (noise >> 60) as i64;
        if (1000..1002).contains(&step) {
            available = 40;
        }
        let gap = before.is_some_and(|b| second - b > INTERVAL_S);
        let begins = before.is_none() || gap || (second + 43_200) % 86_400 < INTERVAL_S;
        let row = SampleRow {
            interval_ms: before.filter(|_| !gap).map(|b| (second - b) * 1000),
            is_complete_state: begins,
            ..sample(available)
        };
        recording.row("a", 10 + 2 * step, second, &row);
        if let (true, Some(from)) = (gap, before) {
            let gap = GapRow {
                from_time_ms: NOON + from * 1000,
                to_time_ms: NOON + second * 1000,
                cause: "sleep".into(),
            };
            recording.row("a", 9 + 2 * step, second, &gap);
        }
        before = Some(second);
    }
    recording
}

fn parameters() -> Parameters {
    Parameters {
        region_bytes: vec![256 * MIB],
        dip_threshold_bytes: vec![100 * MIB],
        ..Parameters::default()
    }
}

#[test]
fn dips_are_the_same_and_means_nearly() {
    let (folder, dataset) = fleet().dataset();
    let analyzed =
        |dataset: &Dataset| -> Findings { analyze(dataset, &parameters(), &mut |_| ()).unwrap() };
    let whole = analyzed(&dataset);
    let policy = Policy {
        thin_after_days: Some(1),
        thin_to_ms: 15 * 60_000,
        ..Policy::default()
    };
    let mut writer = Writer::open(folder.path()).unwrap();
    let later = SystemTime::UNIX_EPOCH + Duration::from_millis(NOON as u64 + 9 * 86_400_000);
    while writer.retain_step(&policy, later).unwrap().is_some() {}
    let thinned = analyzed(&Dataset::open(folder.path()).unwrap());

    let samples = |f: &Findings| f.dips[0].samples_count;
    assert!(
        samples(&thinned) * 8 < samples(&whole),
        "{}",
        samples(&thinned)
    );
    let lowest = |f: &Findings| (f.dips[0].min_available_bytes, f.dips[0].min_time_ms);
    assert_eq!(lowest(&thinned), lowest(&whole));
    assert_eq!(lowest(&whole).0, 40 * MIB);
    assert_eq!(thinned.gaps, whole.gaps);
    assert_eq!(whole.gaps.len(), 1);
    for (before, after) in whole.memory_usage.iter().zip(&thinned.memory_usage) {
        assert_eq!(before.category, after.category);
        let apart = (before.mean_bytes - after.mean_bytes).abs();
        assert!(apart < 0.03 * 1024.0 * MIB as f64, "{before:?} {after:?}");
    }
    let periods = |f: &Findings| -> Vec<Option<f64>> {
        let all = f.availability_periods.iter();
        // Harvestable memory fluctuates with the noise, so its periods are not compared.
        all.filter(|p| p.notion == Notion::Available)
            .map(|p| p.restricted_mean_s)
            .collect()
    };
    for (before, after) in periods(&whole).into_iter().zip(periods(&thinned)) {
        let (before, after) = (before.unwrap(), after.unwrap());
        assert!((before - after).abs() < 0.05 * before, "{before} {after}");
    }
}
