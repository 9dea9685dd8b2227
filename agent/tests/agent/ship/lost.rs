//! Records lost here and known to the collector: their numbers are not reused.

use super::{is_whole, last_sequence, ship, traced};
use crate::collector::Collector;
use crate::running::{Running, query, wait_for};
use crate::{agent, succeed};
use rusqlite::Connection;
use std::fs;

#[test]
fn samples_of_another_boot_leave_numbers_out() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "2");
    let same_boot = last_sequence(&database);
    traced(folder.path(), "2");
    assert!(last_sequence(&database) < same_boot + 100);
    let earlier = last_sequence(&database);
    let connection = Connection::open(&database).unwrap();
    connection
        .execute("UPDATE samples SET boot_id = 'another'", [])
        .unwrap();
    drop(connection);
    traced(folder.path(), "2");
    let first: i64 = query(
        &database,
        &format!("SELECT min(sequence) FROM events WHERE sequence > {earlier}"),
    );
    assert_eq!(first, earlier + 1_000_001);

    let collector = Collector::start();
    succeed(ship(&database, &collector.url(), "").arg("--once"));
    is_whole(collector.state().only(), &database);
}

/// After a database is restored from an older copy, its new records arrive.
#[test]
fn a_database_put_back_from_an_older_copy_goes_on_beyond_what_the_collector_has() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "2");
    let older = folder.path().join("older");
    fs::copy(&database, &older).unwrap();
    traced(folder.path(), "6");
    let collector = Collector::start();
    succeed(ship(&database, &collector.url(), "").arg("--once"));
    let mark = collector.state().only().mark;
    fs::copy(&older, &database).unwrap();

    let shipper = Running::start(&mut ship(&database, &collector.url(), ""));
    let said = shipper.hear("put back from an older copy");
    assert!(said.contains(&format!("up to {mark}")), "{said}");
    let status = agent()
        .arg("--database")
        .arg(&database)
        .arg("status")
        .output()
        .unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("has more than this database"), "{status}");
    traced(folder.path(), "2");
    let last = last_sequence(&database);
    assert!(last > mark);
    wait_for("the new records", || collector.state().only().mark == last);
    assert_eq!(shipper.end(), (Some(0), Vec::new()));
    let count = format!("SELECT count(*) FROM samples WHERE sequence > {mark}");
    assert_eq!(query::<i64>(&database, &count), 2);
    let state = collector.state();
    let samples = &state.only().rows["samples"];
    assert_eq!(samples.range(mark + 1..).count(), 2);
}

/// The sequence floor is set while a sampler runs: the next sample must use a number above the floor.
#[test]
fn a_running_sampler_heeds_the_numbers_that_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "1");
    let mut run = agent();
    run.arg("--database")
        .arg(&database)
        .args(["run", "--sample-interval", "100ms"]);
    let sampler = Running::start(&mut run);
    sampler.hear("sampling every");
    let connection = Connection::open(&database).unwrap();
    connection
        .busy_timeout(std::time::Duration::from_secs(5))
        .unwrap();
    let floor = "INSERT INTO meta VALUES ('sequence_floor', '5000')";
    connection.execute(floor, []).unwrap();
    drop(connection);
    wait_for("samples beyond", || last_sequence(&database) > 5001);
    assert_eq!(sampler.end().0, Some(0));
    let first = "SELECT min(sequence) FROM samples WHERE sequence > 4000";
    assert!(query::<i64>(&database, first) <= 5010);
}
