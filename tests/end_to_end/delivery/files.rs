//! Sealed files of a running collector are truncated and corrupted, as a faulty disk does. They are reported,
//! moved aside and counted. The host, which still has the rows, sends them again.

use super::running::{Collector, Host, Random, Running, wait_for};
use gleaner_tests::program;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `gleaner-collector verify` or `repair`; returns the exit code and the JSON document.
fn upkeep(command: &str, dataset: &Path) -> (Option<i32>, Value) {
    let mut program = Command::new(program("gleaner-collector").unwrap());
    let done = program.args([command, "--json"]).arg(dataset).output();
    let done = done.unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    let found = serde_json::from_slice(&done.stdout);
    (
        done.status.code(),
        found.unwrap_or_else(|_| panic!("{said}")),
    )
}

/// Paths of the sealed files of these tables, from the manifest.
fn sealed(dataset: &Path, tables: &[&str]) -> Vec<PathBuf> {
    let manifest = fs::read(dataset.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let files = manifest["files"].as_array().unwrap();
    let named = files
        .iter()
        .filter(|file| tables.contains(&file["table"].as_str().unwrap()));
    named
        .map(|file| PathBuf::from(file["path"].as_str().unwrap()))
        .collect()
}

#[test]
fn torn_and_flipped_files_are_named_counted_and_sent_again() {
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let host = Host::traced(folder.path(), "host", "3");
    host.lengthen(800);
    let collector = Collector::start(folder.path(), "disk_reserve = \"1MiB\"");
    let keys = |collector: &Collector| format!("collector = \"http://{}\"", collector.local);
    let shipper = Running::start(&mut host.shipping(&keys(&collector)));
    host.is_shipped();
    assert_eq!(shipper.end().0, Some(0));
    let rows = collector.holds(&[&host]);
    let dataset = &collector.dataset;

    // One file is truncated. In another file, one bit at a random position is flipped.
    let torn = sealed(dataset, &["samples"]).remove(0);
    // Several tables, since some may be empty: on a fast machine no process may have been active between two
    // samples.
    let others = [
        "processes",
        "files",
        "activity",
        "missing_values",
        "hosts",
        "events",
    ];
    let flipped = sealed(dataset, &others).remove(0);
    let length = fs::metadata(dataset.join(&torn)).unwrap().len();
    let file = fs::File::options().write(true).open(dataset.join(&torn));
    file.unwrap().set_len(random.below(length)).unwrap();
    let mut content = fs::read(dataset.join(&flipped)).unwrap();
    let at = random.below(content.len() as u64) as usize;
    content[at] ^= 1 << random.below(8);
    fs::write(dataset.join(&flipped), content).unwrap();

    let (code, found) = upkeep("verify", dataset);
    assert_eq!(code, Some(4), "{found}");
    let problems = found["problems"].as_array().unwrap();
    let mut named: Vec<_> = problems
        .iter()
        .map(|p| PathBuf::from(p["path"].as_str().unwrap()))
        .collect();
    named.sort();
    let mut broken = vec![torn, flipped];
    broken.sort();
    assert_eq!(named, broken, "{found}");

    let (code, done) = upkeep("repair", dataset);
    assert_eq!(code, Some(4), "{done}");
    assert_eq!(upkeep("verify", dataset).0, Some(0));
    let is_aside = |path: &PathBuf| dataset.join(".damaged").join(path).exists();
    assert!(broken.iter().all(is_aside), "{done}");
    let lost = done["lost_rows"].as_array().unwrap().iter();
    let lost: u64 = lost.map(|l| l["rows_count"].as_u64().unwrap()).sum();
    let status = collector.status();
    let clocks: u64 = gleaner_dataset::Dataset::open(dataset)
        .unwrap()
        .rows(&gleaner_schemas::rows::table("clocks").unwrap());
    let left = status["dataset_rows_count"].as_u64().unwrap() - clocks;
    assert_eq!(left + lost, rows, "{done}");
    println!("{lost} of {rows} rows were lost");

    // Without the collector's mark of its progress, the host sends everything again.
    collector.running.kill();
    fs::remove_file(folder.path().join("data/hosts.json")).unwrap();
    let collector = Collector::start(folder.path(), "disk_reserve = \"1MiB\"");
    let shipper = Running::start(&mut host.shipping(&keys(&collector)));
    let last = host.last_sequence();
    wait_for("all to be sent again", || collector.mark(&host) == last);
    assert_eq!(shipper.end().0, Some(0));
    assert_eq!(collector.holds(&[&host]), rows);
}
