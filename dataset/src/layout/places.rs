//! Names of files and folders in a dataset's folder.

use crate::{DatasetError, Result};
use arrow::temporal_conversions::timestamp_ms_to_datetime;
use gleaner_schemas::renames;
use gleaner_schemas::rows::DATASET_TABLES;
use std::path::Path;

/// The file that lists all files of the dataset.
pub(crate) const MANIFEST: &str = "manifest.json";
/// File that a dataset's only or first writer locks.
pub(crate) const LOCK: &str = ".lock";
/// Folder of unfinished files. Files that a dead writer left there are deleted.
pub(crate) const STAGING: &str = ".staging";

/// Folder of files that newer files replaced, kept for readers that opened the dataset before.
pub(crate) const RETIRED: &str = ".retired";

/// Folder of damaged files, to which a repair copies them. Nothing in it is ever deleted.
pub(crate) const DAMAGED: &str = ".damaged";

const DAY_MS: i64 = 86_400_000;

/// Checks that `root` is a path, not a URL, which would be taken for the path of a folder.
pub(crate) fn check_folder(root: &Path) -> Result<()> {
    match root.to_str() {
        Some(text) if text.contains("://") => Err(DatasetError::NotAFolder {
            root: root.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// UTC day of `time_ms`, counted from 1970-01-01.
pub(crate) fn day(time_ms: i64) -> i64 {
    time_ms.div_euclid(DAY_MS)
}

/// Date like `2026-11-21` of a day counted from 1970-01-01; `None` outside the calendar.
pub(crate) fn date(day: i64) -> Option<String> {
    let start = timestamp_ms_to_datetime(day.checked_mul(DAY_MS)?)?;
    Some(start.date().to_string())
}

/// Folder for one table and day, relative to the dataset.
pub(crate) fn folder(table: &str, date: &str) -> String {
    format!("{table}/date={date}")
}

/// Names of the folders that a dataset's tables may have: first those of the present version, then earlier ones.
pub(crate) fn tables() -> impl Iterator<Item = &'static str> {
    let present = DATASET_TABLES.into_iter().map(|table| table.name);
    present.chain(renames::TABLES.into_iter().map(|rename| rename.before))
}

/// Table (by its present name) and date of the file at `path`, which is relative to the dataset; `None` for a
/// path of another form. The folder of an older file has the table's earlier name.
pub(crate) fn table_and_date(path: &str) -> Option<(&str, &str)> {
    let (table, rest) = path.split_once("/date=")?;
    let (date, file) = rest.split_once('/')?;
    let is_in_folder = tables().any(|name| name == table) && !file.contains('/');
    is_in_folder.then(|| (renames::table_name(table), date))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_utc_and_starts_at_midnight() {
        let cases = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (1_795_219_199_999, "2026-11-20"), // 23:59:59.999
            (1_795_219_200_000, "2026-11-21"),
        ];
        for (time_ms, text) in cases {
            assert_eq!(date(day(time_ms)).as_deref(), Some(text), "{time_ms}");
        }
        assert_eq!(date(day(i64::MAX)), None);
    }

    #[test]
    fn a_file_is_of_the_table_that_its_folder_was_called_after() {
        for (path, expected) in [
            (
                "samples/date=2026-11-21/1.arrow",
                Some(("samples", "2026-11-21")),
            ),
            (
                "absences/date=2026-11-21/1.arrow",
                Some(("missing_values", "2026-11-21")),
            ),
            (
                "missing_values/date=2026-11-21/1.arrow",
                Some(("missing_values", "2026-11-21")),
            ),
            ("colours/date=2026-11-21/1.arrow", None),
            ("samples/date=2026-11-21/folder/1.arrow", None),
            ("samples/date=2026-11-21", None),
            ("samples/1.arrow", None),
        ] {
            assert_eq!(table_and_date(path), expected, "{path}");
        }
    }
}
