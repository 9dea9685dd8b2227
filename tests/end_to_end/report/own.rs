//! `gleaner report` without a dataset makes a report of this host's own trace.

use super::{gleaner, made, said, text};
use gleaner_tests::program;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes the agent record this number of samples into a trace.
fn record(trace: &Path, samples: &str) {
    let mut agent = Command::new(program("gleaner-agent").unwrap());
    agent.arg("--database").arg(trace);
    agent.args([
        "--socket",
        "none",
        "run",
        "--sample-interval",
        "200ms",
        "--samples",
        samples,
    ]);
    made(agent.stdin(Stdio::null()).output().unwrap());
}

fn report(trace: &Path, page: &Path) -> Command {
    let mut command = gleaner();
    command
        .args(["report", "--bootstrap", "20", "-o"])
        .arg(page);
    command.env("GLEANER_AGENT_DATABASE", trace);
    command
}

#[test]
fn of_this_host() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, page) = (
        folder.path().join("own.db"),
        folder.path().join("page.html"),
    );
    record(&trace, "3");
    let kept = folder.path().join("tmp");
    std::fs::create_dir(&kept).unwrap();
    let output = made(report(&trace, &page).env("TMPDIR", &kept).output().unwrap());
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told, format!("Report: {}\n", page.display()));
    let host = rustix::system::uname();
    assert!(text(&page).contains(&format!("Memory of {}", host.nodename().to_string_lossy())));
    // The report's temporary export was removed when the command ended.
    assert_eq!(super::names(&kept), Vec::<String>::new());
}

#[test]
fn a_host_without_enough_of_a_trace_is_told_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, page) = (
        folder.path().join("own.db"),
        folder.path().join("page.html"),
    );
    let refused = |wanted: &[&str]| {
        let output = report(&trace, &page).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let error = said(&output);
        for wanted in wanted.iter().chain([&trace.to_str().unwrap()]) {
            assert!(error.contains(wanted), "no {wanted} in {error}");
        }
        assert!(!page.exists());
    };
    refused(&[
        "this host has no trace at",
        "install gleaner-agent",
        "gleaner report DATASET",
    ]);
    record(&trace, "1");
    refused(&["is too short: 1 of 2 samples so far", "each 1m30s"]);
}
