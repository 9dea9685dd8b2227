//! Export of the trace to a dataset: completely and once.

use crate::{agent, succeed};
use gleaner_dataset::Dataset;
use gleaner_schemas::rows::TABLES;
use rusqlite::Connection;

#[test]
fn an_export_adds_what_the_dataset_lacks_and_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (database, dataset) = (dir.path().join("trace.db"), dir.path().join("dataset"));
    let run = || {
        let run = ["run", "--sample-interval", "200ms", "--samples", "2"];
        succeed(agent().arg("--database").arg(&database).args(run));
    };
    let export = || -> serde_json::Value {
        let export = agent()
            .arg("--database")
            .arg(&database)
            .args(["export", "--json"])
            .arg(&dataset)
            .output();
        serde_json::from_slice(&export.unwrap().stdout).unwrap()
    };
    let rows = |table: &str| -> u64 {
        let query = format!("SELECT count(*) FROM {table}");
        Connection::open(&database)
            .unwrap()
            .query_row(&query, [], |row| row.get::<_, i64>(0).map(|n| n as u64))
            .unwrap()
    };
    let whole = || TABLES.iter().map(|t| rows(t.name)).sum::<u64>();

    run();
    // Moves the second sample to the next day: each day is sealed separately.
    Connection::open(&database)
        .unwrap()
        .execute(
            "UPDATE samples SET time_ms = time_ms + 86400000 WHERE sequence = (SELECT max(sequence) FROM samples)",
            [],
        )
        .unwrap();
    assert_eq!(export()["rows_count"], whole());
    assert_eq!(export()["rows_count"], 0);
    let before = whole();
    run();
    assert_eq!(export()["rows_count"], whole() - before);

    let exported = Dataset::open(&dataset).unwrap();
    assert_eq!(exported.verify().problems, []);
    for table in &TABLES {
        assert_eq!(exported.rows(table), rows(table.name), "{}", table.name);
    }
    let samples = gleaner_schemas::rows::table("samples").unwrap();
    assert_eq!(exported.dates(&samples).len(), 2);
}
