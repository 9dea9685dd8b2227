//! Databases of earlier versions: continued, and read without changes.

use crate::trace::{number, on};
use crate::{copies, succeed};

use gleaner_agent::trace::database::{columns, open_to_read};
use gleaner_agent::trace::export::export;
use gleaner_agent::trace::store::Store;
use gleaner_schemas::column::{Kind, Row};
use gleaner_schemas::rows::{SampleRow, TABLES, table};
use gleaner_schemas::sql::{APPLICATION_ID, MIGRATIONS};
use gleaner_schemas::{SCHEMA_VERSION, renames};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// Makes a database with one sample, a gap and a host, as version 1 wrote it.
fn version_1(folder: &Path) -> PathBuf {
    of_version(1, folder)
}

/// Makes a database with one sample, a gap and a host, as an earlier version wrote it.
fn of_version(version: u32, folder: &Path) -> PathBuf {
    let path = folder.join("trace.db");
    let connection = Connection::open(&path).unwrap();
    for step in &MIGRATIONS[..version as usize] {
        connection.execute_batch(step).unwrap();
    }
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
    connection
        .pragma_update(None, "user_version", version)
        .unwrap();
    path
}

/// Inserts a row with only the columns that the table requires.
fn insert_required(connection: &Connection, table: &str, sequence: i64) {
    let present = columns(connection, table).unwrap();
    let table = gleaner_schemas::rows::table(table).unwrap();
    // Columns that may be absent since version 5 were required earlier.
    let is_required = |name: &str, nullable: bool| !nullable || name == "boottime_ms";
    let required = present.iter().filter_map(|name| {
        let declared = renames::column_name(table.name, name);
        let column = table.columns.iter().find(|c| c.name == declared)?;
        let value = if column.kind == Kind::Text {
            "'x'"
        } else {
            "1"
        };
        is_required(column.name, column.nullable).then_some((name.as_str(), value))
    });
    let (names, values): (Vec<_>, Vec<_>) = required.unzip();
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
    // The version is in the file itself while the agent runs: packages of older agents read it
    // there.
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

/// Version 7 renamed tables and columns.
#[test]
fn a_database_of_version_6_is_read_and_upgraded_under_the_present_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = of_version(6, folder.path());
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "INSERT INTO files (sequence, file_id, open_count, mapped_count, opened_count) VALUES (3, 9, 1, 2, 5);
             INSERT INTO absences VALUES (3, 'files', 'denied', 'fd', 4);
             INSERT INTO nodes (sequence, node, mem_total_bytes, mem_free_bytes, lotsfree_bytes)
             VALUES (3, 1, 10, 5, 6);
             INSERT INTO events VALUES (4, 1000, 'sleep', 7, NULL);
             UPDATE samples SET lotsfree_bytes = 8, running_count = 9",
        )
        .unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let values = |connection: Connection| {
        let value =
            |query: &str| -> i64 { connection.query_row(query, [], |row| row.get(0)).unwrap() };
        [
            "SELECT is_complete_state FROM samples",
            "SELECT mapping_processes_count FROM files",
            "SELECT start_boottime_ms FROM processes",
            "SELECT missing_count FROM missing_values JOIN samples USING (sequence)",
            "SELECT opens_count FROM files",
            "SELECT reserve_bytes FROM numa_nodes WHERE numa_node = 1",
            "SELECT duration_ms FROM events",
            "SELECT reserve_bytes FROM samples",
            "SELECT running_tasks_count FROM samples",
        ]
        .map(value)
    };
    let expected = [1, 2, 0, 4, 5, 6, 7, 8, 9];
    assert_eq!(values(open_to_read(&path).unwrap()), expected);
    let status = gleaner_agent::status::read(&path, 90_000, 2000).unwrap();
    assert_eq!(status.missing_values[0].missing_count, 4);
    let root = folder.path().join("dataset");
    let exported = export(&path, &root).unwrap();
    assert_eq!((exported.rows_count, exported.last_sequence), (8, 4));
    let dataset = gleaner_dataset::Dataset::open(&root).unwrap();
    for name in ["missing_values", "numa_nodes", "files", "events"] {
        assert_eq!(dataset.rows(&table(name).unwrap()), 1, "{name}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);

    drop(Store::open(&path, Some("host-a"), 9).unwrap());
    assert_eq!(values(Connection::open(&path).unwrap()), expected);
    let again = export(&path, &root).unwrap();
    assert_eq!((again.rows_count, again.last_sequence), (0, 4));
}

/// Row counts of the database, and whether a sample must have a time since boot.
fn state(path: &Path) -> (i64, i64, i64, i64) {
    let connection = Connection::open(path).unwrap();
    let number =
        |query: &str| -> i64 { connection.query_row(query, [], |row| row.get(0)).unwrap() };
    (
        number("PRAGMA user_version"),
        number("SELECT \"notnull\" FROM pragma_table_info('samples') WHERE name = 'boottime_ms'"),
        number("SELECT count(*) FROM samples WHERE boottime_ms = 1"),
        number("SELECT count(*) FROM processes"),
    )
}

/// Copies a database with its log as a power cut would leave them.
fn cut(path: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join("trace.db");
    for ending in ["", "-wal"] {
        let from = gleaner_agent::state_files::beside(path, ending);
        if from.exists() {
            let to = gleaner_agent::state_files::beside(&copy, ending);
            std::fs::copy(from, to).unwrap();
        }
    }
    copy
}

#[test]
fn a_power_cut_in_the_steps_from_version_4_on_leaves_version_4_and_all_rows() {
    let [folder, midway, after] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let path = of_version(4, folder.path());
    let before = (4, 1, 1, 1);
    assert_eq!(state(&path), before);
    let mut connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .unwrap();
    connection
        .pragma_update(None, "foreign_keys", true)
        .unwrap();
    // The cache is so small that uncommitted pages go into the log as well.
    connection.pragma_update(None, "cache_size", 1).unwrap();
    let transaction = connection.transaction().unwrap();
    transaction.execute_batch(MIGRATIONS[4]).unwrap();
    transaction
        .execute_batch("UPDATE processes SET name = hex(zeroblob(200000)); PRAGMA user_version = 5")
        .unwrap();
    assert_eq!(state(&cut(&path, midway.path())), before);
    transaction.rollback().unwrap();
    drop(connection);
    assert_eq!(state(&path), before);

    // Opens the database as the agent does.
    let file_before = std::fs::read(&path).unwrap();
    let (store, aside) = Store::open(&path, Some("host-a"), 9).unwrap();
    assert_eq!(aside, None);
    assert_eq!(
        state(&cut(&path, after.path())),
        (i64::from(SCHEMA_VERSION), 0, 1, 1)
    );
    // If the log ends after any frame that the agent wrote, the database has either the old state or the new
    // one.
    let log = std::fs::read(gleaner_agent::state_files::beside(&path, "-wal")).unwrap();
    let frame_bytes = 24 + u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    let frames_count = (log.len() - 32) / frame_bytes;
    assert!(frames_count > 1, "nothing to cut");
    for kept in 0..=frames_count {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("trace.db");
        std::fs::write(&copy, &file_before).unwrap();
        let written = &log[..32 + kept * frame_bytes];
        std::fs::write(folder.path().join("trace.db-wal"), written).unwrap();
        let found = state(&copy);
        assert!(
            found == before || found == (i64::from(SCHEMA_VERSION), 0, 1, 1),
            "{kept} of {frames_count} frames: {found:?}"
        );
    }
    drop(store);
    let connection = Connection::open(&path).unwrap();
    let check: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    connection
        .execute_batch("UPDATE samples SET boottime_ms = NULL")
        .unwrap();
}

/// The sampling host's own time since boot must not replace that of a captured tree.
#[test]
fn a_tree_without_uptime_is_recorded_and_exported_without_a_time_since_boot() {
    let copy = copies::Copy::of("desktop-6.1-amd64");
    copy.alter("t1/proc/uptime", &copies::Alteration::Gone);
    let (folder, database) = crate::trace::new_trace();
    let run = || {
        let mut command = on(&database);
        for (option, name) in [("--proc-root", "t1/proc"), ("--sys-root", "t1/sys")] {
            command.arg(option).arg(copy.altered(Path::new(name)));
        }
        let rest = ["--page-size", "4096", "--ticks", "100"];
        let run = ["run", "--sample-interval", "100ms", "--samples", "2"];
        succeed(command.args(rest).args(run));
    };
    run();
    let told = "SELECT count(*) FROM samples WHERE boottime_ms IS NOT NULL";
    assert_eq!(number(&database, told), 0);
    let intervals = "SELECT count(*) FROM samples WHERE interval_ms > 0";
    assert_eq!(number(&database, intervals), 1, "this host's clock tells");
    let reason =
        "SELECT count(*) FROM missing_values WHERE item = 'boottime_ms' AND reason = 'unsupported'";
    assert_eq!(number(&database, reason), 1);
    // The next run finds a sample without its host's time since boot.
    run();
    let stopped = "SELECT count(*) FROM gaps WHERE cause = 'stopped'";
    assert_eq!(number(&database, stopped), 1);

    let exported = folder.path().join("dataset");
    export(&database, &exported).unwrap();
    let dataset = gleaner_dataset::Dataset::open(&exported).unwrap();
    let host = dataset.hosts().unwrap().into_iter().next().unwrap();
    let rows = dataset
        .read_host(&SampleRow::TABLE, &host, &["boottime_ms"])
        .unwrap();
    let column = rows.column_by_name("boottime_ms").unwrap();
    assert_eq!((rows.num_rows(), column.null_count()), (4, 4));
}
