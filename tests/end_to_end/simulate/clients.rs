//! `gleaner simulate` of recorded clients, which borrow memory at the same time.

use super::{gleaner, succeeded, synth};
use gleaner_dataset::Dataset;
use serde_json::Value;
use std::fs;

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
