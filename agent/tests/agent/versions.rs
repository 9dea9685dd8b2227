//! Databases of earlier versions: gone on with, and read as they are.

use gleaner_agent::trace::database::{columns, open_to_read};
use gleaner_agent::trace::export::export;
use gleaner_agent::trace::store::Store;
use gleaner_schemas::SCHEMA_VERSION;
use gleaner_schemas::column::{Kind, Row};
use gleaner_schemas::rows::{SampleRow, TABLES};
use gleaner_schemas::sql::{APPLICATION_ID, MIGRATIONS};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// A database with one sample, a gap and a host, as version 1 wrote it.
fn version_1(folder: &Path) -> PathBuf {
    let path = folder.join("trace.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(MIGRATIONS[0]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO meta VALUES ('host_id', 'host-a'), ('database_id', 'db-1'), ('created_time_ms', '5');
             INSERT INTO gaps VALUES (1, 1000, 0, 1000, 'boot');",
        )
        .unwrap();
    insert_required(&connection, "hosts", 2);
    insert_required(&connection, "samples", 3);
    connection
        .execute("INSERT INTO processes (sequence, pid, started_ms, name, always_active, rss_bytes, memory_source) \
                  VALUES (3, 7, 0, 'cron', 0, 4096, 'pss')", [])
        .unwrap();
    connection
        .pragma_update(None, "application_id", APPLICATION_ID)
        .unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    path
}

/// A row with the least that the table asks for.
fn insert_required(connection: &Connection, table: &str, sequence: i64) {
    let present = columns(connection, table).unwrap();
    let table = gleaner_schemas::rows::table(table).unwrap();
    let required = table
        .columns
        .iter()
        .filter(|c| !c.nullable && present.iter().any(|name| name == c.name));
    let (names, values): (Vec<_>, Vec<_>) = required
        .map(|c| (c.name, if c.kind == Kind::Text { "'x'" } else { "1" }))
        .unzip();
    let insert = format!(
        "INSERT INTO {} (sequence, time_ms, {}) VALUES ({sequence}, 1000, {})",
        table.name,
        names.join(", "),
        values.join(", ")
    );
    connection.execute(&insert, []).unwrap();
}

#[test]
fn the_steps_lead_to_the_declared_columns() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&MIGRATIONS.concat()).unwrap();
    for table in &TABLES {
        let mut statement = connection
            .prepare("SELECT name, type, \"notnull\" FROM pragma_table_info(?)")
            .unwrap();
        let found: Vec<(String, String, bool)> = statement
            .query_map([table.name], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let sequence = ("sequence".to_owned(), "INTEGER".to_owned(), true);
        let time = ("time_ms".to_owned(), "INTEGER".to_owned(), true);
        let own = table.columns.iter().map(|c| {
            let kind = match c.kind {
                Kind::Integer | Kind::Flag => "INTEGER",
                Kind::Real => "REAL",
                Kind::Text => "TEXT",
            };
            (c.name.to_owned(), kind.to_owned(), !c.nullable)
        });
        let declared: Vec<_> = std::iter::once(sequence)
            .chain(table.has_own_time().then_some(time))
            .chain(own)
            .collect();
        assert_eq!(found, declared, "{}", table.name);
    }
}

#[test]
fn a_database_of_version_1_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = version_1(folder.path());
    let (store, aside) = Store::open(&path, Some("host-a"), 9).unwrap();
    assert_eq!(aside, None);
    assert_eq!(store.last_sample().unwrap().unwrap().time_ms, 1000);
    // In the file itself while the agent is at work: packages of older agents look there.
    let header = std::fs::read(&path).unwrap();
    assert_eq!(header[60..64], SCHEMA_VERSION.to_be_bytes());
    drop(store);
    let connection = open_to_read(&path).unwrap();
    let version: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, SCHEMA_VERSION);
    assert_eq!(
        columns(&connection, "samples").unwrap().last().unwrap(),
        SampleRow::TABLE.columns.last().unwrap().name
    );
    let created: String = gleaner_agent::trace::database::meta(&connection, "created_time_ms")
        .unwrap()
        .unwrap();
    assert_eq!(created, "5");
}

#[test]
fn a_database_of_version_1_is_exported_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = version_1(folder.path());
    let before = std::fs::read(&path).unwrap();
    let exported = export(&path, &folder.path().join("dataset")).unwrap();
    assert_eq!((exported.rows_count, exported.last_sequence), (4, 3));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
