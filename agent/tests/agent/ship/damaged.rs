//! Damaged databases and those set aside: their readable records are shipped, oldest first.

use super::{is_whole, ship, traced};
use crate::collector::Collector;
use crate::fail;
use crate::running::{column, query};
use crate::succeed;
use rusqlite::Connection;
use serde_json::Value as Json;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

fn id(database: &Path) -> String {
    query(database, "SELECT value FROM meta WHERE key = 'database_id'")
}

/// Makes a database with the name of one that was set aside.
fn set_aside(folder: &Path, time: &str) -> PathBuf {
    let database = traced(folder, "30");
    let aside = folder.join(format!("trace.db.damaged-{time}"));
    fs::rename(&database, &aside).unwrap();
    aside
}

/// Overwrites a leaf page of this table with noise.
fn damage(database: &Path, table: &str) {
    let query_page = format!(
        "SELECT pageno FROM dbstat WHERE name = '{table}' AND pagetype = 'leaf' ORDER BY pageno LIMIT 1 OFFSET 1"
    );
    let page: i64 = query(database, &query_page);
    let size: i64 = query(database, "PRAGMA page_size");
    let file = fs::File::options().write(true).open(database).unwrap();
    let noise = vec![0xa5; size as usize];
    file.write_all_at(&noise, ((page - 1) * size) as u64)
        .unwrap();
}

#[test]
fn what_can_be_read_of_damaged_databases_arrives_before_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let sound = set_aside(folder.path(), "20261120T000000Z");
    let torn = set_aside(folder.path(), "20261121T000000Z");
    let in_all: Vec<i64> = column(&torn, "SELECT sequence FROM samples");
    let (sound_id, torn_id) = (id(&sound), id(&torn));
    damage(&torn, "samples");
    let gone = folder.path().join("trace.db.damaged-20261121T000001Z");
    fs::write(&gone, "not a database, but long enough to be taken for one").unwrap();
    let database = traced(folder.path(), "2");

    let collector = Collector::start();
    let mut once = ship(&database, &collector.url(), "");
    let output = once.args(["--once", "--json"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("20261121T000001Z") && said.contains("the file stays unchanged"),
        "{said}"
    );
    assert!(said.contains("20261121T000000Z is damaged"), "{said}");
    let summary: Json = serde_json::from_slice(&output.stdout).unwrap();
    let lost = summary["unreadable_records_count"].as_u64().unwrap() as usize;
    assert!(lost > 0 && lost < in_all.len(), "{summary}");

    let state = collector.state();
    let kept = |id: &str| {
        let mut found = state
            .databases
            .iter()
            .filter(|((_, database), _)| database == id);
        found.next().unwrap().1
    };
    is_whole(kept(&sound_id), &sound);
    is_whole(kept(&id(&database)), &database);
    let there = kept(&torn_id).rows["samples"].len();
    assert!(
        there > 0 && there + lost >= in_all.len(),
        "{there} + {lost} of {}",
        in_all.len()
    );
    let mut order: Vec<&str> = state
        .taken
        .iter()
        .map(|batch| batch.database_id.as_str())
        .collect();
    order.dedup();
    assert_eq!(
        order,
        [sound_id.as_str(), torn_id.as_str(), id(&database).as_str()]
    );
    drop(state);

    succeed(ship(&database, &collector.url(), "").arg("--once"));
    assert!(collector.state().taken.iter().all(|batch| !batch.repeated));
}

/// Record numbers are skipped at every boot, and a damaged number may be anything. Neither may slow shipping
/// down.
#[test]
fn a_damaged_database_with_huge_numbers_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "30");
    let connection = Connection::open(&database).unwrap();
    for (table, add) in [("samples", 1_i64 << 60), ("gaps", 1 << 40)] {
        let columns: Vec<String> = column(
            &database,
            &format!("SELECT name FROM pragma_table_info('{table}') WHERE name <> 'sequence'"),
        );
        let columns = columns.join(", ");
        let last = "SELECT max(sequence) FROM samples WHERE sequence < 1000000";
        let copy = match table {
            "samples" => format!(
                "INSERT INTO samples (sequence, {columns}) SELECT sequence + {add}, {columns} FROM samples WHERE sequence = ({last})"
            ),
            _ => format!(
                "INSERT INTO gaps SELECT ({last}) + {add}, time_ms, 0, 0, 'boot' FROM samples LIMIT 1"
            ),
        };
        connection.execute(&copy, []).unwrap();
    }
    drop(connection);
    let aside = folder.path().join("trace.db.damaged-20261121T000000Z");
    fs::rename(&database, &aside).unwrap();
    let samples: Vec<i64> = column(&aside, "SELECT sequence FROM samples ORDER BY sequence");
    damage(&aside, "samples");
    let database = traced(folder.path(), "1");
    let collector = Collector::start();
    succeed(ship(&database, &collector.url(), "").arg("--once"));
    {
        let state = collector.state();
        let kept = state
            .databases
            .values()
            .find(|kept| kept.mark > 1 << 60)
            .unwrap();
        assert_eq!(kept.rows["samples"].keys().next_back(), samples.last());
        assert!(kept.rows["gaps"].keys().any(|sequence| *sequence > 1 << 40));
        assert!(kept.rows["samples"].len() > 10);
    }
    let dataset = folder.path().join("dataset");
    let mut export = crate::agent();
    let output = export
        .arg("--database")
        .arg(&aside)
        .arg("export")
        .arg(&dataset)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
}

/// A time that does not fit into a dataset counts as damage: its record does not block the others.
#[test]
fn a_record_of_an_impossible_time_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "4");
    let samples: Vec<i64> = column(&database, "SELECT sequence FROM samples ORDER BY sequence");
    let connection = Connection::open(&database).unwrap();
    let alter = "UPDATE samples SET time_ms = -5 WHERE sequence = ?";
    connection.execute(alter, [samples[1]]).unwrap();
    drop(connection);
    let collector = Collector::start();
    succeed(ship(&database, &collector.url(), "").arg("--once"));
    let state = collector.state();
    let there: Vec<i64> = state.only().rows["samples"].keys().copied().collect();
    assert_eq!(there, [samples[0], samples[2], samples[3]]);
    drop(state);
    let (code, _) = fail(ship(&database, "http://127.0.0.1:1", "").arg("--once"));
    assert_eq!(code, 1);
}
