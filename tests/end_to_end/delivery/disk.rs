//! A collector whose disk is full: the shipper pauses as long as the collector requests, and finally all rows
//! arrive.

use super::running::{Collector, Host, Running, wait_for};
use gleaner_harness::fill;
use gleaner_tests::program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Shortest pause that the test accepts: the time in the collector's `Retry-After`, less the time before the
/// test observes the pause.
const ASKED: Duration = Duration::from_secs(55);

/// Starts a collector with its data on a small disk of its own. Also returns the path by which the test
/// reaches this disk.
fn start_on_small_disk(folder: &Path) -> (Collector, PathBuf) {
    let data = folder.join("data");
    fs::create_dir_all(&data).unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=16m none {} && exec \"$@\"",
        data.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &mount, "sh"]);
    command.arg(program("gleaner-collector").unwrap());
    let mut collector = Collector::start_as(folder, "disk_reserve = \"4MiB\"", command, None);
    let id = collector.running.id();
    let data = PathBuf::from(format!("/proc/{id}/root{}", data.display()));
    collector.dataset = data.join("dataset");
    (collector, data)
}

#[test]
fn a_full_disk_is_waited_out_and_costs_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, data) = start_on_small_disk(folder.path());
    let host = Host::traced(folder.path(), "host", "2");
    let keys = format!("collector = \"http://{}\"", collector.local);
    let shipper = Running::start(&mut host.shipping(&keys));
    host.is_shipped();
    let before = collector.holds(&[&host]);

    let ballast = fill(&data, 2 << 20);
    host.lengthen(300);
    let acknowledged = host.acknowledged();
    let refusal = collector.running.hear("refused");
    let refused = Instant::now();
    assert!(refusal.contains("cannot write"), "{refusal}");
    fs::remove_file(ballast).unwrap();
    assert_eq!(host.acknowledged(), acknowledged);
    assert_eq!(collector.mark(&host), acknowledged);
    wait_for("it to come again", || host.acknowledged() > acknowledged);
    assert!(refused.elapsed() > ASKED, "{:?}", refused.elapsed());
    host.is_shipped();
    assert_eq!(shipper.end().0, Some(0));
    assert!(collector.holds(&[&host]) > before);
}
