//! `gleaner simulate` of policies of memory servers.

use super::{gleaner, refused, succeeded};
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
