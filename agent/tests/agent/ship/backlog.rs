//! Weeks without a collector, then shipping of all records.

use super::{is_whole, rows, ship, traced};
use crate::collector::Collector;
use crate::running::{Running, column, query, wait_for};
use gleaner_harness::peak_bytes;
use gleaner_schemas::rows::TABLES;
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

/// Number of samples in 60 days, at one sample every 90 s.
const SAMPLES: i64 = 57_600;

/// Copies the newest sample repeatedly, 90 s apart, with as many rows as a workstation's.
fn lengthen(database: &Path, samples: i64) {
    let connection = Connection::open(database).unwrap();
    let last: i64 = query(database, "SELECT max(sequence) FROM samples");
    for (table, key, kept) in [
        ("processes", "pid", 10),
        ("files", "file_id", 5),
        ("cgroups", "cgroup_id", 5),
    ] {
        let of_last = format!("FROM {table} WHERE sequence = {last}");
        let rest =
            format!("DELETE {of_last} AND {key} NOT IN (SELECT {key} {of_last} LIMIT {kept})");
        connection.execute(&rest, []).unwrap();
    }
    for table in &TABLES {
        let names = format!("SELECT name FROM pragma_table_info('{}')", table.name);
        let names: Vec<String> = column(database, &names);
        let values = names.iter().map(|name| match name.as_str() {
            "sequence" => "t.sequence + n.i".to_owned(),
            "time_ms" => "t.time_ms + n.i * 90000".to_owned(),
            name => format!("t.{name}"),
        });
        let copy = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {samples}) \
             INSERT INTO {0} ({1}) SELECT {2} FROM n, {0} t WHERE t.sequence = {last}",
            table.name,
            names.join(", "),
            values.collect::<Vec<_>>().join(", "),
        );
        connection.execute(&copy, []).unwrap();
    }
}

#[test]
fn a_backlog_of_sixty_days_takes_no_more_memory_than_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "3");
    lengthen(&database, SAMPLES);
    let last: i64 = query(&database, "SELECT max(sequence) FROM samples");
    let collector = Collector::start();
    let shipper = Running::start(&mut ship(&database, &collector.url(), ""));
    shipper.hear("shipping");
    let begin = std::time::Instant::now();
    while collector
        .state()
        .databases
        .values()
        .all(|kept| kept.mark < last)
    {
        assert!(begin.elapsed() < Duration::from_secs(600));
        std::thread::sleep(Duration::from_millis(20));
    }
    let memory_kib = peak_bytes(shipper.id()) >> 10;
    assert_eq!(shipper.end().0, Some(0));
    let state = collector.state();
    is_whole(state.only(), &database);
    let most = state
        .taken
        .iter()
        .map(|batch| batch.last_sequence - batch.first_sequence + 1);
    assert!(most.max() <= Some(512));
    let sent: usize = state.taken.iter().map(|batch| batch.bytes).sum();
    println!(
        "{SAMPLES} samples in {} batches, {} bytes each, {:?}, {memory_kib} KiB at most",
        state.taken.len(),
        sent / SAMPLES as usize,
        begin.elapsed(),
    );
    assert!(memory_kib < 48 << 10, "{memory_kib} KiB");
}

/// The oldest records are deleted while they are shipped: exactly the remainder arrives.
#[test]
fn records_that_are_deleted_meanwhile_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "3");
    lengthen(&database, 3000);
    let all = rows(&database);
    let last: i64 = query(&database, "SELECT max(sequence) FROM samples");
    let collector = Collector::start();
    let shipper = Running::start(&mut ship(&database, &collector.url(), "rate = \"64KiB\""));
    let connection = Connection::open(&database).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection
        .pragma_update(None, "foreign_keys", true)
        .unwrap();
    let mut until = 0;
    wait_for("the last record", || {
        if until < 2000 {
            until += 20;
            connection
                .execute("DELETE FROM samples WHERE sequence <= ?", [until])
                .unwrap();
        }
        collector
            .state()
            .databases
            .values()
            .any(|kept| kept.mark == last)
    });
    assert_eq!(shipper.end().0, Some(0));
    let state = collector.state();
    let kept = state.only();
    for (table, there) in rows(&database) {
        for (sequence, count) in &there {
            assert_eq!(
                kept.rows[table].get(sequence),
                Some(count),
                "{table} {sequence}"
            );
        }
        for (sequence, count) in &kept.rows[table] {
            assert_eq!(all[table].get(sequence), Some(count), "{table} {sequence}");
        }
    }
    let (deleted, there) = (
        until,
        kept.rows["samples"].keys().filter(|s| **s <= until).count(),
    );
    println!("{deleted} deleted, {there} of them had arrived");
    assert!(
        (there as i64) < deleted,
        "the deletion came too late to show anything"
    );
}
