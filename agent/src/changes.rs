//! Files are stored as changes: what differs from the sample before.

use gleaner_schemas::rows::FileRow;
use std::collections::HashMap;

/// The files as they were last stored.
#[derive(Debug, Default)]
pub struct FileChanges {
    last: HashMap<i64, FileRow>,
}

impl FileChanges {
    /// The rows to store: all of them when `whole`, else those that differ and, for each file no longer
    /// in use, one that counts nobody and knows nothing of its cache.
    pub fn step(&mut self, rows: Vec<FileRow>, whole: bool) -> Vec<FileRow> {
        let mut before = std::mem::take(&mut self.last);
        let mut changed = Vec::new();
        for row in rows {
            if before.remove(&row.file_id).as_ref() != Some(&row) || whole {
                changed.push(row.clone());
            }
            self.last.insert(row.file_id, row);
        }
        if !whole {
            changed.extend(before.into_values().map(|gone| FileRow {
                file_id: gone.file_id,
                path: gone.path,
                ..FileRow::default()
            }));
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn file(file_id: i64, cached: i64) -> FileRow {
        FileRow {
            file_id,
            open_count: 1,
            cached_bytes: Some(cached),
            ..FileRow::default()
        }
    }

    #[test]
    fn what_differs_and_what_is_gone() {
        let mut changes = FileChanges::default();
        assert_eq!(changes.step(vec![file(1, 10), file(2, 20)], true).len(), 2);
        assert_eq!(changes.step(vec![file(1, 10), file(2, 20)], false), []);
        assert_eq!(
            changes.step(vec![file(1, 11), file(2, 20)], false),
            [file(1, 11)]
        );
        let gone = FileRow {
            file_id: 2,
            ..FileRow::default()
        };
        assert_eq!(changes.step(vec![file(1, 11)], false), [gone]);
        assert_eq!(changes.step(vec![file(1, 11)], true), [file(1, 11)]);
    }

    proptest! {
        /// Applying the changes to the state before gives the state after.
        #[test]
        fn a_reader_can_follow(samples in proptest::collection::vec(
            (proptest::collection::btree_map(0i64..6, 0i64..3, 0..6), any::<bool>()), 1..8)
        ) {
            let mut changes = FileChanges::default();
            let mut reader: BTreeMap<i64, i64> = BTreeMap::new();
            for (files, whole) in samples {
                let rows = files.iter().map(|(id, cached)| file(*id, *cached)).collect();
                if whole {
                    reader.clear();
                }
                for row in changes.step(rows, whole) {
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
