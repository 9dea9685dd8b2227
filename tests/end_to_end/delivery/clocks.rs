//! Delivery from a host whose clock differs by a day from the collector's. In the test the collector's clock
//! is wrong, since libfaketime changes only that one.

use super::running::{Collector, Host, Running};
use gleaner_dataset::Dataset;
use gleaner_schemas::rows::table;
use gleaner_tests::{integers, program};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const DAY_MS: i64 = 86_400_000;

/// Path of libfaketime; Debian's package `faketime` installs it in the architecture's folder.
fn libfaketime() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap();
    let mut libraries =
        folders.map(|folder| folder.unwrap().path().join("faketime/libfaketime.so.1"));
    libraries
        .find(|library| library.exists())
        .expect("this test needs libfaketime (Debian: apt install faketime)")
}

/// Checks delivery with a collector's clock that is wrong by `offset`, like `+1d`.
fn is_delivered(offset: &str, skew_days: i64) {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::traced(folder.path(), "host", "3");
    host.lengthen(2000);
    let mut command = Command::new(program("gleaner-collector").unwrap());
    command
        .env("LD_PRELOAD", libfaketime())
        .env("FAKETIME", offset);
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let collector = Collector::start_as(folder.path(), "disk_reserve = \"1MiB\"", command, None);
    let keys = format!("collector = \"http://{}\"", collector.local);
    let shipper = Running::start(&mut host.shipping(&keys));
    host.is_shipped();
    host.trace("2");
    host.is_shipped();
    assert_eq!(shipper.end().0, Some(0));
    collector.holds(&[&host]);

    // The difference between the clocks is measured, and recorded under the collector's date.
    let near = |skew_ms: i64| (skew_ms - skew_days * DAY_MS).abs() < 60_000;
    let status = &collector.status()["hosts"][0];
    assert!(near(status["skew_ms"].as_i64().unwrap()), "{status}");
    let dataset = Dataset::open(&collector.dataset).unwrap();
    let id = dataset.hosts().unwrap().remove(0);
    let clocks = dataset.read_host(&table("clocks").unwrap(), &id, &["skew_ms", "sequence"]);
    let clocks = integers(&clocks.unwrap());
    assert!(!clocks[0].is_empty());
    assert!(
        clocks[0].iter().all(|skew| skew.is_some_and(near)),
        "{clocks:?}"
    );

    // The rows are stored under the dates of the host's clock, in the order of the host's samples.
    let samples = table("samples").unwrap();
    let dates: BTreeSet<String> = dataset.dates(&samples).into_iter().collect();
    let given: String =
        host.query("SELECT group_concat(DISTINCT date(time_ms / 1000, 'unixepoch')) FROM samples");
    assert_eq!(dates, given.split(',').map(str::to_owned).collect());
    let by_time = dataset.read_host(&samples, &id, &["sequence"]).unwrap();
    let by_time: Vec<i64> = integers(&by_time).remove(0).into_iter().flatten().collect();
    let given: String = host.query(
        "SELECT group_concat(sequence) FROM (SELECT sequence FROM samples ORDER BY time_ms, sequence)",
    );
    let given: Vec<i64> = given
        .split(',')
        .map(|number| number.parse().unwrap())
        .collect();
    assert_eq!(by_time, given);
}

#[test]
fn a_host_whose_clock_is_a_day_behind_keeps_its_dates_and_its_order() {
    is_delivered("+1d", -1);
}

#[test]
fn a_host_whose_clock_is_a_day_ahead_keeps_its_dates_and_its_order() {
    is_delivered("-1d", 1);
}
