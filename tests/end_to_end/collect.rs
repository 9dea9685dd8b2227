//! `gleaner collect --local`: one machine, one process, without configuration.

use gleaner_tests::program;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn collect(folder: &Path) -> Command {
    let mut command = Command::new(program("gleaner").unwrap());
    command
        .args([
            "collect",
            "--local",
            "--sample-interval",
            "200ms",
            "--output",
        ])
        .arg(folder);
    command
}

fn samples_count(folder: &Path) -> u64 {
    let dataset = gleaner_dataset::Dataset::open(folder.join("dataset")).unwrap();
    assert!(dataset.verify().problems.is_empty());
    dataset.rows(&gleaner_schemas::rows::table("samples").unwrap())
}

#[test]
fn one_command_fills_a_dataset_and_goes_on_with_it() {
    let folder = tempfile::tempdir().unwrap();
    for runs in 1..=2 {
        let status = collect(folder.path())
            .args(["--samples", "6", "--status-listen", "none"])
            .status()
            .unwrap();
        assert!(status.success());
        assert_eq!(samples_count(folder.path()), runs * 6);
    }
}

#[test]
fn a_signal_ends_it_and_what_was_traced_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = collect(folder.path())
        .args(["--status-listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = |lines: &mut dyn Iterator<Item = std::io::Result<String>>, words: &str| {
        let found = lines
            .map_while(Result::ok)
            .find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("never said {words}"))
    };
    let status_at = said(&mut lines, "status at http://");
    said(&mut lines, "sampling every");
    let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
    assert_eq!(name.trim(), "gleaner-collect"); // an agent recognises it by this name
    // Without TLS, the collector answers only requests for the status page.
    let address = status_at.rsplit('/').next().unwrap().to_owned();
    let page = get(&address, "/");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let tables = get(&address, "/v1/tables");
    assert!(tables.starts_with("HTTP/1.1 403"), "{tables}");
    let begin = Instant::now();
    while traced_count(folder.path()) < 3 {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "nothing is traced"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    let traced = traced_count(folder.path());
    assert_eq!(samples_count(folder.path()), traced);
}

fn traced_count(folder: &Path) -> u64 {
    let trace = rusqlite::Connection::open(folder.join("trace.db")).unwrap();
    let query = "SELECT count(*) FROM samples";
    let count = trace.query_row(query, [], |row| row.get::<_, i64>(0));
    u64::try_from(count.unwrap()).unwrap()
}

fn get(address: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn without_local_it_says_what_to_run_instead() {
    let output = Command::new(program("gleaner").unwrap())
        .arg("collect")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("gleaner-collector run"));
}
