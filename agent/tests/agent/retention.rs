//! Retention of a trace by the built agent, and `vacuum`.

use crate::{agent, fail, succeed};
use gleaner_agent::state_files::beside;
use gleaner_agent::trace::store::{Record, Store};
use gleaner_schemas::rows::{FileRow, HostRow, SampleRow};
use rusqlite::Connection;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Makes a trace of days with one sample and many files each: about 90 KiB per day.
fn trace_of_days(folder: &Path, days: i64) -> PathBuf {
    let path = folder.join("trace.db");
    let (mut store, _) = Store::open(&path, gleaner_agent::host::id().as_deref(), 0).unwrap();
    for day in 0..days {
        let files = (0..2000).map(|n| FileRow {
            file_id: (day << 32) + n * 7919 * 7919,
            path: Some("x".repeat(20)),
            ..FileRow::default()
        });
        store
            .write(&Record {
                time_ms: day * 86_400_000,
                gap: None,
                host: Some(&HostRow::default()),
                events: &[],
                sample: &SampleRow {
                    is_complete_state: true,
                    ..SampleRow::default()
                },
                processes: &[],
                files: &files.collect::<Vec<_>>(),
                activity: &[],
                numa_nodes: &[],
                cgroups: &[],
                missing_values: &[],
            })
            .unwrap();
    }
    path
}

fn on(database: &Path) -> Command {
    let mut command = agent();
    command.arg("--database").arg(database);
    command
}

/// Size of the database and of its free pages, in bytes.
fn sizes(connection: &Connection) -> (i64, i64) {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let bytes = |name| pragma(name).unwrap() * pragma("page_size").unwrap();
    (bytes("page_count"), bytes("freelist_count"))
}

fn text(connection: &Connection, query: &str) -> String {
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

fn number(connection: &Connection, query: &str) -> i64 {
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_running_agent_brings_its_database_below_the_limit_and_gives_the_rest_back() {
    const LIMIT_BYTES: i64 = 8 << 20;
    let dir = tempfile::tempdir().unwrap();
    let database = trace_of_days(dir.path(), 200);
    let config = dir.path().join("agent.toml");
    std::fs::write(&config, "database_limit = \"8MiB\"\n").unwrap();
    let connection = Connection::open(&database).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    assert!(sizes(&connection).0 > 16 << 20, "{:?}", sizes(&connection));

    let mut child = on(&database)
        .args(["run", "--sample-interval", "100ms", "--config"])
        .arg(&config)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let is_small = || {
        let (all, free) = sizes(&connection);
        all - free <= LIMIT_BYTES && free <= all / 8
    };
    while !is_small() && Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let sizes = sizes(&connection);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(is_small(), "size and free bytes of the database: {sizes:?}");

    // The newest of the old days are still complete, and so are the samples taken since.
    let old = "SELECT count(*) FROM samples WHERE time_ms < 200 * 86400000";
    let old = number(&connection, old);
    assert!((1..200).contains(&old), "{old}");
    let first = format!(
        "SELECT min(time_ms) = (200 - {old}) * 86400000 AND min(sequence) = (SELECT min(sequence) + 1 FROM hosts) FROM samples"
    );
    assert_eq!(number(&connection, &first), 1);
    let files = "SELECT count(*) FROM files f JOIN samples s USING (sequence) WHERE s.time_ms < 200 * 86400000";
    assert_eq!(number(&connection, files), old * 2000);
    assert!(number(&connection, "SELECT count(*) FROM samples") > old);
    assert_eq!(text(&connection, "PRAGMA integrity_check"), "ok");
    let broken = "SELECT count(*) FROM pragma_foreign_key_check";
    assert_eq!(number(&connection, broken), 0);
}

#[test]
fn vacuum_gives_all_free_pages_back_and_waits_for_the_agent_to_end() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("none.db");
    assert!(fail(on(&missing).arg("vacuum")).1.contains("no trace at"));
    assert!(!missing.exists() && !beside(&missing, "-lock").exists());

    let database = trace_of_days(dir.path(), 60);
    let size = || std::fs::metadata(&database).unwrap().len();
    let vacuum = || -> Json {
        let before = size();
        let json = succeed(on(&database).args(["vacuum", "--json"]));
        let json: Json = serde_json::from_str(&json).unwrap();
        assert_eq!(json["before_bytes"], before);
        assert_eq!(json["after_bytes"], size());
        assert!(!beside(&database, "-wal").exists());
        json
    };
    let change = |sql: &str| {
        let connection = Connection::open(&database).unwrap();
        connection.execute_batch(sql).unwrap();
    };
    let state = || {
        let connection = Connection::open(&database).unwrap();
        assert_eq!(text(&connection, "PRAGMA integrity_check"), "ok");
        let auto_vacuum = number(&connection, "PRAGMA auto_vacuum");
        let rows = number(&connection, "SELECT count(*) FROM files");
        (auto_vacuum, rows, sizes(&connection).1)
    };

    // A database of an older agent can return pages only after it is rewritten.
    change("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM");
    change("DELETE FROM files WHERE sequence <= 60");
    let (auto_vacuum, rows, free) = state();
    assert!(auto_vacuum == 0 && free > 1 << 20, "{free}");
    let before = size();
    vacuum();
    assert!(size() < before * 2 / 3, "{} of {before}", size());
    assert_eq!(state(), (2, rows, 0));

    change("DELETE FROM files WHERE sequence <= 100");
    let (_, rows, free) = state();
    assert!(rows > 0 && free > 1 << 20, "{free}");
    let (before, free) = (size(), u64::try_from(free).unwrap());
    vacuum();
    assert!(size() <= before - free, "{} of {before}", size());
    assert_eq!(state(), (2, rows, 0));
    let text = succeed(on(&database).arg("vacuum"));
    assert!(
        text.contains(" before, ") && text.contains(" now"),
        "{text}"
    );

    let _writer = Store::open(&database, gleaner_agent::host::id().as_deref(), 0).unwrap();
    let (code, message) = fail(on(&database).arg("vacuum"));
    assert_eq!(code, 1);
    assert!(message.contains("stop it first"), "{message}");
}
