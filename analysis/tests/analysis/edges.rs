//! Datasets with extreme or contradictory figures: each gives a result, or an error that says what to do.

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_analysis::{AnalysisError, analyze_together};
use gleaner_schemas::findings::{Findings, Parameters, Scope};
use gleaner_schemas::rows::{GapRow, SampleRow};

fn parameters() -> Parameters {
    Parameters {
        minimum_period_s: 0.0,
        measures: Findings::keys(), // memory over time, too
        ..Default::default()
    }
}

fn in_sight(available_mib: i64) -> SampleRow {
    SampleRow {
        owner_idle_ms: Some(0),
        ..sample(available_mib)
    }
}

#[test]
fn an_empty_dataset_is_refused_with_advice() {
    let error = Recording::new().analyzed(&parameters()).unwrap_err();
    assert!(matches!(error, AnalysisError::NoSamples { hosts_count: 0 }));
    assert!(error.to_string().contains("gleaner-agent run"), "{error}");
    let mut only_described = Recording::new();
    only_described.host("a", 90);
    let error = only_described.analyzed(&parameters()).unwrap_err();
    assert!(matches!(error, AnalysisError::NoSamples { hosts_count: 1 }));
}

#[test]
fn a_host_without_samples_is_named_beside_the_others() {
    let mut r = Recording::new();
    r.host("a", 90).host("b", 90).row("b", 1, 0, &in_sight(500));
    let f = r.analyzed(&parameters()).unwrap();
    assert_eq!(f.hosts.len(), 1);
    assert!(
        f.missing_measures
            .iter()
            .any(|n| n.host_id == "a" && n.reason == "it has no samples")
    );
}

#[test]
fn one_sample_gives_what_one_sample_can() {
    let mut r = Recording::new();
    r.row("a", 1, 0, &in_sight(500));
    let f = r.analyzed(&parameters()).unwrap();
    let host = &f.hosts[0];
    assert_eq!((host.samples_count, host.coverage_share), (1, 1.0));
    assert_eq!((host.idle_share, host.sample_interval_s), (None, None));
    assert_eq!(host.host_name, "a");
    let idle = f
        .missing_measures
        .iter()
        .find(|n| n.measure == "idle_periods")
        .unwrap();
    assert!(
        idle.reason
            .starts_with("the longest time without a gap is 0 s, and the rule needs 5 min")
    );
    assert!(f.availability_periods.iter().all(|p| p.scope == Scope::All));
    assert!(f.memory_usage.iter().all(|u| u.sd_bytes.is_none()));
    assert!(
        f.availability_periods
            .iter()
            .all(|p| p.periods_count == 0 && p.mean_s.is_none())
    );
    assert_eq!(
        (f.memory_over_time.len(), f.agent_cost[0].cpu_share),
        (1, None)
    );
}

#[test]
fn nothing_but_gaps() {
    let mut r = Recording::new();
    r.host("a", 90);
    for i in 0..5 {
        r.row("a", i + 1, i * 1000, &in_sight(500));
    }
    let f = r.analyzed(&parameters()).unwrap();
    assert_eq!((f.gaps.len(), f.gaps[0].cause.as_str()), (4, "missing"));
    assert_eq!(f.hosts[0].coverage_share, 0.0);
    assert!(f.availability_periods.iter().all(|p| p.periods_count == 0));
    assert!(f.memory_over_time[1..].iter().all(|p| p.is_after_gap));
}

#[test]
fn a_clock_set_back_is_a_gap_and_order_is_kept() {
    // Samples at 0, 90 and 180 s; then the clock is set back by 135 s, and samples follow at 135 and 225 s.
    // Sorted by time, the samples before and after the change would mix.
    let mut r = Recording::new();
    r.host("a", 90);
    let times = [0, 90, 180, 135, 225];
    for (i, second) in times.into_iter().enumerate() {
        r.row("a", i as i64 + 1, second, &in_sight(100 * (i as i64 + 1)));
    }
    let f = r.analyzed(&parameters()).unwrap();
    let points: Vec<_> = f
        .memory_over_time
        .iter()
        .map(|p| {
            (
                p.min_available_bytes / MIB,
                (p.time_ms - NOON) / 1000,
                p.is_after_gap,
            )
        })
        .collect();
    assert_eq!(
        points,
        [
            (100, 0, false),
            (200, 90, false),
            (300, 180, false),
            (400, 135, true),
            (500, 225, false)
        ]
    );
    assert_eq!(
        (f.gaps[0].cause.as_str(), f.gaps[0].duration_s),
        ("clock_step", 0.0)
    );
    assert_eq!(f.hosts[0].coverage_share, 1.0);
}

#[test]
fn a_second_database_of_a_host_goes_on_after_the_first() {
    let mut r = Recording::new();
    r.host("a", 90);
    r.row_in("old", "a", 1, 0, &in_sight(500));
    r.row_in("old", "a", 2, 90, &in_sight(500));
    // In the new database, sequence numbers start again at 1.
    r.row_in("new", "a", 1, 180, &in_sight(500));
    let f = r.analyzed(&parameters()).unwrap();
    assert_eq!(
        (f.hosts[0].samples_count, f.gaps[0].cause.as_str()),
        (3, "new_database")
    );
}

#[test]
fn a_recorded_gap_divides_whatever_its_length() {
    let mut r = Recording::new();
    r.host("a", 90);
    for (sequence, second) in [(1, 0), (2, 90), (4, 200), (5, 290)] {
        r.row("a", sequence, second, &in_sight(500));
    }
    let gap = GapRow {
        from_time_ms: NOON + 90_000,
        to_time_ms: NOON + 200_000,
        cause: "sleep".into(),
    };
    r.row("a", 3, 200, &gap);
    let f = r.analyzed(&parameters()).unwrap();
    assert_eq!((f.gaps.len(), f.gaps[0].cause.as_str()), (1, "sleep"));
    let small = f
        .availability_periods
        .iter()
        .find(|p| p.scope == Scope::All)
        .unwrap();
    assert_eq!((small.periods_count, small.mean_s), (2, Some(90.0)));
}

#[test]
fn contradictory_figures_give_an_answer() {
    let mut r = Recording::new();
    r.host("a", 90);
    let rows = [
        SampleRow::default(), // a host without memory
        SampleRow {
            physical_bytes: -1,
            available_bytes: -5,
            category_correction_bytes: i64::MIN,
            available_residual_bytes: i64::MIN,
            load5: Some(f64::NAN),
            owner_idle_ms: Some(-7),
            ..in_sight(1)
        },
        SampleRow {
            physical_bytes: i64::MAX,
            available_bytes: i64::MAX,
            mem_available_bytes: Some(i64::MAX),
            load5: Some(f64::INFINITY),
            owner_idle_ms: Some(i64::MAX),
            ..in_sight(1)
        },
    ];
    for (i, row) in rows.iter().enumerate() {
        r.row("a", i as i64 + 1, 90 * i as i64, row);
    }
    let f = r.analyzed(&parameters()).unwrap();
    assert_eq!(f.hosts[0].samples_count, 3);
}

#[test]
fn sizes_left_open_are_chosen_and_said() {
    let mut r = Recording::new();
    r.row("a", 1, 0, &in_sight(500));
    let f = r.analyzed(&Parameters::default()).unwrap();
    let mib: Vec<i64> = f.parameters.region_bytes.iter().map(|b| b / MIB).collect();
    assert_eq!(mib, [64, 256, 1024]);
    let mib: Vec<i64> = f
        .parameters
        .dip_threshold_bytes
        .iter()
        .map(|b| b / MIB)
        .collect();
    assert_eq!(mib, [64, 128, 256]);
}

#[test]
fn only_the_measures_that_were_asked_for() {
    let found = |measures: &[&str]| {
        let mut r = Recording::new();
        r.host("a", 90);
        for (sequence, second) in [(1, 0), (2, 90)] {
            r.row("a", sequence, second, &sample(600));
        }
        r.analyzed(&Parameters {
            measures: measures.iter().map(|m| (*m).to_owned()).collect(),
            ..Parameters::default()
        })
    };
    let f = found(&["dips"]).unwrap();
    assert!(!f.dips.is_empty() && f.hosts.len() == 1);
    assert!(f.memory_usage.is_empty() && f.availability_periods.is_empty());
    assert!(f.memory_over_time.is_empty());
    let measures = |f: &gleaner_schemas::findings::Findings| -> Vec<String> {
        f.missing_measures
            .iter()
            .map(|n| n.measure.clone())
            .collect()
    };
    assert!(
        !measures(&f).contains(&"top_processes".to_owned()),
        "not asked for"
    );
    assert!(measures(&found(&[]).unwrap()).contains(&"top_processes".to_owned()));
    let error = found(&["dips", "dip"]).unwrap_err().to_string();
    assert!(
        error.contains("\"dip\"") && error.contains("availability_periods"),
        "{error}"
    );
}

#[test]
fn hosts_of_two_datasets_are_analysed_as_those_of_one() {
    let record = |r: &mut Recording, host: &str, available_mib: &[i64]| {
        r.host(host, 90);
        for (i, available_mib) in available_mib.iter().enumerate() {
            let second = i as i64 * 90;
            r.row(host, i as i64 + 1, second, &in_sight(*available_mib));
        }
    };
    let (a, b): (&[i64], &[i64]) = (&[500, 300, 500], &[100, 700]);
    let (mut first, mut second, mut both) = (Recording::new(), Recording::new(), Recording::new());
    record(&mut first, "a", a);
    record(&mut second, "b", b);
    record(&mut both, "a", a);
    record(&mut both, "b", b);
    let (_first_folder, first) = first.dataset();
    let (_second_folder, second) = second.dataset();
    let together = analyze_together(&[&first, &second], &parameters(), &mut |_| ()).unwrap();
    assert_eq!(together.hosts.len(), 2);
    assert_eq!(together, both.analyzed(&parameters()).unwrap());
}
