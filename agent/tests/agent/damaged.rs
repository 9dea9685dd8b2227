//! Databases in states that a power cut or a failing disk may leave.

use crate::running::{Running, column, is_sound, query, wait_for};
use crate::{agent, succeed};
use gleaner_harness::{Random, number};
use rustix::process::Signal;
use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run_on(database: &Path, samples: &str) -> Command {
    let mut command = agent();
    let run = [
        "run",
        "--sample-interval",
        "100ms",
        "--samples",
        samples,
        "--database",
    ];
    command.args(run).arg(database);
    command
}

/// Makes a database of a killed agent, with its log.
fn killed(folder: &Path, samples: i64) -> PathBuf {
    let database = folder.join("trace.db");
    succeed(&mut run_on(&database, "30")); // closed: these are in the database, the next in its log
    let count = || query::<i64>(&database, "SELECT count(*) FROM samples");
    let traced = Running::start(&mut run_on(&database, "100000"));
    traced.hear("sampling every");
    wait_for("samples", || count() >= 30 + samples);
    // While a reader is open, no process moves the log into the database.
    traced.signal(Signal::STOP);
    let reader = rusqlite::Connection::open(&database).unwrap();
    let _: i64 = reader
        .query_row("SELECT count(*) FROM samples", [], |row| row.get(0))
        .unwrap();
    traced.kill();
    let copy = folder.join("killed");
    fs::create_dir(&copy).unwrap();
    for ending in ["", "-wal"] {
        let name = format!("trace.db{ending}");
        fs::copy(folder.join(&name), copy.join(&name)).unwrap();
    }
    copy.join("trace.db")
}

/// Bytes of the header with application id and version: a database with damage there is refused.
const IDENTITY: [std::ops::Range<usize>; 2] = [60..64, 68..72];

fn damage(path: &Path, random: &mut Random, truncate: bool) -> String {
    let mut bytes = fs::read(path).unwrap();
    let length = bytes.len() as u64;
    if truncate {
        bytes.truncate(random.below(length + 1) as usize);
    } else {
        for _ in 0..=random.below(8) {
            let at = random.below(length) as usize;
            let is_identity = path.extension().is_some_and(|e| e == "db")
                && IDENTITY.iter().any(|range| range.contains(&at));
            if !is_identity {
                bytes[at] ^= 1 << random.below(8);
            }
        }
    }
    fs::write(path, &bytes).unwrap();
    format!("{} of {length} bytes left", bytes.len())
}

fn copy(from: &Path, to: &Path) -> PathBuf {
    for ending in ["", "-wal"] {
        let name = format!("trace.db{ending}");
        fs::copy(from.with_file_name(&name), to.join(&name)).unwrap();
    }
    to.join("trace.db")
}

/// After truncation or flipped bits, in the database or its log, the agent continues with the sound part, or
/// sets the database aside and begins a new one.
#[test]
fn torn_and_flipped_databases_never_keep_the_agent_from_tracing() {
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let original = killed(folder.path(), 5);
    let (mut gone_on, mut set_aside) = (0, 0);
    for round in 0..number("GLEANER_DAMAGE_ROUNDS", 60) {
        let folder = tempfile::tempdir().unwrap();
        let database = copy(&original, folder.path());
        let log = gleaner_agent::state_files::beside(&database, "-wal");
        let victim = if random.below(2) == 0 {
            &database
        } else {
            &log
        };
        let truncate = random.below(2) == 0;
        let how = damage(victim, &mut random, truncate);
        let output = run_on(&database, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("is the trace of another host") {
            continue; // the damage hit the host's id
        }
        let what = format!("round {round}, {}: {how}\n{said}", victim.display());
        assert!(
            output.status.success() && !said.contains("panicked"),
            "{what}"
        );
        let kept = gleaner_agent::trace::damage::damaged_databases(&database);
        if kept.is_empty() {
            gone_on += 1;
        } else {
            set_aside += 1;
            assert!(said.contains("lies at") && kept.len() == 1, "{what}");
            is_sound(&database);
            let kinds: Vec<String> = column(&database, "SELECT kind FROM events");
            assert!(kinds.contains(&"database_damaged".to_owned()), "{what}");
        }
        // The newest sample is complete, whatever older pages contain.
        let newest: i64 = query(&database, "SELECT max(sequence) FROM samples");
        let sources = format!("SELECT count(*) FROM activity WHERE sequence = {newest}");
        assert_eq!(query::<i64>(&database, &sources), 4, "{what}");
    }
    println!("gone on with {gone_on}, set aside {set_aside}");
    assert!(gone_on > 0 && set_aside > 0, "{gone_on} and {set_aside}");
}

/// The database is damaged while the agent runs: a table's root page number points nowhere.
#[test]
fn a_database_that_is_damaged_while_the_agent_runs_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("trace.db");
    let traced = Running::start(&mut run_on(&database, "100000"));
    traced.hear("sampling every");
    let samples = || query::<i64>(&database, "SELECT count(*) FROM samples");
    wait_for("samples", || samples() >= 2);
    let other = rusqlite::Connection::open(&database).unwrap();
    other
        .busy_timeout(std::time::Duration::from_secs(5))
        .unwrap();
    let damage = "PRAGMA writable_schema = ON; \
        UPDATE sqlite_schema SET rootpage = 99999 WHERE name = 'samples'; PRAGMA schema_version = 1000";
    other.execute_batch(damage).unwrap();
    drop(other);
    let said = traced.hear("was damaged");
    assert!(said.contains("trace.db.damaged-"), "{said}");
    wait_for("samples in the new one", || {
        query::<i64>(&database, "SELECT count(*) FROM samples") >= 2
    });
    assert_eq!(traced.end().0, Some(0));
    is_sound(&database);
    let causes: Vec<String> = column(
        &database,
        "SELECT cause FROM gaps ORDER BY sequence LIMIT 1",
    );
    assert_eq!(causes, ["damaged"]);
    let status = agent()
        .arg("--database")
        .arg(&database)
        .arg("status")
        .output()
        .unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(
        status.contains("set aside") && status.contains("trace.db.damaged-"),
        "{status}"
    );
}

/// The readable part of a damaged database is exported under its old identity, and the loss is counted.
#[test]
fn what_can_be_read_of_a_damaged_database_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("trace.db");
    succeed(&mut run_on(&database, "40"));
    let in_all: i64 = query(&database, "SELECT count(*) FROM samples");
    let id: String = query(
        &database,
        "SELECT value FROM meta WHERE key = 'database_id'",
    );
    // Overwrites a leaf page of samples with noise.
    let page: i64 = query(
        &database,
        "SELECT pageno FROM dbstat WHERE name = 'samples' AND pagetype = 'leaf' ORDER BY pageno LIMIT 1 OFFSET 1",
    );
    let mut bytes = fs::read(&database).unwrap();
    let start = (page as usize - 1) * 4096;
    bytes[start..start + 4096].fill(0xa5);
    fs::write(&database, bytes).unwrap();

    let dataset = folder.path().join("dataset");
    let output = agent()
        .args(["export", "--json", "--database"])
        .arg(&database)
        .arg(&dataset)
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(4),
        "exported, but not all could be read"
    );
    let said: Json = serde_json::from_slice(&output.stdout).unwrap();
    let lost = said["unreadable_records_count"].as_i64().unwrap();
    assert!(lost > 0 && lost < in_all, "{said}");
    let exported = gleaner_dataset::Dataset::open(&dataset).unwrap();
    let samples = exported.rows(&gleaner_schemas::rows::table("samples").unwrap()) as i64;
    assert!(
        samples > 0 && samples < in_all && samples + lost >= in_all,
        "{samples} + {lost} of {in_all}"
    );
    let mut writer = gleaner_dataset::Writer::open(&dataset).unwrap();
    let host = exported.hosts().unwrap().remove(0);
    let last = writer.last_sequence(&host, &id).unwrap();
    assert!(last.is_some(), "rows keep their identity");
}
