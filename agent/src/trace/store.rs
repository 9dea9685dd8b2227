//! The trace: an SQLite database that one agent writes, one transaction per sample.

use crate::Error;
use crate::clock::Moment;
use crate::config::Limits;
use crate::state_files::{beside, lock_beside};
use crate::trace::damage::{
    DamagedDatabase, check_columns, check_integrity, reject_empty_database, set_aside,
};
use crate::trace::database::{FLOOR, last_sequence, migrate};
use crate::trace::gap::LastSample;
use crate::trace::retention::Retention;
use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::rows::{
    ActivityRow, CgroupRow, EventRow, FileRow, GapRow, HostRow, MissingValueRow, NumaNodeRow,
    ProcessRow, SampleRow,
};
use gleaner_schemas::sql::insert;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, Transaction, params_from_iter};
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Number of record numbers skipped before the samples of a new boot: far more than a power cut can lose, and
/// more than are written within two years, the age of a possible backup, at a sample every 90 s.
const LEFT_OUT_AT_BOOT: i64 = 1_000_000;

/// Contents of one transaction: a sample, and the events and gap before it.
#[derive(Debug)]
pub struct Record<'a> {
    /// Wall-clock time of all rows.
    pub time_ms: i64,
    /// Time without samples that ends with this sample.
    pub gap: Option<&'a GapRow>,
    /// Row of the host: at the start, each UTC day and after a gap.
    pub host: Option<&'a HostRow>,
    /// Events since the last sample that are not written yet.
    pub events: &'a [Event],
    /// Row of the sample.
    pub sample: &'a SampleRow,
    /// Rows of the sample's active processes.
    pub processes: &'a [ProcessRow],
    /// Rows of the sample's files, as far as they changed.
    pub files: &'a [FileRow],
    /// Rows of the sample's sources of activity.
    pub activity: &'a [ActivityRow],
    /// Rows of the sample's NUMA nodes.
    pub numa_nodes: &'a [NumaNodeRow],
    /// Rows of the sample's control groups.
    pub cgroups: &'a [CgroupRow],
    /// Rows of the values that the sample could not read.
    pub missing_values: &'a [MissingValueRow],
}

/// Time and row of an event.
pub type Event = (i64, EventRow);

/// The database, open for writing.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    sequence: i64,
    retention: Retention,
    /// Lock of the database, held until the process ends, however it ends.
    lock: File,
}

impl Store {
    /// Opens the trace of the host `host_id` for writing, or begins one; a host without an id gets a random
    /// one, which the database stores. A damaged database is set aside and a new one begun.
    ///
    /// # Errors
    /// [`Error::Locked`] if another agent writes it; [`Error::ForeignDatabase`], [`Error::NewerDatabase`],
    /// [`Error::OtherHost`] if this agent must not write it; [`Error::Write`] and [`Error::Database`] if it
    /// cannot be written; [`Error::DamagedAgain`].
    pub fn open(
        path: &Path,
        host_id: Option<&str>,
        now_ms: i64,
    ) -> Result<(Self, Option<DamagedDatabase>), Error> {
        if let Some(folder) = path.parent() {
            let mut options = DirBuilder::new();
            let made = options.recursive(true).mode(0o750).create(folder);
            made.map_err(|source| Error::Write {
                path: path.to_owned(),
                source,
            })?;
        }
        let lock = lock(path)?;
        match connect(path, host_id, now_ms) {
            Err(cause) if cause.is_damage() => begin_anew(path, lock, host_id, &cause, now_ms),
            connected => {
                let (connection, sequence) = connected?;
                let path = path.to_owned();
                let store = Self {
                    path,
                    connection,
                    sequence,
                    retention: Retention::default(),
                    lock,
                };
                Ok((store, None))
            }
        }
    }

    /// Continues at unused numbers if the last sample is of another boot than `boot_id`. A power cut loses
    /// the newest transactions, which may have been shipped already: a second record of the same number would
    /// be dropped as a repetition.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn begin_boot(&mut self, boot_id: Option<&str>) -> Result<(), Error> {
        let last = self.last_sample()?.and_then(|last| last.boot_id);
        let is_same = boot_id.is_some() && last.as_deref() == boot_id;
        if self.sequence > 0 && !is_same {
            self.sequence += LEFT_OUT_AT_BOOT;
        }
        Ok(())
    }

    /// Sets the database aside, which `cause` shows to be damaged, and begins a new one.
    ///
    /// # Errors
    /// Errors of [`Store::open`]; the database is closed.
    pub fn begin_anew(
        self,
        host_id: Option<&str>,
        cause: &Error,
        now_ms: i64,
    ) -> Result<(Self, Option<DamagedDatabase>), Error> {
        let Self {
            path,
            connection,
            lock,
            ..
        } = self;
        drop(connection); // otherwise it would write its log's pages to a moved database
        begin_anew(&path, lock, host_id, cause, now_ms)
    }

    /// Returns the last sample written, of this run or an earlier one.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn last_sample(&self) -> Result<Option<LastSample>, Error> {
        let query =
            "SELECT time_ms, boottime_ms, boot_id FROM samples ORDER BY sequence DESC LIMIT 1";
        let row = self.connection.query_row(query, [], |row| {
            Ok(LastSample {
                time_ms: row.get(0)?,
                boottime_ms: row.get(1)?,
                boot_id: row.get(2)?,
            })
        });
        row.optional().map_err(Error::database(&self.path))
    }

    /// Writes one sample with all its rows, atomically.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let written = write(&mut self.connection, self.sequence, record);
        self.sequence = written.map_err(Error::database(&self.path))?;
        Ok(())
    }

    /// Returns true if the trace has an event of this kind and detail.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn has_event(&self, kind: &str, detail: &str) -> Result<bool, Error> {
        let query = "SELECT EXISTS (SELECT 1 FROM events WHERE kind = ? AND detail = ?)";
        let found = self
            .connection
            .query_row(query, [kind, detail], |row| row.get(0));
        found.map_err(Error::database(&self.path))
    }

    /// Writes events without a sample.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn write_events(&mut self, events: &[Event]) -> Result<(), Error> {
        let wrong = Error::database(&self.path);
        let transaction = self.connection.transaction().map_err(&wrong)?;
        let sequence = insert_events(&transaction, self.sequence, events).map_err(&wrong)?;
        transaction.commit().map_err(&wrong)?;
        self.sequence = sequence;
        Ok(())
    }

    /// Deletes some of the records beyond `limits`. Returns true if none remain. This takes about 5 ms, and
    /// longer if the log is then moved into the database.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn retain(&mut self, limits: &Limits, now: &Moment) -> Result<bool, Error> {
        let step = self.retention.step(&mut self.connection, limits, now);
        step.map_err(Error::database(&self.path))
    }
}

/// Opens and migrates a database; returns it with the number of its last record.
fn connect(path: &Path, host_id: Option<&str>, now_ms: i64) -> Result<(Connection, i64), Error> {
    reject_empty_database(path)?;
    let was_closed = !beside(path, "-wal").exists();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o640);
    // SQLite's additional files get the mode of this file.
    options.open(path).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })?;
    let database = Error::database(path);
    let mut connection = Connection::open(path).map_err(&database)?;
    migrate(path, &mut connection, host_id, now_ms)?;
    check_columns(path, &connection)?;
    if !was_closed {
        check_integrity(path, &connection)?;
    }
    let sequence = last_sequence(&connection).map_err(&database)?;
    Ok((connection, sequence))
}

fn begin_anew(
    path: &Path,
    lock: File,
    host_id: Option<&str>,
    cause: &Error,
    now_ms: i64,
) -> Result<(Store, Option<DamagedDatabase>), Error> {
    let aside = set_aside(path, cause, now_ms)?;
    let (connection, sequence) = connect(path, host_id, now_ms)?;
    let path = path.to_owned();
    let store = Store {
        path,
        connection,
        sequence,
        retention: Retention::default(),
        lock,
    };
    Ok((store, Some(aside)))
}

fn write(connection: &mut Connection, last: i64, record: &Record<'_>) -> rusqlite::Result<i64> {
    let transaction = connection.transaction()?;
    let time_ms = Some(record.time_ms);
    let mut sequence = above_floor(&transaction, last)?;
    if let Some(gap) = record.gap {
        sequence += 1;
        insert_rows(&transaction, sequence, time_ms, std::slice::from_ref(gap))?;
    }
    if let Some(host) = record.host {
        sequence += 1;
        insert_rows(&transaction, sequence, time_ms, std::slice::from_ref(host))?;
    }
    sequence = insert_events(&transaction, sequence, record.events)? + 1;
    insert_rows(
        &transaction,
        sequence,
        time_ms,
        std::slice::from_ref(record.sample),
    )?;
    insert_rows(&transaction, sequence, None, record.processes)?;
    insert_rows(&transaction, sequence, None, record.files)?;
    insert_rows(&transaction, sequence, None, record.activity)?;
    insert_rows(&transaction, sequence, None, record.numa_nodes)?;
    insert_rows(&transaction, sequence, None, record.cgroups)?;
    insert_rows(&transaction, sequence, None, record.missing_values)?;
    transaction.commit()?;
    Ok(sequence)
}

/// Returns `last`, or the number that shipping found in use at the collector if that is higher.
fn above_floor(transaction: &Transaction<'_>, last: i64) -> rusqlite::Result<i64> {
    let mut statement = transaction
        .prepare_cached("SELECT max(?, CAST(value AS INTEGER)) FROM meta WHERE key = ?")?;
    let found = statement.query_row((last, FLOOR), |row| row.get(0));
    Ok(found.optional()?.unwrap_or(last))
}

/// Writes events as records after `last`; returns the last record's number.
fn insert_events(
    transaction: &Transaction<'_>,
    last: i64,
    events: &[Event],
) -> rusqlite::Result<i64> {
    let mut sequence = above_floor(transaction, last)?;
    for (time_ms, event) in events {
        sequence += 1;
        insert_rows(
            transaction,
            sequence,
            Some(*time_ms),
            std::slice::from_ref(event),
        )?;
    }
    Ok(sequence)
}

fn insert_rows<R: Row>(
    transaction: &Transaction<'_>,
    sequence: i64,
    time_ms: Option<i64>,
    rows: &[R],
) -> rusqlite::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut statement = transaction.prepare_cached(&insert(&R::TABLE))?;
    for row in rows {
        let identity = std::iter::once(sequence).chain(time_ms).map(Value::Integer);
        let values = identity.chain(row.to_values()).map(StoredValue);
        statement.execute(params_from_iter(values))?;
    }
    Ok(())
}

/// Value in the form that SQLite stores.
struct StoredValue(Value);

impl ToSql for StoredValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match &self.0 {
            Value::Null => ValueRef::Null,
            Value::Flag(v) => ValueRef::Integer(i64::from(*v)),
            Value::Integer(v) => ValueRef::Integer(*v),
            Value::Real(v) => ValueRef::Real(*v),
            Value::Text(v) => ValueRef::Text(v.as_bytes()),
        }))
    }
}

/// Takes the lock of a database, which one agent holds until its process ends, however it ends.
pub(crate) fn lock(path: &Path) -> Result<File, Error> {
    lock_beside(path, "-lock")?.ok_or_else(|| Error::Locked {
        path: path.to_owned(),
    })
}
