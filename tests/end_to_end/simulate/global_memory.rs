//! `gleaner simulate` of global memory.

use super::{gleaner, refused, succeeded, synth};
use serde_json::Value;
use std::fs;

const GLOBAL_MEMORY: &str = "
    about = 'two policies'
    system = 'gms'
    seeds = [1, 2]
    [scenario]
    counted_faults = 200
    [sweep]
    policy = ['gms', 'n-chance']
";

#[test]
fn global_memory_is_simulated_without_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("memory.toml"), GLOBAL_MEMORY).unwrap();
    let run = |jobs: &str| {
        let args = ["simulate", "memory.toml", "--json", "-", "--jobs", jobs];
        succeeded(gleaner(folder, &args))
    };
    let printed = run("1");
    assert_eq!(printed, run("3"), "threads do not change the results");
    let results: Value = serde_json::from_str(&printed).unwrap();
    let rows = results["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["settings"]["policy"], "n-chance");
    for row in rows {
        assert!(row["speedup"]["median"].as_f64().unwrap() > 1.0, "{row}");
        assert!(row["bystander_slowdown"].is_null());
    }
    let table = succeeded(gleaner(
        folder,
        &[
            "simulate",
            "memory.toml",
            "--seed",
            "1",
            "--sweep",
            "policy=none",
        ],
    ));
    assert!(
        table.contains("none") && table.contains("speedup"),
        "{table}"
    );
    // Machines that have some of the values give the rows of the whole sweep.
    let csv = |more: &[&str]| {
        let args = ["simulate", "memory.toml", "--csv", "-"];
        succeeded(gleaner(folder, &[&args[..], more].concat()))
    };
    let whole = csv(&[]);
    let first = csv(&["--sweep", "policy=gms"]);
    let second = csv(&["--sweep", "policy=n-chance"]);
    let (header, rows) = second.split_once('\n').unwrap();
    assert!(first.starts_with(header), "{first}");
    assert_eq!(first + rows, whole);
    assert_eq!(whole.lines().count(), 3);
    let list = succeeded(gleaner(folder, &["simulate", "--list"]));
    assert!(list.contains("gms-skew"), "{list}");

    fs::write(
        folder.join("wrong.toml"),
        "system = 'gms'\n[scenario]\nidle_nodes = 100000\n",
    )
    .unwrap();
    for (args, words) in [
        (
            &["simulate", "wrong.toml"][..],
            &["wrong.toml", "line 3", "idle_nodes"][..],
        ),
        (
            &["simulate", "memory.toml", "--days", "1"],
            &["--days", "datasets"],
        ),
        (
            &["simulate", "memory.toml", "--sweep", "boost=5"],
            &["boost"],
        ),
    ] {
        refused(folder, args, 1, words);
    }
}

/// Global memory beside recorded owners: two policies, and two shares of the memory that hosts may lend.
const RECORDED_MEMORY: &str = "
    about = 'beside owners'
    system = 'gms'
    from = 2026-11-17T10:00:00Z
    days = 0.5
    [datasets]
    lab = 'lab'
    [scenario]
    counted_faults = 200
    idle_nodes = 6
    [scenario.recorded]
    mode = 'spare'
    most_frames = 4000
    [sweep]
    policy = ['gms', 'hash']
    recorded.lent_share = [0.0, 1.0]
";

#[test]
fn global_memory_is_simulated_on_recorded_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth(folder);
    fs::write(folder.join("owners.toml"), RECORDED_MEMORY).unwrap();
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let run = |jobs: &str| {
        let files = ["--json", "a.json", "--csv", "a.csv", "--page", "a.html"];
        let args = ["simulate", "owners.toml", "--jobs", jobs];
        let table = succeeded(gleaner(folder, &[&args[..], &files].concat()));
        [table, read("a.json"), read("a.csv"), read("a.html")]
    };
    let first = run("1");
    assert!(first == run("3"), "threads do not change the results");
    assert!(first[3].contains("Global memory, simulated"));
    assert!(
        first[3].contains("speedup: gms "),
        "a line is named by what differs"
    );
    let results: Value = serde_json::from_str(&first[1]).unwrap();
    let rows = results["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let figure = |key: &str| row[key]["median"].as_f64().unwrap();
        let settings = &row["settings"];
        assert_eq!(settings["dataset"], "lab");
        if settings["recorded.lent_share"] == "0.0" {
            assert_eq!(figure("cluster_reads"), 0.0, "no host lends: {row}");
        } else if settings["policy"] == "gms" {
            assert!(figure("cluster_reads") > 0.0, "{row}");
        }
        assert!(figure("source_reads") > 0.0 || figure("cluster_reads") > 0.0);
        assert!(figure("network_bytes") >= figure("epoch_bytes"));
    }

    let page = ["simulate", "owners.toml", "--page", "a.html"];
    let one_number = [&page[..], &["--sweep", "recorded.lent_share=1"]].concat();
    for (args, words) in [
        (&["simulate", "gms-clusters"][..], &["dataset A"][..]),
        (
            &["simulate", "owners.toml", "--dataset", "absent"],
            &["dataset absent"],
        ),
        (&["simulate", "owners.toml", "--days", "0"], &["days = 0"]),
        (
            &["simulate", "owners.toml", "--days", "30"],
            &["dataset lab has samples from"],
        ),
        (
            &["simulate", "owners.toml", "--days", "0.0005"],
            &["dataset lab", "no samples between"],
        ),
        (
            &["simulate", "owners.toml", "--program", "lu"],
            &["--program", "global memory"],
        ),
        (
            &["simulate", "owners.toml", "--part", "1/2", "-o", "part"],
            &["--part", "global memory", "--sweep KEY=VALUE"],
        ),
        // 200 faults with 10 s of computing between them take longer than 22 minutes.
        (
            &[
                "simulate",
                "owners.toml",
                "--days",
                "0.015",
                "--sweep",
                "compute_us=10000000",
            ],
            &["recorded hours", "choose fewer counted_faults"],
        ),
        (&one_number[..], &["--page", "several numbers"]),
        (
            &[
                "simulate",
                "owners.toml",
                "--sweep",
                "recorded.lent_share=2",
            ],
            &["recorded.lent_share = 2"],
        ),
    ] {
        refused(folder, args, 1, words);
    }
}

/// Runs a shipped scenario on another dataset than its own, from an hour at which the owners are absent.
#[test]
fn the_shipped_clusters_of_global_memory_lend_on_any_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth(folder);
    let rows = |more: &[&str]| {
        let shipped = ["simulate", "gms-clusters", "--dataset", "lab"];
        let short = ["--sweep", "counted_faults=50", "--json", "-"];
        let lent = ["--sweep", "recorded.lent_share=1"];
        let output = gleaner(folder, &[&shipped[..], &short, &lent, more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let results: Value = serde_json::from_slice(&output.stdout).unwrap();
        (results["rows"].as_array().unwrap().clone(), said)
    };
    // The shipped begin is a day of the study's datasets, which this dataset lacks.
    let (at_first, said) = rows(&["--sweep", "policy=gms"]);
    assert!(
        said.contains("dataset lab is simulated from its first day on"),
        "{said}"
    );
    assert_eq!(at_first.len(), 1);

    let at_night = ["--from", "2026-11-17T02:00:00Z"];
    // Many frames, but not all memory of hosts of today.
    let frames = ["--sweep", "recorded.most_frames=20000"];
    let policies = ["--sweep", "policy=none,gms"];
    let (rows, said) = rows(&[&at_night[..], &frames, &policies].concat());
    assert_eq!(said, "", "the begin is given");
    assert_eq!(rows.len(), 2);
    let reads = |policy: &str| {
        let row = rows.iter().find(|row| row["settings"]["policy"] == policy);
        let row = row.unwrap();
        ["cluster_reads", "source_reads"].map(|key| row[key]["median"].as_f64().unwrap())
    };
    let ([none_cluster, none_source], [cluster, source]) = (reads("none"), reads("gms"));
    assert_eq!(none_cluster, 0.0);
    assert!(cluster > 0.0, "no host lends");
    assert!(source < none_source, "{source} of {none_source}");
}
