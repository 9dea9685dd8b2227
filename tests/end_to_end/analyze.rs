//! `gleaner analyze` and `gleaner explain` as users run them, on good, bad and very little data.

use crate::gleaner::{complaint, gleaner, told};
use gleaner_schemas::findings::{Explanation, Findings};
use gleaner_tests::repository;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Standard error of a command that must fail with this exit code.
#[track_caller]
fn refused(args: &[&str], code: i32) -> String {
    let output = gleaner(args);
    assert_eq!(output.status.code(), Some(code), "{}", complaint(&output));
    assert!(output.stdout.is_empty());
    complaint(&output)
}

/// A dataset of four synthetic hosts and three days.
fn fleet() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let dataset = text(folder.path().join("dataset"));
    told(&["synth", "-o", &dataset, "--hosts", "4", "--days", "3"]);
    (folder, dataset)
}

fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().unwrap().to_owned()
}

#[test]
fn every_measure_can_be_printed_by_its_key_and_the_parts_are_the_whole() {
    let (_folder, dataset) = fleet();
    let keys = Findings::keys().join(",");
    let all = ["analyze", &dataset, "--json", "--measure", &keys];
    let whole: Findings = serde_json::from_str(&told(&all)).unwrap();
    let unasked: Findings = serde_json::from_str(&told(&all[..3])).unwrap();
    assert!(unasked.memory_over_time.is_empty() && !whole.memory_over_time.is_empty());
    let whole = serde_json::to_value(&whole).unwrap();
    for key in Findings::keys() {
        if key == "missing_measures" {
            continue; // its content depends on the requested measures
        }
        let args = ["analyze", &dataset, "--measure", &key, "--json"];
        let part: serde_json::Value = serde_json::from_str(&told(&args)).unwrap();
        assert_eq!(
            part[&key],
            alone(&key, &whole[&key]),
            "{key} alone is not what it is among all"
        );
    }
    let tables = told(&["analyze", &dataset, "--measure", &keys, "--rows", "3"]);
    assert!(
        !tables.contains("NaN") && !tables.contains("null"),
        "{tables}"
    );
    assert!(
        tables.contains("more: --measure"),
        "long lists are cut: {tables}"
    );
}

/// Selects the records that a measure has if it is requested alone. Three measures then have only the notion
/// `available`; the other notions come only if the measure `notions` is requested too.
fn alone(key: &str, records: &serde_json::Value) -> serde_json::Value {
    let kept = records.as_array().unwrap().iter();
    let kept = kept.filter(|record| {
        !["availability_periods", "availability_odds", "dip_hosts"].contains(&key)
            || record["notion"] == "available"
    });
    kept.cloned().collect()
}

#[test]
fn what_most_people_want_is_printed_by_itself() {
    let (_folder, dataset) = fleet();
    let said = told(&["analyze", &dataset, "--time-zone", "Europe/Berlin"]);
    for heading in [
        "Use of memory",
        "Availability periods by region size",
        "Rate of reclaims by returning owners",
        "Memory available on all hosts together",
        "Quality of the forecasts",
    ] {
        assert!(said.contains(heading), "{heading} is missing in {said}");
    }
    let classes = told(&[
        "analyze",
        &dataset,
        "--measure",
        "memory_usage",
        "--class",
        "20GiB",
    ]);
    assert!(classes.contains("up to 20 GiB"), "{classes}");
}

#[test]
fn a_wrong_wish_is_refused_with_what_could_be_wished() {
    let (_folder, dataset) = fleet();
    let said = refused(&["analyze", &dataset, "--measure", "dipps"], 1);
    assert!(
        said.contains("dipps") && said.contains("availability_periods"),
        "{said}"
    );
    let said = refused(&["analyze", &dataset, "--time-zone", "Europe/Atlantis"], 1);
    assert!(said.contains("Europe/Atlantis"), "{said}");
    let said = refused(&["analyze", &dataset, "--headroom", "130"], 1);
    assert!(
        said.contains("headroom_share") && said.contains("from 0 to 1"),
        "{said}"
    );
    refused(&["analyze", &dataset, "--dip", "many"], 2);
    refused(&["analyze", &dataset, "--from", "Monday"], 2);
    let (monday, sunday) = ("2026-11-16T00:00:00+01:00", "2026-11-15");
    let said = refused(
        &["analyze", &dataset, "--from", monday, "--until", sunday],
        1,
    );
    assert!(
        said.contains("2026-11-15T23:00:00Z") && said.contains("end after it begins"),
        "{said}"
    );
    let said = refused(&["analyze", &dataset, "--until", "1999-12-31"], 1);
    assert!(
        said.contains("before 1999-12-31") && said.contains("samples go from"),
        "{said}"
    );
    let said = refused(&["analyze", "/nowhere/at/all"], 1);
    assert!(said.contains("/nowhere/at/all"), "{said}");
}

#[test]
fn a_dataset_without_samples_is_refused_and_golden_ones_are_answered() {
    let empty = tempfile::tempdir().unwrap();
    let said = refused(&["analyze", &text(empty.path())], 1);
    assert!(said.contains(&text(empty.path())), "{said}");
    // The golden datasets of all versions must be readable. They have few rows, written by hand: one host has
    // a single sample, another a gap.
    for version in ["v1", "v2", "v3", "v4", "v5", "v6", "v7"] {
        let golden: PathBuf = repository().join("dataset/golden").join(version);
        let json = told(&["analyze", &text(&golden), "--json"]);
        let found: Findings = serde_json::from_str(&json).unwrap();
        assert!(!found.hosts.is_empty(), "{version}");
        assert!(
            !found.missing_measures.is_empty(),
            "{version}: so few rows leave much unmeasured"
        );
        told(&["analyze", &text(&golden)]);
        told(&["explain", &text(&golden), "--host", &found.hosts[0].host_id]);
    }
}

#[test]
fn one_instant_of_one_host_is_explained() {
    let (_folder, dataset) = fleet();
    let found: Findings = serde_json::from_str(&told(&[
        "analyze",
        &dataset,
        "--measure",
        "hosts",
        "--json",
    ]))
    .unwrap();
    let host = &found.hosts[0];
    let at = (host.from_time_ms + 600_000).to_string();
    let args = ["explain", &dataset, "--host", &host.host_name, "--at", &at];
    let said = told(&args);
    for word in [
        "Memory",
        "dynamic kernel",
        "MemFree",
        "Idle?",
        "Lease quota",
        "paper's quota",
    ] {
        assert!(said.contains(word), "{word} is missing in {said}");
    }
    let json = told(&[&args[..], &["--json"]].concat());
    let explained: Explanation = serde_json::from_str(&json).unwrap();
    assert!(explained.time_ms <= explained.requested_time_ms);
    assert_eq!(
        explained.source, None,
        "a synthetic host has an agent's figures"
    );
    // Categories that are computed from counters alone are explained exactly. The others are not, since
    // synthetic processes map files that have no row.
    for category in ["static_kernel", "dynamic_kernel", "available"] {
        let one = explained
            .categories
            .iter()
            .find(|c| c.category == category)
            .unwrap();
        assert_eq!(one.unexplained_bytes, Some(0), "{category}: {one:?}");
    }
    let said = refused(&["explain", &dataset, "--host", "nobody"], 1);
    assert!(said.contains("nobody"), "{said}");
    let said = refused(
        &[
            "explain",
            &dataset,
            "--host",
            &host.host_id,
            "--at",
            "1999-01-01",
        ],
        1,
    );
    assert!(said.contains("does not reach"), "{said}");
}
