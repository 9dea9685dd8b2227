//! `gleaner simulate` of policies of memory servers.

use super::{gleaner, refused, succeeded, synth};
use gleaner_schemas::curve::{CURVE_VERSION, Curve, FaultPoint};
use serde_json::Value;
use std::fs;

const SERVERS: &str = "
    about = 'two policies'
    system = 'servers'
    seeds = [1, 2]
    columns = ['owner_ms', 'lost_pages']
    [scenario]
    clients = 2
    client_pages = [1000]
    owners = [{ server = 0, at_ms = 500, pages = 0 }]
    length_ms = 2000
    [sweep]
    shutdown = ['migrate', 'at-once']
";

#[test]
fn servers_are_simulated_without_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("servers.toml"), SERVERS).unwrap();
    let run = |jobs: &str| {
        let args = ["simulate", "servers.toml", "--json", "-", "--jobs", jobs];
        succeeded(gleaner(folder, &args))
    };
    let printed = run("1");
    assert_eq!(printed, run("3"), "threads do not change the results");
    let results: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(results["system"], "servers");
    let rows = results["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    let median = |row: usize, key: &str| rows[row][key]["median"].as_f64().unwrap();
    assert!(median(0, "owner_ms") > median(1, "owner_ms"));
    assert_eq!(median(0, "lost_pages"), 0.0);
    assert_eq!(median(1, "lost_pages"), 500.0);
    let args = ["simulate", "servers.toml", "--sweep", "choice=stick"];
    let table = succeeded(gleaner(folder, &args));
    assert!(
        table.contains("stick") && table.contains("owner, ms") && !table.contains("p50"),
        "{table}"
    );
    let list = succeeded(gleaner(folder, &["simulate", "--list"]));
    assert!(list.contains("shared-lru"), "{list}");

    fs::write(
        folder.join("wrong.toml"),
        "system = 'servers'\n[scenario]\nservers = 100000\n",
    )
    .unwrap();
    for (args, words) in [
        (
            &["simulate", "wrong.toml"][..],
            &["wrong.toml", "line 3", "servers"][..],
        ),
        (
            &["simulate", "servers.toml", "--days", "1"],
            &["--days", "datasets"],
        ),
        (
            &["simulate", "servers.toml", "--sweep", "choices=stick"],
            &["choices"],
        ),
    ] {
        refused(folder, args, 1, words);
    }
}

/// Recorded hosts as servers, and a program's curve as the clients' page-ins.
const RECORDED_SERVERS: &str = "
    about = 'beside owners'
    system = 'servers'
    from = 2026-11-17T10:00:00Z
    columns = ['p50_us', 'server_share']
    [datasets]
    lab = 'lab'
    [curves]
    sort = 'sort.curve'
    [scenario]
    clients = 2
    server_pages = 4000
    shutdown = 'migrate'
    has_disk_copy = true
    length_ms = 1800000
    [scenario.recorded]
    mode = 'spare'
    [sweep]
    local_share = [0.25, 0.5]
    recorded.headroom_share = [0.15, 1.0]
";

/// A program that takes a thousand seconds, so that half an hour has few page-ins.
fn sort() -> Curve {
    let point = |(memory_pages, reuse_count)| FaultPoint {
        memory_pages,
        reuse_count,
        write_backs_count: 100,
    };
    Curve {
        curve_version: CURVE_VERSION,
        program: "sort".to_owned(),
        native_cpu_s: 1_000.0,
        native_wall_s: 1_000.0,
        page_bytes: 4_096,
        footprint_pages: 2_000,
        faults: [(500, 2_000), (1_000, 500), (2_000, 0)].map(point).to_vec(),
        sampled_share: 1.0,
        ..Curve::default()
    }
}

#[test]
fn servers_are_recorded_hosts_and_clients_run_a_recorded_program() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth(folder);
    fs::write(folder.join("owners.toml"), RECORDED_SERVERS).unwrap();
    let curve = serde_json::to_string(&sort()).unwrap();
    fs::write(folder.join("sort.curve"), curve).unwrap();
    let run = |jobs: &str| {
        let args = ["simulate", "owners.toml", "--json", "-", "--jobs", jobs];
        succeeded(gleaner(folder, &args))
    };
    let printed = run("1");
    assert_eq!(printed, run("3"), "threads do not change the results");
    let results: Value = serde_json::from_str(&printed).unwrap();
    let rows = results["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let settings = &row["settings"];
        assert_eq!(settings["dataset"], "lab");
        assert_eq!(settings["curve"], "sort");
        let share = row["server_share"]["median"].as_f64().unwrap();
        // With all memory as headroom no host lends, and clients read from their disks.
        match settings["recorded.headroom_share"] == "1.0" {
            true => assert_eq!(share, 0.0, "{row}"),
            false => assert!(share > 0.0, "{row}"),
        }
        assert_eq!(row["lost_pages"]["median"], 0.0);
    }
    let other = ["--dataset", "other=lab", "--from", "2026-11-16"];
    let given = [&["simulate", "owners.toml", "--csv", "-"][..], &other].concat();
    let csv = succeeded(gleaner(folder, &given));
    assert!(csv.contains("other,sort,0.25"), "{csv}");

    fs::write(folder.join("broken.curve"), "{}").unwrap();
    let broken = RECORDED_SERVERS.replace("sort.curve", "broken.curve");
    fs::write(folder.join("broken.toml"), broken).unwrap();
    for (args, words) in [
        (
            &["simulate", "owners.toml", "--dataset", "absent"][..],
            &["dataset absent"][..],
        ),
        (
            &["simulate", "broken.toml"],
            &["curve sort", "broken.curve"],
        ),
        (
            &["simulate", "owners.toml", "--days", "1"],
            &["--days", "length_ms"],
        ),
        (
            &["simulate", "owners.toml", "--from", "2027-01-01"],
            &["dataset lab has samples from"],
        ),
        (
            &["simulate", "owners.toml", "--sweep", "servers=2,3"],
            &["servers", "come from the datasets"],
        ),
        (
            &["simulate", "owners.toml", "--page", "a.html"],
            &["--page", "memory servers"],
        ),
    ] {
        refused(folder, args, 1, words);
    }
}
