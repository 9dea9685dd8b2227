//! Gives the disk back what deletion left free in the database, at once and all of it.

use crate::Error;
use crate::state_files::beside;
use crate::trace::database::open_to_write;
use crate::trace::retention::{INCREMENTAL, free_pages, pragma};
use crate::trace::store::lock;
use gleaner_schemas::units::Bytes;
use rusqlite::Connection;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What it came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Vacuumed {
    /// The database.
    pub database: PathBuf,
    /// Its size before, that of the log beside it included.
    pub before_bytes: u64,
    /// And after.
    pub after_bytes: u64,
}

/// Makes the trace at `path` as small as what it holds. Only with the agent stopped: a running one gives
/// pages back by itself.
///
/// # Errors
/// [`Error::NoDatabase`] when there is none; [`Error::Locked`] when an agent writes it; [`Error::Database`]
/// when it cannot be written: a database of an older agent, which is written anew, needs its own size
/// free twice.
pub fn vacuum(path: &Path) -> Result<Vacuumed, Error> {
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
    drop(connection); // the last one to close takes the log away
    Ok(Vacuumed {
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
    // The file itself shrinks as the log is moved into it.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

impl Vacuumed {
    /// For people.
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
