//! `gleaner simulate` of the scenarios that come with the program.

use super::{gleaner, succeeded, synth};
use serde_json::Value;
use std::fs;

#[test]
fn scenarios_come_with_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let list = succeeded(gleaner(folder, &["simulate", "--list"]));
    for name in [
        "study",
        "policies",
        "forecast",
        "headroom",
        "idle",
        "slow-network",
    ] {
        assert!(list.contains(name), "{list}");
        let text = succeeded(gleaner(folder, &["simulate", name, "--print"]));
        let shipped = gleaner_tests::repository().join(format!("simulator/scenarios/{name}.toml"));
        assert_eq!(text, fs::read_to_string(shipped).unwrap());
    }
    // Relative paths of datasets start from the current folder, and not from the scenario.
    synth(folder);
    fs::rename(folder.join("lab"), folder.join("A")).unwrap();
    let study = [
        "simulate",
        "study",
        "--program",
        "lu",
        "--dataset",
        "A",
        "--seed",
        "1",
    ];
    let span = ["--from", "2026-11-16", "--days", "0.2", "--csv", "-"];
    let csv = succeeded(gleaner(folder, &[&study[..], &span].concat()));
    assert!(csv.lines().nth(1).unwrap().starts_with("lu,A,1,"), "{csv}");
}

/// A shipped scenario starts on a day of the study's datasets. With another dataset, the simulation starts on
/// that dataset's first day.
#[test]
fn a_shipped_scenario_runs_on_a_dataset_of_another_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth(folder);
    let short = [
        "--days",
        "0.25",
        "--program",
        "lu",
        "--seed",
        "1",
        "--json",
        "-",
    ];
    let on = |more: &[&str]| {
        let args = [
            &["simulate", "slow-network", "--dataset", "lab"][..],
            &short,
            more,
        ]
        .concat();
        gleaner(folder, &args)
    };
    let output = on(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("dataset lab is simulated from its first day on"),
        "{said}"
    );
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["datasets"][0]["from_ms"], 1_794_787_200_000_i64);
    // A day that the user requests is not replaced: here it is an error.
    let refused = on(&["--from", "2026-12-24"]);
    assert!(!refused.status.success());
}
