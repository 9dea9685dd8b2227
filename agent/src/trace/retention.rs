//! Retention: the oldest records are deleted if they are too old, or the database is too large.
//!
//! The trace is cut only before a sample that was stored with a whole state (all rows, not only changes), so
//! that the remainder can be read by itself. Records are deleted in short transactions, from the cut
//! backwards. Whenever the agent ends in between, the trace still begins with a whole state, and readers see
//! the deleted middle as a gap.

use crate::clock::Moment;
use crate::config::Limits;
use crate::trace::gap::CLOCK_STEP_MS;
use gleaner_schemas::rows::TABLES;
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::time::{Duration, Instant};

/// Time after which a transaction begins no more work.
const SLICE: Duration = Duration::from_millis(5);

/// Time for which the clock must have run without being set before ages are checked: a clock that is wrong at
/// boot is corrected (NTP) before records are deleted because of it.
const STEADY_MS: i64 = 3_600_000;

/// Free pages up to one eighth of the file stay in the file, for the next records.
const SPARE_PART: i64 = 8;

/// Number of pages returned to the disk between two checks of the time.
const PAGES_AT_ONCE: i64 = 16;

/// Query for the ends of stretches: samples that are followed by a row of the host and then by a whole state.
const ENDS: &str = "SELECT last.sequence FROM hosts h \
    JOIN samples next ON next.sequence = (SELECT min(sequence) FROM samples WHERE sequence > h.sequence) \
    JOIN samples last ON last.sequence = (SELECT max(sequence) FROM samples WHERE sequence < h.sequence) \
    WHERE next.is_complete_state";

/// Keeps one database within its limits, by a little work after each sample.
#[derive(Debug)]
pub(crate) struct Retention {
    slice: Duration,
    /// Moment at which the clock was last set or ages were last checked, and the newest moment since.
    steady: Option<(Moment, Moment)>,
    /// Last sample to delete, with all records before it.
    doomed: Option<i64>,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            slice: SLICE,
            steady: None,
            doomed: None,
        }
    }
}

impl Retention {
    /// Deletes some of the records beyond the limits, then returns some free pages to the disk. Returns true
    /// if nothing remains to be done.
    pub(crate) fn step(
        &mut self,
        connection: &mut Connection,
        limits: &Limits,
        now: &Moment,
    ) -> rusqlite::Result<bool> {
        let started = Instant::now();
        let transaction = connection.transaction()?;
        if self.hour_has_passed(now) {
            let age_ms = i64::try_from(limits.age.as_millis()).unwrap_or(i64::MAX);
            let newest = format!("{ENDS} AND last.time_ms < ? ORDER BY h.sequence DESC LIMIT 1");
            let before = [now.time_ms.saturating_sub(age_ms)];
            let too_old = transaction.query_row(&newest, before, |row| row.get(0));
            self.doomed = self.doomed.max(too_old.optional()?);
        }
        loop {
            if self.doomed.is_none() && used_bytes(&transaction)? > limits.database_bytes {
                let oldest = format!("{ENDS} ORDER BY h.sequence LIMIT 1");
                let mut statement = transaction.prepare_cached(&oldest)?;
                self.doomed = statement.query_row([], |row| row.get(0)).optional()?;
            }
            let Some(until) = self.doomed else { break };
            if !delete_last_sample(&transaction, until)? {
                delete_records(&transaction, until)?;
                self.doomed = None;
            }
            if started.elapsed() >= self.slice {
                transaction.commit()?;
                return Ok(false);
            }
        }
        let is_done = release_free_pages(&transaction, || started.elapsed() < self.slice)?;
        transaction.commit()?;
        Ok(is_done)
    }

    /// Returns true if the clock has run for an hour without being set, and no call has returned true in this
    /// hour.
    fn hour_has_passed(&mut self, now: &Moment) -> bool {
        let (since, before) = self.steady.unwrap_or((*now, *now));
        let passed_ms = now.boottime_ms - before.boottime_ms;
        let stepped_ms = now.time_ms - before.time_ms - passed_ms;
        let was_set = stepped_ms.abs() > CLOCK_STEP_MS;
        let has_passed = !was_set && now.boottime_ms - since.boottime_ms >= STEADY_MS;
        let since = if was_set || has_passed { *now } else { since };
        self.steady = Some((since, *now));
        has_passed
    }
}

/// Deletes the last sample up to `until` with all its records; returns true if there was one.
fn delete_last_sample(transaction: &Transaction<'_>, until: i64) -> rusqlite::Result<bool> {
    let delete = "DELETE FROM samples WHERE sequence = (SELECT max(sequence) FROM samples WHERE sequence <= ?)";
    Ok(transaction.prepare_cached(delete)?.execute([until])? > 0)
}

/// Deletes those records up to `until` that are not samples.
fn delete_records(transaction: &Transaction<'_>, until: i64) -> rusqlite::Result<()> {
    for table in TABLES.iter().filter(|t| t.has_own_time()) {
        let delete = format!("DELETE FROM {} WHERE sequence <= ?", table.name);
        transaction.execute(&delete, [until])?;
    }
    Ok(())
}

/// Returns free pages to the disk while there is `time`, except for some that the next records will fill.
/// Returns true if no more are to be returned. A database created by an older version keeps its pages until
/// `gleaner-agent vacuum`.
fn release_free_pages(
    transaction: &Transaction<'_>,
    time: impl Fn() -> bool,
) -> rusqlite::Result<bool> {
    if pragma(transaction, "auto_vacuum")? != INCREMENTAL {
        return Ok(true);
    }
    loop {
        let free = pragma(transaction, "freelist_count")?;
        if free <= pragma(transaction, "page_count")? / SPARE_PART {
            return Ok(true);
        }
        free_pages(transaction, PAGES_AT_ONCE)?;
        if !time() {
            return Ok(false);
        }
    }
}

/// Value of `PRAGMA auto_vacuum` if a database can return pages without being rewritten.
pub(crate) const INCREMENTAL: i64 = 2;

/// Returns at most `count` free pages to the disk.
pub(crate) fn free_pages(connection: &Connection, count: i64) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({count})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {} // one page per step
    Ok(())
}

/// Size of the database without its free pages.
fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pages = pragma(connection, "page_count")? - pragma(connection, "freelist_count")?;
    Ok((pages * pragma(connection, "page_size")?).unsigned_abs())
}

/// Returns the value of a numeric pragma.
pub(crate) fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::store::{Record, Store};
    use gleaner_schemas::rows::{EventRow, FileRow, GapRow, HostRow, ProcessRow, SampleRow};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::path::Path;

    const HOUR_MS: i64 = 3_600_000;

    /// Records of one transaction of a test's trace, and the time since the last one.
    #[derive(Clone, Debug)]
    struct TransactionCase {
        hours: i64,
        whole: bool,
        host: bool,
        gap: bool,
        events_count: usize,
        files_count: i64,
    }

    fn written() -> impl Strategy<Value = TransactionCase> {
        // Negative hours mean that the clock was set back. A host's row without a whole state is no place for
        // a cut, nor is a whole state without a host's row.
        let hours = prop_oneof![9 => 0..9i64, 1 => -30..30i64];
        let begins = prop_oneof![8 => Just((false, false)), 4 => Just((true, true)),
            1 => Just((true, false)), 1 => Just((false, true))];
        (hours, begins, any::<bool>(), 0..3usize, 0..150i64).prop_map(
            |(hours, (whole, host), gap, events_count, files_count)| TransactionCase {
                hours,
                whole,
                host,
                gap: gap && whole,
                events_count,
                files_count,
            },
        )
    }

    /// Writes the trace; returns the time of its last record.
    fn write(store: &mut Store, trace: &[TransactionCase]) -> i64 {
        let mut time_ms = 1_000 * HOUR_MS;
        for written in trace {
            time_ms += written.hours * HOUR_MS;
            let file = |file_id| FileRow {
                file_id,
                ..FileRow::default()
            };
            let files: Vec<FileRow> = (0..written.files_count).map(file).collect();
            let event = (time_ms, EventRow::default());
            store
                .write(&Record {
                    time_ms,
                    gap: Some(&GapRow::default()).filter(|_| written.gap),
                    host: Some(&HostRow::default()).filter(|_| written.host),
                    events: &vec![event; written.events_count],
                    sample: &SampleRow {
                        is_complete_state: written.whole,
                        ..SampleRow::default()
                    },
                    processes: &[],
                    files: &files,
                    activity: &[],
                    numa_nodes: &[],
                    cgroups: &[],
                    missing_values: &[],
                })
                .unwrap();
        }
        time_ms
    }

    /// Row counts of each table by record.
    type Contents = BTreeMap<&'static str, BTreeMap<i64, i64>>;

    fn contents(connection: &Connection) -> Contents {
        let of_table = |name: &str| {
            let query = format!("SELECT sequence, count(*) FROM {name} GROUP BY sequence");
            let mut statement = connection.prepare_cached(&query).unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            rows.unwrap().collect::<Result<_, _>>().unwrap()
        };
        TABLES.iter().map(|t| (t.name, of_table(t.name))).collect()
    }

    fn after(contents: &Contents, cut: i64) -> Contents {
        let kept =
            |rows: &BTreeMap<i64, i64>| rows.range(cut + 1..).map(|(k, v)| (*k, *v)).collect();
        contents
            .iter()
            .map(|(name, rows)| (*name, kept(rows)))
            .collect()
    }

    /// Samples after which the trace may be cut, with their times, found by examining every sample.
    fn cuts(connection: &Connection) -> Vec<(i64, i64)> {
        let mut statement = connection
            .prepare("SELECT sequence, time_ms, is_complete_state FROM samples ORDER BY sequence")
            .unwrap();
        let samples: Vec<(i64, i64, bool)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let hosts = contents(connection).remove("hosts").unwrap();
        let is_cut = |pair: &&[(i64, i64, bool)]| {
            pair[1].2 && hosts.range(pair[0].0..pair[1].0).next().is_some()
        };
        let cuts = samples.windows(2).filter(is_cut);
        cuts.map(|pair| (pair[0].0, pair[0].1)).collect()
    }

    fn moment(time_ms: i64, boottime_ms: i64) -> Moment {
        Moment {
            time_ms,
            boottime_ms,
            monotonic_ms: boottime_ms,
        }
    }

    fn new_trace(folder: &Path, trace: &[TransactionCase]) -> (Store, Connection, i64) {
        let path = folder.join("trace.db");
        let (mut store, _) = Store::open(&path, Some("host-a"), 0).unwrap();
        let time_ms = write(&mut store, trace);
        let connection = crate::trace::database::open_to_write(&path).unwrap();
        (store, connection, time_ms)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        /// Deletes one sample per step. After each step the remainder must be readable by itself. In the end
        /// it must be what a slow examination of every sample would keep.
        #[test]
        fn keeps_what_a_slow_look_at_every_sample_keeps(
            trace in prop::collection::vec(written(), 1..40),
            age_hours in 1..200u64,
            pages in 20..70u64,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let (_store, mut connection, time_ms) = new_trace(folder.path(), &trace);
            let original = contents(&connection);
            let possible = cuts(&connection);
            let limits = Limits {
                age: Duration::from_secs(age_hours * 3600),
                database_bytes: pages * 4096,
            };
            let before_ms = time_ms + HOUR_MS - age_hours as i64 * HOUR_MS;
            let too_old = possible.iter().rfind(|(_, time_ms)| *time_ms < before_ms);
            let too_old = too_old.map_or(0, |(sequence, _)| *sequence);
            let mut retention = Retention { slice: Duration::ZERO, ..Retention::default() };

            // First only the age limit applies; ages are checked after an hour.
            let by_age = Limits { database_bytes: u64::MAX, ..limits };
            prop_assert!(retention.step(&mut connection, &by_age, &moment(time_ms, 0)).unwrap());
            prop_assert_eq!(&contents(&connection), &original);
            let now = moment(time_ms + HOUR_MS, HOUR_MS);
            while !retention.step(&mut connection, &by_age, &now).unwrap() {
                let left = contents(&connection);
                prop_assert_eq!(after(&left, too_old), after(&original, too_old));
                for (name, rows) in &left {
                    for (sequence, count) in rows {
                        prop_assert_eq!(original[name].get(sequence), Some(count), "{} {}", name, sequence);
                    }
                }
                // Of the records to delete, the oldest stay longest. No sample may lose only a part of its
                // rows.
                let samples: Vec<i64> = left["samples"].range(..=too_old).map(|(s, _)| *s).collect();
                let first: Vec<i64> = original["samples"].keys().take(samples.len()).copied().collect();
                prop_assert_eq!(&samples, &first);
                for name in ["files", "hosts"] {
                    let owned = |rows: &BTreeMap<i64, i64>| {
                        let last = samples.last().copied().unwrap_or(0);
                        rows.range(..=last).map(|(s, _)| *s).collect::<Vec<_>>()
                    };
                    prop_assert_eq!(owned(&left[name]), owned(&original[name]));
                }
            }
            prop_assert_eq!(contents(&connection), after(&original, too_old));

            // Then the size limit applies: one stretch is deleted per step, and none once the database is
            // small enough.
            let mut cut = too_old;
            loop {
                let left = contents(&connection);
                let used = used_bytes(&connection).unwrap();
                let is_between = left == after(&original, cut);
                let is_done = retention.step(&mut connection, &limits, &now).unwrap();
                let now_left = contents(&connection);
                if is_between && now_left != left {
                    prop_assert!(used > limits.database_bytes);
                    cut = possible.iter().find(|(sequence, _)| *sequence > cut).unwrap().0;
                }
                prop_assert_eq!(after(&now_left, cut), after(&original, cut));
                if is_done {
                    break;
                }
            }
            prop_assert_eq!(contents(&connection), after(&original, cut));
            let is_small = used_bytes(&connection).unwrap() <= limits.database_bytes;
            prop_assert!(is_small || possible.last().is_none_or(|(sequence, _)| *sequence == cut));
            let [free, all] = ["freelist_count", "page_count"].map(|p| pragma(&connection, p).unwrap());
            prop_assert!(free <= all / SPARE_PART, "{} of {} pages are free", free, all);
            let wrong: i64 = connection
                .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
                .unwrap();
            prop_assert_eq!(wrong, 0);
            let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            prop_assert_eq!(check, "ok");
        }
    }

    #[test]
    fn ages_are_looked_at_after_an_hour_in_which_nobody_set_the_clock() {
        let mut retention = Retention::default();
        // Each row: wall time and boot time in minutes; true if ages must be checked.
        for (at, (wall, boottime, expected)) in [
            (0, 0, false),
            (59, 59, false),
            (60, 60, true),
            (61, 61, false), // before the next hour ends
            (119, 119, false),
            (120, 120, true),
            (10_150, 150, false), // set forward: the hour begins again
            (10_180, 180, false),
            (10_210, 210, true),
            (240, 240, false), // set back
            (299, 299, false),
            (301, 301, true),
            (1000, 1000, true), // slept
        ]
        .into_iter()
        .enumerate()
        {
            let now = moment(wall * 60_000, boottime * 60_000);
            assert_eq!(retention.hour_has_passed(&now), expected, "step {at}");
        }
    }

    #[test]
    fn a_new_trace_can_give_pages_back_and_what_is_deleted_is_overwritten() {
        const NAME: &str = "staple-battery";
        let folder = tempfile::tempdir().unwrap();
        let (mut store, connection, time_ms) = new_trace(folder.path(), &[]);
        assert_eq!(pragma(&connection, "auto_vacuum").unwrap(), INCREMENTAL);
        let process = ProcessRow {
            name: NAME.to_owned(),
            ..ProcessRow::default()
        };
        for (hours, processes) in [(0, &[process][..]), (25, &[]), (50, &[])] {
            store
                .write(&Record {
                    time_ms: time_ms + hours * HOUR_MS,
                    gap: None,
                    host: Some(&HostRow::default()),
                    events: &[],
                    sample: &SampleRow {
                        is_complete_state: true,
                        ..SampleRow::default()
                    },
                    processes,
                    files: &[],
                    activity: &[],
                    numa_nodes: &[],
                    cgroups: &[],
                    missing_values: &[],
                })
                .unwrap();
        }
        connection
            .query_row("PRAGMA wal_checkpoint", [], |_| Ok(()))
            .unwrap();
        let holds_name = || {
            let bytes = std::fs::read(folder.path().join("trace.db")).unwrap();
            bytes.windows(NAME.len()).any(|w| w == NAME.as_bytes())
        };
        assert!(holds_name());
        let limits = Limits {
            age: Duration::from_secs(24 * 3600),
            ..Limits::default()
        };
        for hours in [50, 51] {
            let now = moment(time_ms + hours * HOUR_MS, hours * HOUR_MS);
            while !store.retain(&limits, &now).unwrap() {}
        }
        drop((store, connection)); // closing moves the log into the database
        assert!(!holds_name());
    }
}
