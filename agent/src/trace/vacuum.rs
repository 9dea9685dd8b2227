//! Returns all free pages of the database to the disk in one step.

use crate::Error;
use crate::state_files::beside;
use crate::trace::database::open_to_write;
use crate::trace::retention::{INCREMENTAL, free_pages, pragma};
use crate::trace::store::lock;
use gleaner_schemas::units::Bytes;
use rusqlite::Connection;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Result of a vacuum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VacuumResult {
    /// Path of the database.
    pub database: PathBuf,
    /// Size of the database and its log before, in bytes.
    pub before_bytes: u64,
    /// Size afterwards, in bytes.
    pub after_bytes: u64,
}

/// Shrinks the trace at `path` to the size of its content. This requires that the agent is stopped; a
/// running agent returns pages by itself.
///
/// # Errors
/// [`Error::NoDatabase`] without a trace; [`Error::Locked`] if an agent writes it; [`Error::Database`] if it
/// cannot be written: a database of an older agent is rewritten, and needs twice its own size of free space.
pub fn vacuum(path: &Path) -> Result<VacuumResult, Error> {
    let _lock = if path.exists() {
        lock(path)?
    } else {
        return Err(Error::NoDatabase {
            path: path.to_owned(),
        });
    };
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    let size = || size(path) + size(&beside(path, "-wal"));
    let before_bytes = size();
    let connection = open_to_write(path)?;
    shrink(&connection).map_err(Error::database(path))?;
    drop(connection); // closing the last connection removes the log
    Ok(VacuumResult {
        database: path.to_owned(),
        before_bytes,
        after_bytes: size(),
    })
}

fn shrink(connection: &Connection) -> rusqlite::Result<()> {
    if pragma(connection, "auto_vacuum")? == INCREMENTAL {
        free_pages(connection, pragma(connection, "freelist_count")?)?;
    } else {
        connection.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
        connection.execute_batch("VACUUM")?;
    }
    // The file shrinks only when the log is moved into it.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

impl VacuumResult {
    /// Renders the result as text.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{}: {} before, {} now\n",
            self.database.display(),
            Bytes::from(self.before_bytes),
            Bytes::from(self.after_bytes),
        )
    }
}
