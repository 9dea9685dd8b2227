//! `gleaner curve measure`, `calibrate` and `watch`. Swap is attached to a memory server, so these tests need root.

use super::json;
use crate::gleaner::{complaint, gleaner, told};
use crate::host_swap::host_swap;
use gleaner_harness::{MemoryServer, Running, succeed};
use gleaner_tests::program;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::MutexGuard;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// Swap on a memory server; detached when this value is dropped.
struct ServedSwap {
    name: String,
    folder: TempDir,
    _server: MemoryServer,
    _only: MutexGuard<'static, ()>,
}

impl ServedSwap {
    fn attach() -> Self {
        let only = host_swap();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("pages.sock");
        let swap = Self {
            name: format!("measured-{}", std::process::id()),
            _server: MemoryServer::start("128MiB", socket.to_str().unwrap()),
            folder,
            _only: only,
        };
        let mut attach = swap.clerk();
        attach.args(["attach", "--method", "fuse", "--swap"]);
        succeed(attach.args(["--name", &swap.name, "--socket"]).arg(&socket));
        swap
    }

    fn clerk(&self) -> Command {
        let mut clerk = Command::new(program("gleaner-clerk").unwrap());
        clerk.arg("--runtime").arg(self.folder.path().join("run"));
        clerk
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

impl Drop for ServedSwap {
    fn drop(&mut self) {
        let mut detach = self.clerk();
        detach.args(["detach", &self.name, "--force", "--timeout", "5s"]);
        let _ = detach.stderr(Stdio::null()).status();
    }
}

/// Asserts that the command fails with this exit code, and that its message contains the words.
#[track_caller]
fn refused(args: &[&str], code: i32, words: &str) {
    let done = gleaner(args);
    let said = complaint(&done);
    assert_eq!(done.status.code(), Some(code), "{args:?}: {said}");
    assert!(said.contains(words), "{args:?}: {said}");
}

/// Asserts that a measurement's judgements follow from its figures.
#[track_caller]
fn judged(found: &Value) {
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{found}"));
    let faults = number(&found["major_faults_count"]);
    let band = &found["predicted_faults"];
    let (low, high) = (number(&band["low_count"]), number(&band["high_count"]));
    assert!(0.0 < low && low < high, "{found}");
    let are_inside = low <= faults && faults <= high;
    assert_eq!(found["are_faults_inside"], are_inside, "{found}");
    let slowdown = number(&found["slowdown"]);
    let predicted = &found["prediction"];
    assert_eq!(predicted["evidence"], "measured");
    let is_inside = number(&predicted["low"]) <= slowdown && slowdown <= number(&predicted["high"]);
    assert_eq!(found["is_slowdown_inside"], is_inside, "{found}");
}

#[test]
fn faults_are_measured_beside_their_prediction_by_this_hosts_costs() {
    let swap = ServedSwap::attach();
    let (reuse, curve, mine) = (
        swap.path("reuse"),
        swap.path("curve"),
        swap.path("mine.toml"),
    );
    let source = gleaner_tests::repository().join("tests/end_to_end/curve/reuse.c");
    succeed(
        Command::new("gcc")
            .args(["-O1", "-static", "-o", &reuse])
            .arg(source),
    );
    told(&[
        "curve",
        "record",
        "-o",
        &curve,
        "--native-s",
        "0.05",
        "--",
        &reuse,
    ]);

    let calibrate = [
        "curve",
        "calibrate",
        "--size",
        "32MiB",
        "--seconds",
        "2",
        "--by",
    ];
    let said = told(&[&calibrate[..], &["swap", "-o", &mine]].concat());
    assert!(said.contains("software") && said.contains(&mine), "{said}");
    let technology: toml::Table = fs::read_to_string(&mine).unwrap().parse().unwrap();
    let mean_us = |key: &str| technology[key][0].as_float().unwrap();
    // No page comes from another process within a microsecond.
    assert!(
        mean_us("software_us") + mean_us("latency_us") > 1.0,
        "{technology}"
    );
    refused(
        &[&calibrate[..], &["zram"]].concat(),
        1,
        "not to zram alone",
    );
    let predicted = told(&[
        "curve",
        "predict",
        &curve,
        "--local",
        "50%",
        "--technology",
        &mine,
    ]);
    assert!(
        predicted.contains("measured: gleaner curve calibrate --by swap on 20"),
        "{predicted}"
    );

    let measure = [
        "curve",
        "measure",
        "--curve",
        &curve,
        "--technology",
        &mine,
        "--local",
    ];
    let document = json(&told(
        &[&measure[..], &["12MiB,16MiB", "--json", "--", &reuse]].concat(),
    ));
    let schema = json(&told(&["schema", "--as", "measurements"]));
    let keys = |of: &Value| -> Vec<String> { of.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(&schema["properties"]), keys(&document));
    assert_eq!(document["program"], "reuse");
    let found = document["measurements"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    for (found, local_bytes) in found.iter().zip([12 * MIB, 16 * MIB]) {
        assert_eq!(found["local_bytes"], local_bytes);
        assert!(found["major_faults_count"].as_u64() > Some(500), "{found}");
        assert!(found["page_ins_count"].as_u64() > Some(500), "{found}");
        assert!(found["slowdown"].as_f64() > Some(1.0), "{found}");
        judged(found);
    }
    let text = told(&[&measure[..], &["50%", "--runs", "2", "--", &reuse]].concat());
    assert!(
        text.contains("pages in") && text.contains("MiB local"),
        "{text}"
    );
    assert!(
        text.contains("the predicted ") && text.contains("median of 2 runs."),
        "{text}"
    );
    the_program_itself_measures_the_cost_of_its_faults(&swap, &reuse, &curve);
    let failing = [&measure[..], &["12MiB", "--", "false"]].concat();
    refused(
        &failing,
        1,
        "without a limit, the program ended with exit status: 1",
    );
}

#[track_caller]
fn the_program_itself_measures_the_cost_of_its_faults(swap: &ServedSwap, reuse: &str, curve: &str) {
    let own = swap.path("own.toml");
    let calibrate = |local, runs, program| {
        let options = ["--curve", curve, "--local", local, "--runs", runs];
        let begin = ["curve", "calibrate", "--by", "swap", "-o", &own];
        [&begin[..], &options, &["--", program]].concat()
    };
    let said = told(&calibrate("8MiB", "2", reuse));
    assert!(
        said.contains(" faults of reuse with 8.0 MiB local, in 2 runs: ") && said.contains(&own),
        "{said}"
    );
    let technology: toml::Table = fs::read_to_string(&own).unwrap().parse().unwrap();
    let source = technology["source"].as_str().unwrap();
    assert!(
        source.contains(": reuse with 8.0 MiB of ") && source.ends_with(" faults in 2 runs"),
        "{source}"
    );
    let mean_us = |key: &str| technology[key][0].as_float().unwrap();
    assert!(
        mean_us("software_us") + mean_us("latency_us") > 1.0,
        "{technology}"
    );
    told(&[
        "curve",
        "predict",
        curve,
        "--local",
        "50%",
        "--technology",
        &own,
    ]);
    refused(
        &calibrate("64MiB", "1", reuse),
        1,
        "fewer than 1,000: choose a smaller --local",
    );
    refused(
        &calibrate("8MiB", "1", "false"),
        1,
        "without a limit, the program ended with exit status: 1",
    );
}

#[test]
fn a_files_faults_need_neither_swap_nor_root_and_memory_is_no_disk() {
    let calibrate = [
        "curve",
        "calibrate",
        "--by",
        "file",
        "--size",
        "32MiB",
        "--seconds",
        "5", // a page leaves the cache slowly while other programs use the CPUs
    ];
    let on_disk = ["--folder", env!("CARGO_TARGET_TMPDIR")];
    let text = told(&[&calibrate[..], &on_disk].concat());
    let technology: toml::Table = text.parse().unwrap();
    assert_eq!(technology["evidence"].as_str(), Some("measured"));
    let source = technology["source"].as_str().unwrap();
    assert!(
        source.contains("--by file") && !source.contains("read-ahead"),
        "{source}"
    );
    let in_memory = ["--folder", "/dev/shm"];
    refused(
        &[&calibrate[..], &in_memory].concat(),
        1,
        "may be in memory (tmpfs)",
    );
}

#[test]
fn a_watched_process_shows_the_part_that_it_uses() {
    let uses = "
import mmap
memory = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for page in range(0, 64 << 20, 4096):
    memory[page] = 1
print('filled', flush=True)
while True:
    for page in range(0, 16 << 20, 4096):
        memory[page] = 2
";
    let mut python = Command::new("python3");
    let watched = Running::start(python.args(["-c", uses]).stdout(Stdio::piped()));
    assert_eq!(watched.printed(), "filled");
    let pid = watched.id().to_string();
    let watch = |options: &[&str]| {
        let mut watch = Command::new(program("gleaner").unwrap());
        watch.args(["curve", "watch", &pid]).args(options);
        Running::start(watch.stdout(Stdio::piped()))
    };
    let lines = watch(&["--json"]);
    let window = (0..30).map(|_| json(&lines.printed())).find(|window| {
        // The window of a machine that is very busy may be too short for all of the part.
        let used = window["referenced_bytes"].as_u64().unwrap();
        (16 * MIB..48 * MIB).contains(&used)
    });
    let window = window.unwrap();
    assert!(
        window["resident_bytes"].as_u64() >= Some(64 * MIB),
        "{window}"
    );
    assert!(window["window_s"].as_f64() >= Some(1.0), "{window}");

    let table = watch(&[]);
    assert!(table.printed().contains("used in 1 s"));
    assert!(table.printed().contains("MiB"));
    table.signal(Signal::INT);
    let mut line = table.printed();
    while !line.starts_with("Working set in 1 s: median ") {
        line = table.printed();
    }
    assert_eq!(table.ended().0, Some(0));
    // Only now, since the other one has to end with the process.
    watched.kill();
    drop(watched);
    assert_eq!(lines.ended().0, Some(0));
}

#[test]
fn impossible_measurements_are_refused_with_their_remedy() {
    let missing = Path::new("/missing").display().to_string();
    refused(
        &["curve", "measure", "--local", "50%", "--", "true"],
        1,
        "give the program's --curve",
    );
    refused(
        &["curve", "measure", "--local", "1MiB", "--", "true"],
        1,
        "at least 4.0 MiB",
    );
    refused(&["curve", "measure", "--local", "9MiB"], 2, "PROGRAM");
    let technology = [
        "curve",
        "measure",
        "--local",
        "9MiB",
        "--technology",
        "now",
        "--",
        "true",
    ];
    refused(&technology, 2, "--curve");
    let curve = [
        "curve", "measure", "--local", "9MiB", "--curve", &missing, "--", "true",
    ];
    refused(&curve, 1, "cannot open /missing");
    refused(&["curve", "calibrate"], 2, "--by");
    let with_program =
        |options: &[&'static str]| [&["curve", "calibrate"][..], options, &["--", "true"]].concat();
    refused(
        &with_program(&["--by", "file"]),
        1,
        "leave the program out, or choose --by swap or --by zram",
    );
    refused(
        &with_program(&["--by", "swap"]),
        1,
        "--local is 50% of the footprint: give the program's --curve",
    );
    refused(
        &with_program(&["--by", "swap", "--local", "1MiB"]),
        1,
        "at least 4.0 MiB",
    );
    refused(
        &with_program(&["--by", "swap", "--size", "64MiB"]),
        2,
        "--size",
    );
    for option in [["--local", "9MiB"], ["--runs", "2"], ["--curve", &missing]] {
        let alone = [&["curve", "calibrate", "--by", "swap"][..], &option].concat();
        refused(&alone, 2, "PROGRAM");
    }
    refused(
        &["curve", "calibrate", "--by", "file", "--size", "1MiB"],
        1,
        "--size is below 32.0 MiB",
    );
    let folder = ["curve", "calibrate", "--by", "file", "--folder", &missing];
    refused(&folder, 1, "cannot write a file in /missing");
    refused(
        &["curve", "watch", "2147483647"],
        1,
        "there is no process 2147483647",
    );
    refused(&["curve", "watch", "0"], 2, "0");
}
