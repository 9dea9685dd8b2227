//! `gleaner simulate`, on a few synthetic hosts.

mod clients;
mod global_memory;
mod servers;
mod shipped;

use gleaner_tests::program;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) fn gleaner(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program("gleaner").unwrap());
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.output().unwrap()
}

/// Checks that a command ends with this exit code, prints these words to standard error, and nothing else.
#[track_caller]
pub(crate) fn refused(folder: &Path, args: &[&str], code: i32, words: &[&str]) {
    let output = gleaner(folder, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: {said}");
    }
    assert!(output.stdout.is_empty());
}

#[track_caller]
pub(crate) fn succeeded(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "", "nothing beside the results");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn synth(folder: &Path) {
    let args = [
        "synth",
        "-o",
        "lab",
        "--hosts",
        "4",
        "--days",
        "2",
        "--start",
        "2026-11-16",
    ];
    let made = gleaner(folder, &[&args[..], &["--interval", "5m"]].concat());
    assert!(made.status.success(), "{made:?}");
}

/// Half a day of the program `lu`. Two placements and two headrooms are tried, with two seeds.
pub(crate) const SCENARIO: &str = "
    about = 'a short one'
    programs = ['lu']
    from = 2026-11-17
    days = 0.5
    seeds = [1, 2]
    [datasets]
    office = 'lab'
    [scenario]
    reference_runs = 1
    [sweep]
    remote.placement = ['random', 'spread']
    recruitment.headroom_share = [0.15, 0.6]
";

#[test]
fn a_scenario_is_swept_with_the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth(folder);
    fs::write(folder.join("short.toml"), SCENARIO).unwrap();
    let run = |jobs: &str| {
        let results = ["--json", "a.json", "--csv", "a.csv", "--page", "a.html"];
        let args = [&["simulate", "short.toml", "--jobs", jobs][..], &results].concat();
        let table = succeeded(gleaner(folder, &args));
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        [table, read("a.json"), read("a.csv"), read("a.html")]
    };
    let [table, json, csv, page] = run("1");
    assert!(run("2") == [table.clone(), json.clone(), csv.clone(), page.clone()]);

    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + 4, "{table}");
    for word in [
        "program",
        "headroom_share",
        "placement",
        "speedup",
        "share of gain",
        "reclaims",
        "owner delay",
    ] {
        assert!(lines[0].contains(word), "{word}: {table}");
    }
    assert!(
        lines[1..].iter().all(|line| line.contains("office")),
        "{table}"
    );

    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(json["datasets"][0]["from_ms"], 1_794_873_600_000_i64);
    assert_eq!(rows.len(), 4);
    for row in rows {
        let [speedup, ideal] = ["speedup", "ideal_speedup"].map(|key| row[key]["median"].as_f64());
        assert!(speedup.unwrap() > 1.0 && speedup < ideal, "{row:#}");
        let share = row["gain_share"]["median"].as_f64().unwrap();
        let hits = row["hit_share"]["median"].as_f64().unwrap();
        assert!(
            0.0 < share && share < 1.0 && 0.0 < hits && hits < 1.0,
            "{row:#}"
        );
        let of_seeds: Vec<f64> = row["by_seed"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["gain_share"].as_f64().unwrap())
            .collect();
        let [low, high] = ["low", "high"].map(|key| row["gain_share"][key].as_f64().unwrap());
        assert_eq!(
            (
                of_seeds.len(),
                of_seeds.iter().copied().fold(f64::MAX, f64::min)
            ),
            (2, low)
        );
        assert!(low <= share && share <= high);
    }
    // The headroom cannot be lent: with a larger headroom, the quota is smaller.
    let lent = |headroom: &str| {
        let row = rows
            .iter()
            .find(|r| r["settings"]["recruitment.headroom_share"] == headroom);
        row.unwrap()["mean_quota_bytes"]["median"].as_f64().unwrap()
    };
    assert!(
        lent("0.6") < 0.8 * lent("0.15"),
        "{} {}",
        lent("0.6"),
        lent("0.15")
    );

    let header = csv.lines().next().unwrap();
    assert!(
        header.starts_with(
            "program,dataset,recruitment.headroom_share,remote.placement,seeds,speedup,speedup_low,"
        ),
        "{header}"
    );
    assert_eq!(csv.lines().count(), 5);
    let fields: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(fields[..5], ["lu", "office", "0.15", "random", "2"]);
    assert_eq!(
        fields[5].parse::<f64>().ok(),
        rows[0]["speedup"]["median"].as_f64()
    );
    assert_eq!(fields.len(), header.split(',').count());

    assert!(
        page.contains("Dataset office") && page.contains("default-src &#39;none&#39;")
            || page.contains("default-src 'none'")
    );
    assert_eq!(
        page.matches("<figure id=\"cost-").count(),
        2,
        "reclaims, memory context"
    );

    // With `--json -` or `--csv -`, standard output contains nothing but that format.
    let told = succeeded(gleaner(
        folder,
        &[
            "simulate",
            "short.toml",
            "--sweep",
            "placement=stick",
            "--sweep",
            "headroom_share=0.15",
            "--seed",
            "3",
            "--json",
            "-",
        ],
    ));
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        told["rows"].as_array().unwrap().len(),
        1,
        "a sweep stands in the place of the file's"
    );
    assert_eq!(told["rows"][0]["settings"]["remote.placement"], "stick");
    assert_eq!(told["seeds"], serde_json::json!([3]));
}

#[test]
fn what_is_wrong_is_named_before_anything_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth(folder);
    fs::write(folder.join("short.toml"), SCENARIO).unwrap();
    fs::write(
        folder.join("wrong.toml"),
        "[sweep]\nremote.placment = ['random']\n",
    )
    .unwrap();
    fs::write(folder.join("odd.toml"), "progams = ['lu']\n").unwrap();
    let short = |more: &[&'static str]| [&["simulate", "short.toml"][..], more].concat();
    for (args, code, words) in [
        (
            vec!["simulate", "wrong.toml", "--dataset", "lab"],
            1,
            &["remote.placment = random"][..],
        ),
        (
            vec!["simulate", "odd.toml"],
            1,
            &["odd.toml", "line 1", "`progams`"],
        ),
        (
            short(&["--sweep", "remote.placment=random"]),
            1,
            &["remote.placment = random", "`placement`"],
        ),
        (
            short(&["--sweep", "placement=best"]),
            1,
            &["remote.placement = best", "longest-available"],
        ),
        (
            short(&["--sweep", "placement"]),
            2,
            &["placement", "KEY=VALUE"],
        ),
        (short(&["--sweep", "seed=1,2"]), 2, &["`seeds`"]),
        (short(&["--program", "emacs"]), 1, &["emacs", "hotcold"]),
        (
            short(&["--days", "30"]),
            1,
            &["office", "2026-11-16", "2026-11-17", "30 days"],
        ),
        (
            short(&["--from", "monday"]),
            1,
            &["--from monday", "RFC 3339"],
        ),
        (short(&["--dataset", "nowhere"]), 1, &["nowhere"]),
        (
            short(&["--dataset", "a=lab", "--dataset", "a=lab"]),
            1,
            &["two datasets", "a"],
        ),
        (
            short(&["--days", "0.01"]),
            1,
            &["lu on office", "not one run ended"],
        ),
        (
            vec!["simulate", "stduy"],
            1,
            &["stduy", "study", "slow-network"],
        ),
        (
            short(&["--json", "-", "--csv", "-"]),
            1,
            &["--json -", "to a file"],
        ),
        (
            short(&["--page", "nowhere/a.html"]),
            1,
            &["nowhere", "no such folder"],
        ),
        (vec!["simulate"], 2, &["<SCENARIO>"]),
    ] {
        refused(folder, &args, code, words);
    }
}

#[test]
fn hosts_lend_what_is_expected_to_stay_and_that_is_learnt_from_the_day_before() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth(folder);
    fs::write(folder.join("short.toml"), SCENARIO).unwrap();
    let short = |more: &[&'static str]| {
        let one = [
            "--sweep",
            "placement=stick",
            "--sweep",
            "headroom_share=0.15",
        ];
        [&["simulate", "short.toml"][..], &one, more].concat()
    };
    let forecasts = ["--sweep", "expected_for_s=0,600,14400", "--sweep"];
    let sure = ["confidence=0.5,0.99", "--json", "-"];
    let run = || succeeded(gleaner(folder, &short(&[&forecasts[..], &sure].concat())));
    let told = run();
    assert_eq!(told, run(), "the same dataset teaches the same");
    let told: Value = serde_json::from_str(&told).unwrap();
    let mean_quota = |for_s: &str, confidence: &str| {
        let rows = told["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| {
            row["settings"]["recruitment.expected_for_s"] == for_s
                && row["settings"]["recruitment.confidence"] == confidence
        });
        let measure = &row.unwrap()["mean_quota_bytes"]["median"];
        measure.as_f64().unwrap()
    };
    let all = mean_quota("0", "0.5");
    assert_eq!(
        all,
        mean_quota("0", "0.99"),
        "without a forecast nothing need be sure"
    );
    let half = mean_quota("600", "0.5");
    assert!(0.0 < half && half <= all, "{half} {all}");
    assert!(mean_quota("600", "0.99") <= half && mean_quota("14400", "0.5") <= half);
    assert!(mean_quota("14400", "0.99") < all);

    for (more, words) in [
        (
            &["--sweep", "expected_for_s=600", "--from", "2026-11-16"][..],
            &["dataset office", "2026-11-16", "--from"][..],
        ),
        (
            &["--sweep", "expected_for_s=86401"],
            &["recruitment.expected_for_s = 86401", "86400"],
        ),
        (
            &["--sweep", "confidence=90"],
            &["recruitment.confidence = 90", "from 0 to 1"],
        ),
        (
            &["--sweep", "recruitment.time_zone=Mars"],
            &["recruitment.time_zone = Mars"],
        ),
    ] {
        let output = gleaner(folder, &short(more));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{more:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{more:?}: {said}");
        }
    }
}

#[test]
fn a_case_too_slow_for_the_time_leaves_its_row_empty() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth(folder);
    fs::write(folder.join("short.toml"), SCENARIO).unwrap();
    // At 1 byte per second, the transfer of a region would take 48 days.
    let slow = ["--sweep", "network.bytes_per_s=70000000,1"];
    let args = [&["simulate", "short.toml", "--program", "lu"][..], &slow].concat();
    let json = succeeded(gleaner(folder, &[&args[..], &["--json", "-"]].concat()));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let is_slow = row["settings"]["network.bytes_per_s"] == "1";
        assert_eq!(row["speedup"].is_null(), is_slow, "{row:#}");
    }
    let table = succeeded(gleaner(folder, &args));
    assert!(table.contains("no run ended"), "{table}");
}
