//! The database file: checks its owner and version, opens it for reading or migrates it.

use crate::Error;
use crate::identity;
use gleaner_schemas::rows::TABLES;
use gleaner_schemas::sql::{APPLICATION_ID, MIGRATIONS, view_by_present_names};
use gleaner_schemas::{SCHEMA_VERSION, renames};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use std::path::Path;
use std::time::Duration;

/// Timeout for another connection's lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens a trace for reading. Tables and columns that an older version named otherwise appear under their
/// present names.
///
/// # Errors
/// [`Error::NoDatabase`] if there is none, otherwise those of [`Store::open`].
pub fn open_to_read(path: &Path) -> Result<Connection, Error> {
    if !path.exists() {
        return Err(Error::NoDatabase {
            path: path.to_owned(),
        });
    }
    let database = Error::database(path);
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(&database)?;
    connection.busy_timeout(PATIENCE).map_err(&database)?;
    let found = version(path, &connection)?;
    if found == 0 {
        return Err(Error::NoDatabase {
            path: path.to_owned(),
        });
    }
    if found < SCHEMA_VERSION {
        show_present_names(&connection).map_err(&database)?;
    }
    Ok(connection)
}

/// Makes a temporary view under the present name for each table that an older version named otherwise. The
/// file is not written to.
fn show_present_names(connection: &Connection) -> rusqlite::Result<()> {
    let earlier = renames::TABLES.iter().map(|rename| rename.before);
    for stored in TABLES.iter().map(|table| table.name).chain(earlier) {
        if let Some(view) = view_by_present_names(stored, &columns(connection, stored)?) {
            connection.execute_batch(&view)?;
        }
    }
    Ok(())
}

/// Opens an existing trace for writing, without migrating it.
///
/// # Errors
/// Errors of [`open_to_read`].
pub(crate) fn open_to_write(path: &Path) -> Result<Connection, Error> {
    drop(open_to_read(path)?);
    let database = Error::database(path);
    let connection = Connection::open(path).map_err(&database)?;
    prepare(&connection).map_err(&database)?;
    Ok(connection)
}

/// Schema version of a database of this program; 0 for an empty one.
fn version(path: &Path, connection: &Connection) -> Result<u32, Error> {
    let database = Error::database(path);
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application_id = pragma("application_id").map_err(&database)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(&database)?;
    if application_id != APPLICATION_ID && (application_id != 0 || tables > 0) {
        return Err(Error::ForeignDatabase {
            path: path.to_owned(),
            application_id,
        });
    }
    let found = pragma("user_version").map_err(&database)? as u32;
    if found > SCHEMA_VERSION {
        return Err(Error::NewerDatabase {
            path: path.to_owned(),
            found,
            known: SCHEMA_VERSION,
        });
    }
    Ok(found)
}

/// Migrates a database to the present version and stores its host: `host_id`, or a random id for a host
/// without one.
///
/// # Errors
/// Errors of [`crate::trace::store::Store::open`].
pub(crate) fn migrate(
    path: &Path,
    connection: &mut Connection,
    host_id: Option<&str>,
    now_ms: i64,
) -> Result<(), Error> {
    let found = version(path, connection)?;
    let database = Error::database(path);
    prepare(connection).map_err(&database)?;
    if found < SCHEMA_VERSION {
        let meta = [
            (
                "host_id",
                host_id.map_or_else(identity::random_id, |id| Ok(id.to_owned()))?,
            ),
            ("database_id", identity::random_id()?),
            ("created_time_ms", now_ms.to_string()),
        ];
        step_up(connection, found, &meta).map_err(&database)?;
        // Moves the log into the file; this may wait for readers. The package of an older agent reads the
        // version in the file's header.
        let into_the_file = "PRAGMA wal_checkpoint(FULL)";
        connection
            .query_row(into_the_file, [], |_| Ok(()))
            .map_err(&database)?;
    }
    let recorded = meta(connection, "host_id").map_err(&database)?;
    if host_id.is_some() && recorded.as_deref() != host_id {
        return Err(Error::OtherHost {
            path: path.to_owned(),
        });
    }
    Ok(())
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?; // for a new database, before its first page
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // A negative size is in KiB. Rows are only appended, so a larger cache would be useless.
    connection.pragma_update(None, "cache_size", -256)?;
    connection.pragma_update(None, "secure_delete", true)?; // deleted data are overwritten
    connection.pragma_update(None, "foreign_keys", true)
}

fn step_up(
    connection: &mut Connection,
    found: u32,
    meta: &[(&str, String)],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    if found == 0 {
        for entry in meta {
            transaction.execute(
                "INSERT INTO meta (key, value) VALUES (?, ?)",
                (entry.0, &entry.1),
            )?;
        }
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()
}

/// Returns an entry of the `meta` table.
///
/// # Errors
/// Errors of SQLite.
pub fn meta(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    let query = "SELECT value FROM meta WHERE key = ?";
    connection
        .query_row(query, [key], |row| row.get(0))
        .optional()
}

/// Key in `meta` of the sequence floor: new records get higher numbers. Shipping sets it if the collector has
/// records that the database lost.
pub(crate) const FLOOR: &str = "sequence_floor";

/// Columns that `table` has in this database: those of the version that wrote the database. None if the table
/// was added later.
///
/// # Errors
/// Errors of SQLite.
pub fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare("SELECT name FROM pragma_table_info(?)")?
        .query_map([table], |row| row.get(0))?
        .collect()
}

/// Sequence number of the last record; 0 without records.
///
/// # Errors
/// Errors of SQLite.
pub fn last_sequence(connection: &Connection) -> rusqlite::Result<i64> {
    records_tables(connection)?
        .iter()
        .try_fold(0, |last, table| {
            let query = format!("SELECT coalesce(max(sequence), 0) FROM {table}");
            let of_table: i64 = connection.query_row(&query, [], |row| row.get(0))?;
            Ok(last.max(of_table))
        })
}

/// Tables of the database whose rows are records of their own, with a time.
///
/// # Errors
/// Errors of SQLite.
pub fn records_tables(connection: &Connection) -> rusqlite::Result<Vec<&'static str>> {
    let mut found = Vec::new();
    for table in TABLES.iter().filter(|t| t.has_own_time()) {
        if !columns(connection, table.name)?.is_empty() {
            found.push(table.name);
        }
    }
    Ok(found)
}
