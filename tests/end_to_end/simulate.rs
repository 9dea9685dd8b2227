//! `gleaner simulate`, on a few synthetic hosts.

mod global_memory;
mod servers;

use gleaner_dataset::Dataset;
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

/// The first stream has two clients (ASUs). Each reads 8 MiB of its volume three times, a block every 10 ms.
/// The second stream is one client, which repeats the requests of both as requests for named objects.
const STREAMS: &str = "
    about = 'recorded clients'
    from = 2026-11-16
    days = 0.2
    seeds = [1, 2]
    [datasets]
    office = 'lab'
    [[clients]]
    stream = 'traces/web.spc'
    block_bytes = 8192
    host = ['HOST', 'synthetic-00002']
    begin_s = 3600
    [[clients]]
    name = 'mail'
    stream = 'traces/named.oracleGeneral'
    begin_s = 3600
    [scenario]
    client.local_cache_bytes = 0
    [sweep]
    remote.placement = ['random', 'spread']
";

#[test]
fn recorded_clients_borrow_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth(folder);
    fs::create_dir(folder.join("traces")).unwrap();
    let line = |at: u64| {
        let (s, hundredths, lba) = (at / 100, at % 100, at % 1024 * 16);
        format!("0,{lba},8192,R,{s}.{hundredths:02}\n1,{lba},8192,R,{s}.{hundredths:02}5\n")
    };
    let lines: String = (0..3 * 1024).map(line).collect();
    fs::write(folder.join("traces/web.spc"), lines).unwrap();
    let export = [
        "export",
        "--stream",
        "traces/web.spc",
        "--stream-format",
        "spc",
        "--to",
        "oracleGeneral",
        "-o",
        "traces/named.oracleGeneral",
    ];
    succeeded(gleaner(folder, &export));
    let host = Dataset::open(folder.join("lab")).unwrap();
    let host = host.hosts_named("synthetic-00001").unwrap();
    let host = host.into_iter().next().unwrap();
    // Paths of streams are relative to the scenario's file. The test therefore runs the command in another
    // folder.
    fs::create_dir(folder.join("elsewhere")).unwrap();
    let scenario = STREAMS.replace("HOST", &host);
    fs::write(folder.join("streams.toml"), &scenario).unwrap();
    let run = |jobs: &str| {
        let results = ["--json", "a.json", "--csv", "a.csv", "--page", "a.html"];
        let args = ["simulate", "../streams.toml", "--jobs", jobs];
        let elsewhere = folder.join("elsewhere");
        let table = succeeded(gleaner(&elsewhere, &[&args[..], &results].concat()));
        let read = |name: &str| fs::read_to_string(elsewhere.join(name)).unwrap();
        [table, read("a.json"), read("a.csv"), read("a.html")]
    };
    let [table, json, csv, page] = run("1");
    assert!(run("2") == [table.clone(), json.clone(), csv.clone(), page.clone()]);

    assert_eq!(
        table.lines().filter(|l| l.contains("streams")).count(),
        2,
        "{table}"
    );
    assert!(
        csv.lines()
            .nth(1)
            .unwrap()
            .starts_with("streams,office,random,2,"),
        "{csv}"
    );
    // The page has only one figure of costs: no owner returned, so that the memory context is unknown in
    // every row.
    assert_eq!(page.matches("<figure id=\"cost-").count(), 1);
    assert!(page.contains("share of gain against reclaims"));
    let json: Value = serde_json::from_str(&json).unwrap();
    for row in json["rows"].as_array().unwrap() {
        assert_eq!(row["program"], "streams");
        let hits = row["hit_share"]["median"].as_f64().unwrap();
        assert!(0.0 < hits && hits < 1.0, "{row:#}");
        for seed in row["by_seed"].as_array().unwrap() {
            let clients = seed["clients"].as_array().unwrap();
            let told = |key: &str| clients.iter().map(|c| c[key].clone()).collect::<Vec<_>>();
            assert_eq!(told("name"), ["web-0", "web-1", "mail"]);
            assert_eq!(clients[0]["host_id"], *host);
            assert!(
                clients[1]["host_id"]
                    .as_str()
                    .is_some_and(|id| id.len() == 32)
            );
            assert!(clients[2]["host_id"].is_null());
            let begins = [3_600_000_000_000_u64, 3_600_005_000_000, 3_600_000_000_000];
            assert_eq!(told("begin_ns"), begins);
            let sum = |of: fn(&Value) -> u64| clients.iter().map(of).sum::<u64>() as f64;
            let took = sum(|c| c["end_ns"].as_u64().unwrap() - c["begin_ns"].as_u64().unwrap());
            let speedup = sum(|c| c["baseline_ns"].as_u64().unwrap()) / took;
            assert_eq!(seed["speedup"].as_f64(), Some(speedup), "{seed:#}");
            // The clients 0 and 1 make 3 × 1024 requests of 8 KiB each. `mail` repeats the requests of both
            // in blocks of 4 KiB, which gives four times as many.
            let requests: Vec<_> = clients
                .iter()
                .map(|c| c["counts"]["requests_count"].clone())
                .collect();
            assert_eq!(requests, [3 * 1024, 3 * 1024, 4 * 3 * 1024]);
        }
    }

    for (altered, more, words) in [
        (
            scenario.replace(&host, "h0009"),
            &[][..],
            &["clients.host = h0009", "dataset office"][..],
        ),
        (
            scenario.replace("web.spc", "gone.spc"),
            &[],
            &["cannot open", "traces/gone.spc", "No such file"],
        ),
        (
            scenario.replace("'traces/web.spc'", "'lab.spc'"),
            &[],
            &["lab.spc line 2", "soon"],
        ),
        (
            format!("programs = ['lu']\n{scenario}"),
            &[],
            &["streams.toml", "`programs`", "`clients`"],
        ),
        (
            scenario.clone(),
            &["--program", "lu"],
            &["--program lu", "`clients`"],
        ),
        (
            scenario.clone(),
            &["--sweep", "pause_ns=1,2"],
            &["pause_ns", "`clients`"],
        ),
        (
            scenario.replace("begin_s", "begins"),
            &[],
            &["streams.toml", "`begins`", "`begin_s`"],
        ),
    ] {
        fs::write(folder.join("lab.spc"), "0,0,8192,R,0\n0,0,8192,R,soon\n").unwrap();
        fs::write(folder.join("streams.toml"), altered).unwrap();
        let output = gleaner(folder, &[&["simulate", "streams.toml"][..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

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
