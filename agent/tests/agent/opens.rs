//! The watch of file opens between samples.

use crate::activity::ChildGuard;
use crate::agent;
use crate::trace::{new_trace, number, wait_for_samples};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Starts an agent and waits until it is ready.
fn start(database: &Path, config: &str) -> ChildGuard {
    let file = database.with_extension("toml");
    std::fs::write(&file, config).unwrap();
    let mut child = agent()
        .arg("--database")
        .arg(database)
        .arg("--config")
        .arg(&file)
        .args(["run", "--sample-interval", "150ms"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stderr = child.stderr.take().unwrap();
    BufReader::new(stderr).read_line(&mut line).unwrap();
    assert!(line.contains("sampling every"), "{line}");
    ChildGuard(child)
}

/// Reads a file with a process that has ended by the next sample.
fn cat(path: &Path) {
    assert!(
        Command::new("cat")
            .arg(path)
            .output()
            .unwrap()
            .status
            .success()
    );
}

fn file_on_disk() -> tempfile::TempPath {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(&file, [7; 8192]).unwrap();
    file.into_temp_path()
}

#[test]
fn a_file_opened_for_a_moment_is_seen_where_the_owner_wants_it() {
    let (_dir, database) = new_trace();
    let file = file_on_disk();
    let mut agent = start(&database, "opens = true\nprivacy = \"plain\"\n");
    wait_for_samples(&database, &mut agent.0, 1);
    let seen = format!(
        "SELECT count(*) FROM files WHERE path = '{}' AND opens_count > 0 AND open_processes_count = 0
         AND mapping_processes_count = 0 AND size_bytes = 8192 AND cached_bytes = 8192",
        file.display()
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    while number(&database, &seen) == 0 {
        assert!(
            Instant::now() < deadline,
            "no sample has {}",
            file.display()
        );
        cat(&file);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_watched_unless_asked_for() {
    let (_dir, database) = new_trace();
    let file = file_on_disk();
    let mut agent = start(&database, "privacy = \"plain\"\n");
    for samples in 1..5 {
        wait_for_samples(&database, &mut agent.0, samples);
        cat(&file);
    }
    let path = format!(
        "SELECT count(*) FROM files WHERE path = '{}'",
        file.display()
    );
    assert_eq!(number(&database, &path), 0);
    let counted = "SELECT count(*) FROM files WHERE opens_count IS NOT NULL";
    assert_eq!(number(&database, counted), 0);
}

/// If the agent examined its own files when other programs open them, it would lose SQLite's locks
/// on them.
#[test]
fn programs_that_open_the_trace_do_not_cost_the_agent_its_locks() {
    let (_dir, database) = new_trace();
    let mut agent = start(&database, "opens = true\n");
    wait_for_samples(&database, &mut agent.0, 1);
    let index = gleaner_agent::state_files::beside(&database, "-shm");
    let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&index).unwrap());
    let (pid, file) = (format!(" {} ", agent.0.id()), format!(":{inode} "));
    for samples in 2..6 {
        cat(&index);
        wait_for_samples(&database, &mut agent.0, samples);
    }
    // The kernel lists all locks piece by piece, and may omit one while others come and go.
    let is_told = |_| {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|l| l.contains(&pid) && l.contains(&file))
    };
    assert!(
        (0..20).any(is_told),
        "the agent lost its locks on {}",
        index.display()
    );
}
