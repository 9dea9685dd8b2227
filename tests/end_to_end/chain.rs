//! The main path of data on this host: samples in SQLite, Arrow dataset, analysis, report.

use gleaner_dataset::Dataset;
use gleaner_harness::wait_for;
use gleaner_schemas::findings::{Category, Findings};
use gleaner_schemas::rows::{TABLES, table};
use gleaner_tests::program;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn demo(folder: &Path, seconds: u64) -> Command {
    let mut command = Command::new(program("gleaner").unwrap());
    command
        .args(["demo", "--seconds", &seconds.to_string(), "--output"])
        .arg(folder)
        .stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn findings(folder: &Path) -> Findings {
    serde_json::from_slice(&fs::read(folder.join("findings.json")).unwrap()).unwrap()
}

#[test]
fn the_whole_chain() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("demo");
    let said = succeeded(&run(&mut demo(&folder, 6)));

    for name in [
        "trace.db",
        "dataset/manifest.json",
        "findings.json",
        "report.html",
        "synthetic-fleet/manifest.json",
        "synthetic-fleet.html",
    ] {
        assert!(folder.join(name).exists(), "no {name}");
    }
    assert!(!folder.join("load.tmp").exists(), "the load's file stayed");
    for row in [
        "total",
        "kernel",
        "process",
        "file cache",
        "reserve",
        "available",
        "harvestable",
        "lease quota now",
    ] {
        assert!(said.contains(row), "no {row} in\n{said}");
    }
    assert!(said.contains("report.html"), "{said}");
    // The demo also writes the report of a fleet. Its output and the page say that the fleet is synthetic.
    let fleet = fs::read_to_string(folder.join("synthetic-fleet.html")).unwrap();
    assert!(
        said.contains("A synthetic fleet's report (invented hosts): "),
        "{said}"
    );
    assert!(fleet.contains("A synthetic fleet: 12 invented hosts, nothing measured"));

    let found = findings(&folder);
    let host = &found.hosts[0];
    assert!(
        host.samples_count >= 4,
        "{} samples in 6 s",
        host.samples_count
    );
    assert!(found.gaps.is_empty(), "{:?}", found.gaps);
    categories_add_up(&folder.join("dataset"), host.samples_count);
    residual_is_bounded(&found);
    the_load_was_seen(&found);

    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains(&host.host_name));
    assert!(
        !page.contains("src=\"http") && !page.contains("href=\"http://"),
        "the page wants a network"
    );

    // If the trace is exported again, nothing is added to the dataset.
    let before = fs::read(folder.join("dataset/manifest.json")).unwrap();
    succeeded(&run(Command::new(program("gleaner-agent").unwrap())
        .args(["export", "--database"])
        .arg(folder.join("trace.db"))
        .arg(folder.join("dataset"))));
    assert_eq!(
        before,
        fs::read(folder.join("dataset/manifest.json")).unwrap()
    );

    // A second demo in the same folder replaces the first.
    succeeded(&run(&mut demo(&folder, 3)));
    assert!(findings(&folder).hosts[0].from_time_ms > host.to_time_ms);
}

/// Asserts that in every sample the categories and the category correction sum exactly to physical memory.
fn categories_add_up(dataset: &Path, samples: i64) {
    let dataset = Dataset::open(dataset).unwrap();
    let host = dataset.hosts().unwrap()[0].clone();
    let mut columns: Vec<&str> = Category::ALL.iter().map(|c| c.column()).collect();
    columns.extend(["category_correction_bytes", "physical_bytes"]);
    let batch = dataset
        .read_host(&table("samples").unwrap(), &host, &columns)
        .unwrap();
    assert_eq!(batch.num_rows() as i64, samples);
    let figures = gleaner_tests::integers(&batch);
    for row in 0..batch.num_rows() {
        let sum: i64 = figures[..figures.len() - 1]
            .iter()
            .map(|c| c[row].unwrap_or(0))
            .sum();
        assert_eq!(Some(sum), figures[figures.len() - 1][row], "sample {row}");
    }
    for table in &TABLES[1..4] {
        let rows = dataset
            .read_host(table, &host, &["sequence"])
            .unwrap()
            .num_rows();
        assert!(rows > 0, "nothing in {}", table.name);
    }
}

/// Asserts that the two ways to count available memory agree. Each misses something: processes that start and
/// end while they are read, forked pages counted twice, per-CPU counters. While the machine builds and tests,
/// the difference stays below 3 % of physical memory. A systematic error, such as a forgotten category, would
/// be far larger.
fn residual_is_bounded(found: &Findings) {
    for residual in &found.residuals {
        assert!(residual.max_abs_share < 0.03, "{residual:?}");
    }
    assert!(!found.residuals.is_empty());
}

/// Asserts that the analysis found the memory and the file that the demo's own load uses.
fn the_load_was_seen(found: &Findings) {
    let load = found
        .top_processes
        .iter()
        .find(|p| p.name == "gleaner")
        .expect("the load is no process");
    assert!(load.max_bytes > 64 << 20, "{load:?}");
    let file = found
        .top_files
        .iter()
        .any(|f| f.max_cached_bytes == 128 << 20);
    assert!(
        file,
        "the load's file of 128 MiB is not among {:?}",
        found.top_files
    );
}

/// Number of samples written so far, read with `gleaner-agent status` while the demo runs.
fn samples(folder: &Path) -> u64 {
    let output = Command::new(program("gleaner-agent").unwrap())
        .args(["status", "--json", "--database"])
        .arg(folder.join("trace.db"))
        .output()
        .unwrap();
    serde_json::from_slice::<serde_json::Value>(&output.stdout)
        .ok()
        .and_then(|v| v["samples_count"].as_u64())
        .unwrap_or(0)
}

#[test]
fn ctrl_c_ends_with_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let child: Child = demo(folder.path(), 600)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("two samples", || samples(folder.path()) >= 2);
    // Ctrl-C on a terminal sends the signal to the command and to all processes that it started.
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = succeeded(&output);
    assert!(said.contains("available"), "{said}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("reporting on what was traced"));
    assert!(folder.path().join("report.html").exists());
    assert!(findings(folder.path()).hosts[0].samples_count >= 2);
}

#[test]
fn a_demo_leaves_foreign_folders_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("dataset")).unwrap();
    fs::write(folder.path().join("dataset/thesis.txt"), "years of work").unwrap();
    let output = run(&mut demo(folder.path(), 3));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("was not made by an earlier demo"));
    assert!(folder.path().join("dataset/thesis.txt").exists());
}
