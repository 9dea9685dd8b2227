//! Damaged databases: detects damage, and sets the database aside with its log.

use crate::Error;
use crate::state_files::beside;
use crate::trace::database::columns;
use gleaner_schemas::rows::TABLES;
use gleaner_schemas::sql::column_names;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// Number of damaged databases kept. At the next damage the agent ends, since the disk is at fault.
const MOST_KEPT: usize = 8;

/// Suffix of a damaged database's name, before the time.
const ENDING: &str = ".damaged-";

/// A damaged database that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedDatabase {
    /// Present path of the database.
    pub path: PathBuf,
    /// Damage that was found.
    pub what: String,
}

/// Checks a database that was not closed: a power cut may have lost pages that SQLite had written. For other
/// databases it is not called, since it reads the whole database (0.1 s for 100 MiB in the page cache).
///
/// # Errors
/// [`Error::Damaged`], [`Error::Database`].
pub(crate) fn check_integrity(path: &Path, connection: &Connection) -> Result<(), Error> {
    let found: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(Error::database(path))?;
    if found == "ok" {
        return Ok(());
    }
    Err(Error::Damaged {
        path: path.to_owned(),
        what: found.lines().next().unwrap_or_default().to_owned(),
    })
}

/// Detects a flipped bit in a table's definition, after which SQLite reads the table but no row fits it.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Database`].
pub(crate) fn check_columns(path: &Path, connection: &Connection) -> Result<(), Error> {
    for table in &TABLES {
        let present = columns(connection, table.name).map_err(Error::database(path))?;
        let is_there = |name: &str| present.iter().any(|column| column == name);
        if let Some(lacking) = column_names(table).into_iter().find(|c| !is_there(c)) {
            return Err(Error::Damaged {
                path: path.to_owned(),
                what: format!("table {} has no column {lacking}", table.name),
            });
        }
    }
    Ok(())
}

/// Rejects an empty database beside a log that is not empty: SQLite would treat the database as new and
/// drop the log.
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn reject_empty_database(path: &Path) -> Result<(), Error> {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    if path.exists() && length(path) == 0 && length(&beside(path, "-wal")) > 0 {
        return Err(Error::Damaged {
            path: path.to_owned(),
            what: "the file is empty and its log is not".to_owned(),
        });
    }
    Ok(())
}

/// Renames a damaged database with its log, so that its readable part can be exported.
///
/// # Errors
/// [`Error::DamagedAgain`]; [`Error::Write`] if the database cannot be renamed.
pub(crate) fn set_aside(path: &Path, cause: &Error, now_ms: i64) -> Result<DamagedDatabase, Error> {
    let kept = damaged_databases(path);
    if kept.len() >= MOST_KEPT {
        return Err(Error::DamagedAgain {
            path: path.to_owned(),
            count: kept.len(),
        });
    }
    let name = |attempt: usize| {
        let again = if attempt == 0 {
            String::new()
        } else {
            format!("-{attempt}")
        };
        beside(path, &format!("{ENDING}{}{again}", utc(now_ms)))
    };
    let aside = (0..=MOST_KEPT)
        .map(name)
        .find(|name| !name.exists())
        .unwrap_or_else(|| name(0)); // fewer databases are kept than names are tried
    for ending in ["-wal", "-shm", ""] {
        let from = beside(path, ending);
        if from.exists() {
            std::fs::rename(&from, beside(&aside, ending))
                .map_err(|source| Error::Write { path: from, source })?;
        }
    }
    Ok(DamagedDatabase {
        path: aside,
        what: cause.without_path(),
    })
}

/// Damaged databases beside the one at `path`, oldest first.
#[must_use]
pub fn damaged_databases(path: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let start = format!("{}{ENDING}", name.to_string_lossy());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&start) && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|e| e.path()).filter(is_one).collect();
    found.sort();
    found
}

/// UTC time like `20261121T142300Z`, computed by SQLite.
fn utc(time_ms: i64) -> String {
    let query = "SELECT strftime('%Y%m%dT%H%M%SZ', ? / 1000, 'unixepoch')";
    Connection::open_in_memory()
        .and_then(|c| c.query_row(query, [time_ms], |row| row.get(0)))
        .unwrap_or_else(|_| time_ms.to_string()) // outside SQLite's calendar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::database::migrate;

    #[test]
    fn a_column_with_another_name_is_damage() {
        for table in &TABLES {
            for column in column_names(table) {
                let mut connection = Connection::open_in_memory().unwrap();
                migrate(Path::new("trace.db"), &mut connection, Some("a"), 0).unwrap();
                check_columns(Path::new("trace.db"), &connection).unwrap();
                let name = table.name;
                let rename = format!("ALTER TABLE {name} RENAME COLUMN {column} TO flipped");
                connection.execute_batch(&rename).unwrap();
                let error = check_columns(Path::new("trace.db"), &connection).unwrap_err();
                let lacking = format!("table {name} has no column {column}");
                assert!(error.to_string().contains(&lacking), "{error}");
            }
        }
    }

    #[test]
    fn a_database_is_renamed_with_its_log_and_a_second_takes_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        let cause = || Error::Damaged {
            path: path.clone(),
            what: "torn".into(),
        };
        let mut names = Vec::new();
        for round in 0..MOST_KEPT {
            std::fs::write(&path, [round as u8]).unwrap();
            std::fs::write(beside(&path, "-wal"), [7]).unwrap();
            let aside = set_aside(&path, &cause(), 1_795_219_380_000).unwrap();
            assert_eq!(std::fs::read(&aside.path).unwrap(), [round as u8]);
            assert!(beside(&aside.path, "-wal").exists() && !path.exists());
            assert_eq!(aside.what, "torn");
            names.push(aside.path);
        }
        let first = folder.path().join("trace.db.damaged-20261121T000300Z");
        assert_eq!(names[0], first);
        assert_eq!(damaged_databases(&path), names);
        std::fs::write(&path, "").unwrap();
        let again = set_aside(&path, &cause(), 0).unwrap_err();
        assert!(matches!(
            again,
            Error::DamagedAgain {
                count: MOST_KEPT,
                ..
            }
        ));
        assert!(path.exists(), "nothing is lost");
    }
}
