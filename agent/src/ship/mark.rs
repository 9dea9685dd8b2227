//! Progress of shipping in the database: two entries of its `meta` table, the only ones that shipping
//! writes.

use crate::Error;
use crate::state_files::beside;
use crate::trace::database::{last_sequence, meta, records_tables};
use gleaner_schemas::units::Seconds;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Key in `meta` of the last record that the collector has acknowledged, as far as this host knows.
pub(crate) const ACKNOWLEDGED: &str = "acknowledged_sequence";

pub(crate) use crate::trace::database::FLOOR;

/// Timeout for the agent's transaction.
const PATIENCE: Duration = Duration::from_secs(5);

/// Progress of shipping, from the database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShippingProgress {
    /// Last record that the collector has acknowledged; `None` if it never acknowledged any.
    pub acknowledged_sequence: Option<i64>,
    /// Number of later records.
    pub pending_records_count: i64,
    /// Age of the oldest record not shipped yet, in ms.
    pub lag_ms: Option<i64>,
    /// Last record that the collector has and this database lost, since it was restored from an older copy.
    /// New records take higher numbers.
    pub lost_until_sequence: Option<i64>,
}

impl ShippingProgress {
    /// A line of text; empty if nothing was ever shipped.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        let mut text = match (self.acknowledged_sequence, self.lag_ms) {
            (None, _) => String::new(),
            (Some(_), Some(lag_ms)) => format!(
                "  shipped         all but {} records, the oldest written {} ago\n",
                self.pending_records_count,
                Seconds::from_ms(lag_ms)
            ),
            (Some(_), None) => "  shipped         all\n".to_owned(),
        };
        if let Some(lost) = self.lost_until_sequence {
            text += &format!(
                "the collector has more than this database, which was put back from an older copy or lost its newest \
                 records; what comes next is numbered from {} on, and shipped\n",
                lost.saturating_add(1)
            );
        }
        text
    }

    /// Reads the progress from the trace open as `connection`.
    ///
    /// # Errors
    /// Errors of SQLite.
    pub(crate) fn read(connection: &Connection, now_ms: i64) -> rusqlite::Result<Self> {
        let number = |key| -> rusqlite::Result<Option<i64>> {
            Ok(meta(connection, key)?.and_then(|text| text.parse().ok()))
        };
        let acknowledged_sequence = number(ACKNOWLEDGED)?;
        let after = acknowledged_sequence.unwrap_or(0);
        let mut shipping = Self {
            acknowledged_sequence,
            ..Self::default()
        };
        let mut oldest_time_ms: Option<i64> = None;
        for table in records_tables(connection)? {
            let count = format!("SELECT count(*) FROM {table} WHERE sequence > ?");
            let of_table: i64 = connection.query_row(&count, [after], |row| row.get(0))?;
            shipping.pending_records_count += of_table;
            let first =
                format!("SELECT time_ms FROM {table} WHERE sequence > ? ORDER BY sequence LIMIT 1");
            let time_ms = connection.query_row(&first, [after], |row| row.get(0));
            oldest_time_ms = match (oldest_time_ms, time_ms.optional()?) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        shipping.lag_ms = oldest_time_ms.map(|time_ms| now_ms - time_ms);
        let last = last_sequence(connection)?;
        shipping.lost_until_sequence = number(FLOOR)?.filter(|floor| *floor > last);
        Ok(shipping)
    }
}

/// Writes one of the two entries if the database still has the id `database_id`. Delays the agent by one
/// small transaction, and leaves checkpoints of the log to the agent.
///
/// # Errors
/// [`Error::Database`].
pub(crate) fn remember(
    path: &Path,
    database_id: &str,
    key: &str,
    sequence: i64,
) -> Result<(), Error> {
    // An existing log belongs to the running agent, which moves it into the database; after a power cut the
    // log shows the next agent that the database was not closed. Readers of a closed database leave an
    // empty log.
    let is_in_use = std::fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    let write = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, is_in_use)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute(
            "INSERT INTO meta (key, value) SELECT ?, ? FROM meta WHERE key = 'database_id' AND value = ? \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, sequence.to_string(), database_id),
        )
    };
    write().map(drop).map_err(Error::database(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::store::Store;

    #[test]
    fn what_is_remembered_is_of_one_database_and_its_log_is_left_to_the_agent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        let (store, _) = Store::open(&path, Some("host-a"), 0).unwrap();
        let connection = crate::trace::database::open_to_read(&path).unwrap();
        let id = meta(&connection, "database_id").unwrap().unwrap();
        remember(&path, &id, ACKNOWLEDGED, 7).unwrap();
        remember(&path, "another", ACKNOWLEDGED, 9).unwrap();
        assert_eq!(
            meta(&connection, ACKNOWLEDGED).unwrap().as_deref(),
            Some("7")
        );
        remember(&path, &id, ACKNOWLEDGED, 5).unwrap(); // the collector was restored from an older copy
        let shipping = ShippingProgress::read(&connection, 0).unwrap();
        assert_eq!(shipping.acknowledged_sequence, Some(5));
        assert_eq!(shipping.lost_until_sequence, None);
        remember(&path, &id, FLOOR, 11).unwrap();
        let shipping = ShippingProgress::read(&connection, 0).unwrap();
        assert_eq!(shipping.lost_until_sequence, Some(11));

        // The log of a killed agent stays, as evidence for the next agent.
        drop(connection);
        std::mem::forget(store);
        assert!(beside(&path, "-wal").exists());
        remember(&path, &id, ACKNOWLEDGED, 8).unwrap();
        assert!(beside(&path, "-wal").exists());
    }

    #[test]
    fn a_closed_database_stays_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        drop(Store::open(&path, Some("host-a"), 0).unwrap());
        let id = {
            let connection = crate::trace::database::open_to_read(&path).unwrap();
            meta(&connection, "database_id").unwrap().unwrap()
        };
        remember(&path, &id, ACKNOWLEDGED, 7).unwrap();
        assert!(!beside(&path, "-wal").exists());
    }
}
