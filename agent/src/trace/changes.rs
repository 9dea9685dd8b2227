//! Files, activity and missing values are stored as changes: only rows that differ from the rows stored
//! before.

use gleaner_schemas::rows::{ActivityRow, FileRow, MissingValueRow};
use std::collections::BTreeMap;

/// A row that is valid from one sample until a later row replaces it.
pub trait StandingRow: Clone {
    /// Subject that a row describes, such as one file.
    type Key: Ord + Clone;

    /// Returns the subject of the row.
    fn key(&self) -> Self::Key;

    /// Returns true if this row tells a reader nothing new after the row `before`, written `passed_ms`
    /// earlier.
    fn follows(&self, before: &Self, passed_ms: i64) -> bool;

    /// Returns the row that ends this one, if one is needed.
    fn end(self) -> Option<Self>;
}

/// Rows as they were last stored, with their times.
#[derive(Debug)]
pub struct Changes<R: StandingRow> {
    stored: BTreeMap<R::Key, (i64, R)>,
}

impl<R: StandingRow> Default for Changes<R> {
    fn default() -> Self {
        Self {
            stored: BTreeMap::new(),
        }
    }
}

impl<R: StandingRow> Changes<R> {
    /// Rows to store for a sample at `time_ms`: all of them if `whole`. Otherwise only the changed rows, and
    /// an end row for each stored row that no longer holds.
    pub fn step(&mut self, rows: Vec<R>, whole: bool, time_ms: i64) -> Vec<R> {
        let mut before = std::mem::take(&mut self.stored);
        let mut changed = Vec::new();
        for row in rows {
            let known = before
                .remove(&row.key())
                .filter(|(stored_ms, known)| !whole && row.follows(known, time_ms - stored_ms));
            let stored = known.unwrap_or_else(|| {
                changed.push(row.clone());
                (time_ms, row)
            });
            self.stored.insert(stored.1.key(), stored);
        }
        if !whole {
            changed.extend(before.into_values().filter_map(|(_, row)| row.end()));
        }
        changed
    }
}

impl StandingRow for FileRow {
    type Key = i64;

    fn key(&self) -> i64 {
        self.file_id
    }

    /// Returns true if the rows are equal; the numbers of processes are compared only as zero or not. The
    /// numbers change with each process, and these changes would be most of the stored data.
    fn follows(&self, before: &Self, _: i64) -> bool {
        let without_counts = |row: &Self| Self {
            open_processes_count: row.open_processes_count.min(1),
            mapping_processes_count: row.mapping_processes_count.min(1),
            ..row.clone()
        };
        without_counts(self) == without_counts(before)
    }

    /// Row of the same file without processes and with an unknown cached size.
    fn end(self) -> Option<Self> {
        Some(Self {
            file_id: self.file_id,
            path: self.path,
            ..Self::default()
        })
    }
}

impl StandingRow for ActivityRow {
    type Key = String;

    fn key(&self) -> String {
        self.source.clone()
    }

    /// Returns true if the owner was not active between the two rows: both give the same moment of the last
    /// activity.
    fn follows(&self, before: &Self, passed_ms: i64) -> bool {
        let idle_ms = before.idle_ms.map(|ms| ms.saturating_add(passed_ms));
        self.idle_ms == idle_ms
            && self.state == before.state
            && self.devices_count == before.devices_count
    }

    /// No row ends, since every sample asks every source.
    fn end(self) -> Option<Self> {
        None
    }
}

impl StandingRow for MissingValueRow {
    type Key = (String, String);

    fn key(&self) -> (String, String) {
        (self.item.clone(), self.reason.clone())
    }

    /// A vanished item concerns only its own sample, so its row is always stored. Counts are not compared,
    /// since they change with every process.
    fn follows(&self, before: &Self, _: i64) -> bool {
        self.reason != "vanished" && self.detail == before.detail
    }

    fn end(self) -> Option<Self> {
        (self.reason != "vanished").then_some(Self {
            missing_count: 0,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(file_id: i64, cached: i64) -> FileRow {
        FileRow {
            file_id,
            open_processes_count: 1,
            cached_bytes: Some(cached),
            ..FileRow::default()
        }
    }

    #[test]
    fn of_files_what_differs_and_what_is_gone() {
        let mut changes = Changes::default();
        let mut step = |rows, whole| changes.step(rows, whole, 0);
        assert_eq!(step(vec![file(1, 10), file(2, 20)], true).len(), 2);
        assert_eq!(step(vec![file(1, 10), file(2, 20)], false), []);
        assert_eq!(step(vec![file(1, 11), file(2, 20)], false), [file(1, 11)]);
        let twice = FileRow {
            open_processes_count: 2,
            ..file(1, 11)
        };
        assert_eq!(step(vec![twice, file(2, 20)], false), [], "a count alone");
        let gone = FileRow {
            file_id: 2,
            ..FileRow::default()
        };
        let mapped_only = FileRow {
            open_processes_count: 0,
            mapping_processes_count: 1,
            ..file(1, 11)
        };
        let rows = step(vec![mapped_only.clone()], false);
        assert_eq!(rows, [mapped_only.clone(), gone]);
        assert_eq!(step(vec![mapped_only.clone()], true), [mapped_only]);
    }

    #[test]
    fn of_activity_what_the_time_passed_does_not_explain() {
        let mut changes = Changes::default();
        let row = |idle_ms: Option<i64>, state: &str| ActivityRow {
            source: "input".into(),
            idle_ms,
            state: state.into(),
            devices_count: 1,
        };
        // Each row: time, row of a source, true if the row must be stored.
        for (time_ms, row, stored) in [
            (0, row(Some(5), "ok"), true),
            (90, row(Some(95), "ok"), false),
            (180, row(Some(185), "ok"), false),
            (270, row(Some(3), "ok"), true),
            (360, row(Some(93), "ok"), false),
            (450, row(None, "denied"), true),
            (540, row(None, "denied"), false),
        ] {
            let rows = changes.step(vec![row.clone()], false, time_ms);
            assert_eq!(rows, if stored { vec![row] } else { vec![] }, "{time_ms}");
        }
    }

    #[test]
    fn of_missing_values_what_begins_and_ends_and_all_that_vanished() {
        let mut changes = Changes::default();
        let row = |reason: &str, missing_count| MissingValueRow {
            item: "processes".into(),
            reason: reason.into(),
            detail: "x".into(),
            missing_count,
        };
        let (denied, vanished) = (row("denied", 3), row("vanished", 1));
        let both = vec![denied.clone(), vanished.clone()];
        assert_eq!(changes.step(both.clone(), false, 0), both);
        assert_eq!(changes.step(both, false, 0), [vanished]);
        assert_eq!(changes.step(vec![row("denied", 9)], false, 0), []);
        assert_eq!(changes.step(vec![], false, 0), [row("denied", 0)]);
        assert_eq!(changes.step(vec![], false, 0), []);
        assert_eq!(changes.step(vec![denied.clone()], true, 0), [denied]);
    }

    proptest! {
        /// The changes, applied to the state before a sample, must give the state after it.
        #[test]
        fn a_reader_can_follow(samples in proptest::collection::vec(
            (proptest::collection::btree_map(0i64..6, 0i64..3, 0..6), any::<bool>()), 1..8)
        ) {
            let mut changes = Changes::default();
            let mut reader: BTreeMap<i64, i64> = BTreeMap::new();
            for (files, whole) in samples {
                let rows = files.iter().map(|(id, cached)| file(*id, *cached)).collect();
                if whole {
                    reader.clear();
                }
                for row in changes.step(rows, whole, 0) {
                    match row.cached_bytes {
                        Some(cached) => reader.insert(row.file_id, cached),
                        None => reader.remove(&row.file_id),
                    };
                }
                prop_assert_eq!(&reader, &files);
            }
        }
    }
}
