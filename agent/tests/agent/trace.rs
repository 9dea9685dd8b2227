//! Traces of this host: contents of the database, after any kind of end of the agent.

use crate::{agent, fail, succeed};
use rusqlite::Connection;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Makes a folder for a trace; returns it with the trace's path.
pub(crate) fn new_trace() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("trace.db");
    (dir, database)
}

pub(crate) fn on(database: &Path) -> Command {
    let mut command = agent();
    command.arg("--database").arg(database);
    command
}

/// Starts an agent with a short interval and waits until it is ready.
fn start(database: &Path) -> Child {
    let mut child = on(database)
        .args(["run", "--sample-interval", "150ms"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("sampling every 150ms into"), "{line}");
    child
}

/// Waits until the agent has written `count` samples.
pub(crate) fn wait_for_samples(database: &Path, child: &mut Child, count: i64) {
    while number(database, "SELECT count(*) FROM samples") < count {
        assert!(child.try_wait().unwrap().is_none(), "the agent ended early");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn query<T: rusqlite::types::FromSql>(database: &Path, sql: &str) -> T {
    let connection = Connection::open(database).unwrap();
    connection
        .busy_timeout(std::time::Duration::from_secs(5))
        .unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

pub(crate) fn number(database: &Path, sql: &str) -> i64 {
    query(database, sql)
}

pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Number of commits in a write-ahead log (sqlite.org/fileformat2.html#walformat): frames with the log's
/// present salt whose header gives the size of the database after them.
fn commits(log: &Path) -> usize {
    let bytes = std::fs::read(log).unwrap();
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let (page_bytes, salt) = (word(8) as usize, word(16));
    let frames = (32..bytes.len().saturating_sub(23)).step_by(24 + page_bytes);
    frames
        .filter(|&at| word(at + 8) == salt && word(at + 4) != 0)
        .count()
}

#[test]
fn three_samples_in_strict_tables() {
    let (_dir, database) = new_trace();
    succeed(on(&database).args(["run", "--sample-interval", "1s", "--samples", "3"]));
    assert_eq!(query::<String>(&database, "PRAGMA integrity_check"), "ok");
    assert_eq!(query::<String>(&database, "PRAGMA journal_mode"), "wal");
    assert_eq!(
        number(&database, "SELECT count(*) FROM pragma_foreign_key_check"),
        0
    );
    assert_eq!(number(&database, "PRAGMA application_id"), 0x476c_6e72);
    let version = i64::from(gleaner_schemas::SCHEMA_VERSION);
    assert_eq!(number(&database, "PRAGMA user_version"), version);
    let strict = "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND strict = 1";
    assert_eq!(number(&database, strict), 11); // the tables and meta
    assert_eq!(number(&database, "SELECT count(*) FROM samples"), 3);
    for table in ["activity", "hosts"] {
        assert!(
            number(&database, &format!("SELECT count(*) FROM {table}")) > 0,
            "{table}"
        );
    }
    // Facts that every Linux states about its machine; a virtual machine may have no model.
    let told = "SELECT count(*) FROM hosts WHERE os_name LIKE 'Linux%' AND cores_count BETWEEN 1 AND cpus_count";
    assert_eq!(
        number(&database, told),
        number(&database, "SELECT count(*) FROM hosts")
    );
    // A sample has an interval if it follows another; otherwise, as on a host too busy for the interval, it
    // follows a gap.
    let anew = "SELECT count(*) FROM samples WHERE is_complete_state";
    assert_eq!(
        number(&database, anew),
        1 + number(&database, "SELECT count(*) FROM gaps")
    );
    let consistent = "SELECT min((interval_ms IS NULL) = is_complete_state) FROM samples";
    assert_eq!(number(&database, consistent), 1);

    let status: serde_json::Value =
        serde_json::from_str(&succeed(on(&database).args(["status", "--json"]))).unwrap();
    assert_eq!(status["is_healthy"], true);
    assert_eq!(status["samples_count"], 3);
    rusqlite::Connection::open(&database)
        .unwrap()
        .execute("UPDATE samples SET time_ms = time_ms - 3600000", [])
        .unwrap();
    assert_eq!(fail(on(&database).arg("status")).0, 3);
}

#[test]
fn a_killed_agent_leaves_whole_transactions_and_the_next_goes_on_after_a_gap() {
    let (_dir, database) = new_trace();
    let mut child = start(&database);
    wait_for_samples(&database, &mut child, 2);
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    let commits = commits(&gleaner_agent::state_files::beside(&database, "-wal"));
    assert_eq!(query::<String>(&database, "PRAGMA integrity_check"), "ok");
    let samples = number(&database, "SELECT count(*) FROM samples");
    assert!(samples >= 2, "two were seen before the kill: {samples}");
    // Beside the samples, one commit is the event of the start. The commit that creates the tables is in the
    // file itself, unless a reader was active.
    assert!(
        [1, 2].contains(&(commits as i64 - samples)),
        "{commits} commits, {samples} samples"
    );
    let last = number(&database, "SELECT max(sequence) FROM samples");

    succeed(on(&database).args(["run", "--sample-interval", "150ms", "--samples", "1"]));
    assert_eq!(
        number(
            &database,
            "SELECT sequence FROM gaps WHERE cause = 'stopped'"
        ),
        last + 2 // after the start
    );
    let spans = "SELECT from_time_ms = (SELECT time_ms FROM samples ORDER BY sequence DESC LIMIT 1 OFFSET 1) \
         AND to_time_ms = (SELECT max(time_ms) FROM samples) FROM gaps WHERE cause = 'stopped'";
    assert_eq!(number(&database, spans), 1);
    // On a busy host, the sample may have one event: that it took long.
    let events = format!(
        "SELECT count(*) FROM events WHERE sequence BETWEEN {last} + 4 AND \
         (SELECT max(sequence) FROM samples)"
    );
    assert_eq!(
        number(&database, "SELECT max(sequence) FROM samples"),
        last + 4 + number(&database, &events)
    ); // start, gap, host, sample
    let after = "SELECT interval_ms IS NULL AND is_complete_state FROM samples ORDER BY sequence DESC LIMIT 1";
    assert_eq!(number(&database, after), 1);
}

#[test]
fn a_signal_ends_the_agent_cleanly_and_a_second_agent_is_refused() {
    for end in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let (_dir, database) = new_trace();
        let mut child = start(&database);
        wait_for_samples(&database, &mut child, 1);
        let (code, message) = fail(on(&database).args(["run", "--samples", "1"]));
        assert_eq!(code, 1);
        assert!(
            message.contains("another gleaner-agent is writing"),
            "{message}"
        );
        signal(&child, end);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(
            !gleaner_agent::state_files::beside(&database, "-wal").exists(),
            "closed cleanly"
        );
    }
}

#[test]
fn databases_that_are_not_ours_to_write_are_refused() {
    let (_dir, database) = new_trace();
    succeed(on(&database).args(["run", "--sample-interval", "100ms", "--samples", "1"]));
    let cases = [
        (
            "PRAGMA user_version = 1000",
            "newer agent (schema version 1000, this one knows 7)",
        ),
        (
            "PRAGMA user_version = 7; UPDATE meta SET value = 'x' WHERE key = 'host_id'",
            "another host",
        ),
        ("PRAGMA application_id = 7", "another program"),
    ];
    for (change, expected) in cases {
        Connection::open(&database)
            .unwrap()
            .execute_batch(change)
            .unwrap();
        let (code, message) = fail(on(&database).args(["run", "--samples", "1"]));
        assert_eq!(code, 1);
        assert!(message.contains(expected), "{message}");
    }
    let (code, message) = fail(on(&database.with_file_name("none.db")).arg("status"));
    assert_eq!(code, 1);
    assert!(
        message.contains("begin one with `gleaner-agent run`"),
        "{message}"
    );
}

#[test]
fn an_unknown_key_is_refused_by_name_and_line_and_wrong_usage_by_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    std::fs::write(&file, "privacy = \"hashed\"\nintervall = \"90s\"\n").unwrap();
    let (code, message) = fail(agent().arg("--config").arg(&file).arg("status"));
    assert_eq!(code, 1);
    assert!(
        message.contains("line 2") && message.contains("`intervall`"),
        "{message}"
    );
    assert_eq!(
        fail(agent().args(["run", "--sample-interval", "soon"])).0,
        2
    );
}

/// An argument of a process, and the path of a file that it has open, must not be in the trace.
#[test]
fn no_argument_and_no_path_reaches_the_database_unless_asked_for() {
    const ARGUMENT: &str = "correct-horse-battery";
    const FOLDER: &str = "staple-diagnosis";
    let (dir, database) = new_trace();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(FOLDER);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("letter");
    std::fs::write(&file, "secret").unwrap();
    // A shell that uses CPU for as long as it runs, with the file open.
    let mut busy = Command::new("sh")
        .args(["-c", "exec 3<\"$1\"; while :; do :; done", ARGUMENT])
        .arg(&file)
        .spawn()
        .unwrap();
    let plain = dir.path().join("agent.toml");
    std::fs::write(&plain, "privacy = \"plain\"\n").unwrap();
    let run = |database: &Path, extra: &[&str]| {
        let run = ["run", "--sample-interval", "300ms", "--samples", "6"];
        succeed(on(database).args(run).args(extra));
        let shell = format!("SELECT count(*) FROM processes WHERE pid = {}", busy.id());
        let seen = number(database, &shell);
        (seen, std::fs::read(database).unwrap())
    };
    let hashed = run(&database, &[]);
    let in_plain = run(
        &dir.path().join("plain.db"),
        &["--config", plain.to_str().unwrap()],
    );
    busy.kill().unwrap();
    busy.wait().unwrap();
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
    assert!(hashed.0 > 0 && in_plain.0 > 0, "the shell was seen in both");
    assert!(!holds(&hashed.1, ARGUMENT) && !holds(&hashed.1, FOLDER));
    assert!(
        !holds(&in_plain.1, "plain.db"),
        "its own files are not the owner's"
    );
    assert!(!holds(&in_plain.1, ARGUMENT) && holds(&in_plain.1, FOLDER));
}

/// Closing any descriptor of a file drops a process's POSIX locks on it: if the agent opened its own database
/// among other processes' files, SQLite's locks would be lost, and the next program that opens the trace
/// would truncate the WAL's index while the agent uses it.
#[test]
fn a_program_that_has_the_trace_open_does_not_cost_the_agent_its_locks() {
    let (_dir, database) = new_trace();
    let mut agent = start(&database);
    wait_for_samples(&database, &mut agent, 1);
    let index = gleaner_agent::state_files::beside(&database, "-shm");
    let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&index).unwrap());
    let agent_id = agent.id();
    let locked = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let (pid, file) = (format!(" {agent_id} "), format!(":{inode} "));
        locks.lines().any(|l| l.contains(&pid) && l.contains(&file))
    };
    assert!(locked(), "the agent holds no lock on {}", index.display());
    // The other program uses CPU, so that the agent walks its files, including the index.
    let mut other = Command::new("sh")
        .args(["-c", "exec 3<\"$1\"; while :; do :; done", "sh"])
        .arg(&index)
        .spawn()
        .unwrap();
    let walked = format!("SELECT count(*) FROM processes WHERE pid = {}", other.id());
    let mut died = false;
    while !died && number(&database, &walked) < 3 {
        died = agent.try_wait().unwrap().is_some();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let still_locked = locked();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(!died, "the agent ended early");
    signal(&agent, rustix::process::Signal::TERM);
    assert!(agent.wait().unwrap().success());
    assert!(
        still_locked,
        "the agent lost its locks on {}",
        index.display()
    );
}
