//! Tests a full disk: senders have to try again, no acknowledged record is lost, and the collector recovers
//! by itself.

use crate::made::{body, id, sequences};
use crate::running::{Collector, program, wait_for};
use gleaner_harness::fill;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Starts a collector whose data are on a small disk, which is mounted in a mount namespace of its own.
fn start_on_small_disk(folder: &Path, reserve: &str) -> (Collector, PathBuf) {
    let config = format!(
        "local_listen = \"127.0.0.1:0\"\nlocal_access = \"all\"\nseal_after = \"1h\"\ndisk_reserve = \"{reserve}\"\n"
    );
    let data = folder.join("data");
    fs::create_dir_all(&data).unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=4m none {} && exec \"$@\"",
        data.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &mount, "sh", program()]);
    let collector = Collector::start_as(folder, &config, &mut command);
    let seen_from_here = PathBuf::from(format!("/proc/{}/root{}", collector.id(), data.display()));
    (collector, seen_from_here)
}

fn goes_on(reserve: &str, left_bytes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (collector, data) = start_on_small_disk(folder.path(), reserve);
    let (host, database) = (id(1), id(2));
    assert_eq!(collector.send(&body(&host, &database, 1..=50)).0, 200);
    let ballast = fill(&data, left_bytes);
    let (status, answer) = collector.send(&body(&host, &database, 51..=3000));
    assert_eq!(status, 503, "{answer}");
    assert_eq!(answer["retry"], true, "{answer}");
    assert!(
        answer["error"].as_str().unwrap().contains("cannot write"),
        "{answer}"
    );
    assert_eq!(collector.mark(&host, &database), Some(50));
    collector.hear("refused");
    fs::remove_file(ballast).unwrap();
    wait_for("the disk to be written again", || {
        collector.send(&body(&host, &database, 51..=60)).0 == 200
    });
    collector.seal();
    let expected: Vec<i64> = (1..=60).collect();
    assert_eq!(sequences(&data.join("dataset"), &host), expected);
}

#[test]
fn near_its_end_the_disk_is_kept_for_sealing() {
    goes_on("1MiB", 1 << 20);
}

#[test]
fn a_disk_that_fills_in_the_middle_of_a_batch_leaves_no_half_of_it() {
    goes_on("0MiB", 8192);
}

#[test]
fn a_seal_that_finds_no_room_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, data) = start_on_small_disk(folder.path(), "0MiB");
    let (host, database) = (id(1), id(2));
    assert_eq!(collector.send(&body(&host, &database, 1..=500)).0, 200);
    let ballast = fill(&data, 4096);
    let url = format!("{}/v1/seal", collector.url);
    let (status, answer) = crate::running::try_post(&crate::running::agent(), &url, b"").unwrap();
    assert_eq!(status, 500, "{answer}");
    collector.hear("cannot seal");
    let failure = &collector.get("/v1/status").1["seal"]["failure"];
    assert!(
        failure.as_str().unwrap().contains("No space left"),
        "{failure}"
    );
    fs::remove_file(ballast).unwrap();
    collector.seal();
    collector.hear("sealing again");
    let expected: Vec<i64> = (1..=500).collect();
    assert_eq!(sequences(&data.join("dataset"), &host), expected);
}
