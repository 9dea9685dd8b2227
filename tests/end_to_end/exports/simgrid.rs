//! SimGrid (Debian's package) reads the exported platform and its profiles. Its hosts must be on in exactly
//! the exported periods.

use super::{Fleet, Period, ms, rows, text};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Events that SimGrid replayed; times in ms of SimGrid's clock.
#[derive(Default)]
struct ReplayLog {
    /// Properties of each host, by host name.
    hosts: BTreeMap<String, BTreeMap<String, String>>,
    /// Times at which each host was turned on (true) or off (false).
    states: BTreeMap<String, Vec<(i64, bool)>>,
    /// Times at which the share of each host's speed changed, with the new share.
    shares: BTreeMap<String, Vec<(i64, f64)>>,
}

fn replayed(platform: &Path, seconds: i64) -> ReplayLog {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("replay");
    let source = gleaner_tests::repository().join("tests/end_to_end/exports/replay.cpp");
    let compiled = Command::new("g++")
        .args([
            "-std=c++17",
            "-o",
            text(&program),
            text(&source),
            "-lsimgrid",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "run tests/setup first: {said}");
    let output = Command::new(&program)
        .args([text(platform), &seconds.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("WARNING"), "{said}");
    let mut found = ReplayLog::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (fields, properties) = line.split_once('\t').unwrap_or((line, ""));
        let fields: Vec<&str> = fields.split(' ').collect();
        let clock = |at: usize| (fields[at].parse::<f64>().unwrap() * 1000.0).round() as i64;
        match fields[0] {
            "host" => {
                let mut all: BTreeMap<String, String> = properties
                    .split('\t')
                    .filter_map(|p| p.split_once('='))
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
                all.insert("speed".to_owned(), fields[2].to_owned());
                found.hosts.insert(fields[1].to_owned(), all);
            }
            "state" => {
                let states = found.states.entry(fields[2].to_owned()).or_default();
                states.push((clock(1), fields[3] == "1"));
            }
            "share" => {
                let shares = found.shares.entry(fields[2].to_owned()).or_default();
                shares.push((clock(1), fields[3].parse().unwrap()));
            }
            other => panic!("{other}"),
        }
    }
    found
}

/// Changes of a host's state that SimGrid should report. In SimGrid, a host is on at first, and only changes
/// are reported.
fn changes(periods: &[&Period], origin_ms: i64) -> Vec<(i64, bool)> {
    let is_on_at_once = periods.first().is_some_and(|p| p.from_ms == origin_ms);
    let mut told: Vec<(i64, bool)> = (!is_on_at_once).then_some((0, false)).into_iter().collect();
    for period in periods {
        told.push((period.from_ms - origin_ms, true));
        told.push((period.to_ms - origin_ms, false));
    }
    told.into_iter().skip(usize::from(is_on_at_once)).collect()
}

#[test]
fn hosts_go_on_and_off_as_the_periods_say() {
    let fleet = Fleet::new();
    for scope in ["all", "idle"] {
        let (_folder, out) = fleet.exported("simgrid", scope, &[]);
        let platform = out.join("platform.xml");
        let xml = fs::read_to_string(&platform).unwrap();
        let (_, origin) = xml.split_once("\"origin_time_ms\" value=\"").unwrap();
        let origin_ms: i64 = origin.split('"').next().unwrap().parse().unwrap();
        let replayed = replayed(&platform, 4 * 86_400);
        assert_eq!(replayed.hosts.len(), 4);

        let all = fleet.periods(scope, &[]);
        for (host, states) in &replayed.states {
            let of_host: Vec<&Period> = all.iter().filter(|p| p.host == *host).collect();
            assert_eq!(*states, changes(&of_host, origin_ms), "{host}");
            let name = &replayed.hosts[host]["host_name"];
            assert!(of_host.iter().all(|p| p.name == *name));
        }
        assert_eq!(replayed.states.len(), 4);
    }
}

#[test]
fn a_hosts_speed_is_the_memory_that_is_available() {
    let fleet = Fleet::new();
    let (_folder, out) = fleet.exported("simgrid", "all", &[]);
    let (_others, csv) = fleet.exported("availability", "all", &["--as", "csv"]);
    let samples = rows(&csv.join("samples.csv"));
    let first_ms = samples.iter().map(|s| ms(&s[2])).min().unwrap();
    let replayed = replayed(&out.join("platform.xml"), 4 * 86_400);
    let last_of: BTreeMap<&str, i64> = samples.iter().map(|s| (s[0].as_str(), ms(&s[2]))).collect();
    let mut seen = 0;
    for sample in &samples {
        let clock = ms(&sample[2]) - first_ms;
        if ms(&sample[2]) == last_of[sample[0].as_str()] {
            continue; // nothing is known after the last sample
        }
        let shares = &replayed.shares[&sample[0]];
        let next = shares.partition_point(|(time, _)| *time <= clock);
        let physical: f64 = replayed.hosts[&sample[0]]["speed"].parse().unwrap();
        let available: f64 = sample[5].parse().unwrap();
        // If a gap follows immediately after the sample, the share is already 0, and the sample is skipped.
        let (time, share) = shares[next - 1];
        if share == 0.0 && time == clock {
            continue;
        }
        assert!(
            (share * physical - available).abs() <= physical * 1e-6,
            "{sample:?}"
        );
        seen += 1;
    }
    assert!(seen * 10 > samples.len() * 9, "{seen} of {}", samples.len());
    // After the last sample, every share is 0.
    assert!(replayed.shares.values().all(|s| s[s.len() - 1].1 == 0.0));
}
