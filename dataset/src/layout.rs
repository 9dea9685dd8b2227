//! Where things lie in a dataset's folder, and how they get there without ever being half there.

use crate::names::WriterName;
use crate::{DatasetError, Result, retired};
use arrow::temporal_conversions::timestamp_ms_to_datetime;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The one file that says which others belong.
pub(crate) const MANIFEST: &str = "manifest.json";
/// Locked by the one writer.
pub(crate) const LOCK: &str = ".lock";
/// Files on their way; whatever a dead writer left here is of no use.
pub(crate) const STAGING: &str = ".staging";

/// Files that newer ones replaced, for those who opened the dataset before.
pub(crate) const RETIRED: &str = ".retired";

/// Files that were not what was sealed, set aside by a repair. Nothing here is ever deleted.
pub(crate) const DAMAGED: &str = ".damaged";

const DAY_MS: i64 = 86_400_000;

/// UTC day of `time_ms`, counted from 1970-01-01.
pub(crate) fn day(time_ms: i64) -> i64 {
    time_ms.div_euclid(DAY_MS)
}

/// `2026-11-21` for a day counted from 1970-01-01; `None` outside the calendar.
pub(crate) fn date(day: i64) -> Option<String> {
    let start = timestamp_ms_to_datetime(day.checked_mul(DAY_MS)?)?;
    Some(start.date().to_string())
}

/// Folder of a table's day, relative to the dataset.
pub(crate) fn folder(table: &str, date: &str) -> String {
    format!("{table}/date={date}")
}

/// Moves a staged file to its place so that it is there whole or not at all, even after power is lost.
pub(crate) fn put(staged: &Path, place: &Path) -> Result<()> {
    fs::rename(staged, place).map_err(DatasetError::io("rename a file to", place))?;
    place.parent().map_or(Ok(()), sync_folder)
}

/// Creates `root/relative` with its parents, each made durable in the folder above it.
pub(crate) fn create_folders(root: &Path, relative: &str) -> Result<PathBuf> {
    let mut path = root.to_path_buf();
    for part in relative.split('/') {
        let parent = path.clone();
        path.push(part);
        if !path.is_dir() {
            match fs::create_dir(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {} // by another writer just now
                other => other.map_err(DatasetError::io("create folder", &path))?,
            }
            sync_folder(&parent)?;
        }
    }
    Ok(path)
}

/// Makes the names in `folder` durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(DatasetError::io("sync folder", folder))
}

/// Puts away what a writer that died left: staged files are deleted, files that no manifest names are
/// retired, since a reader may have the manifest before. Only for the holder of the lock, whose `name` the
/// files bear: another writer's may not be in its manifest yet.
pub(crate) fn sweep(root: &Path, name: &WriterName, belongs: impl Fn(&Path) -> bool) -> Result<()> {
    let staging = root.join(name.staging());
    if staging.exists() {
        fs::remove_dir_all(&staging).map_err(DatasetError::io("clear", &staging))?;
    }
    fs::create_dir(&staging).map_err(DatasetError::io("create folder", &staging))?;
    for relative in arrow_files(root)? {
        if WriterName::of_file(&relative) == *name && !belongs(&root.join(&relative)) {
            retired::retire(root, &relative)?;
        }
    }
    Ok(())
}

/// The Arrow files in their places, relative to `root`, whether or not a manifest names them.
pub(crate) fn arrow_files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for table in gleaner_schemas::rows::DATASET_TABLES {
        let folder = root.join(table.name);
        if !folder.is_dir() {
            continue;
        }
        for date in entries(&folder)?.into_iter().filter(|path| path.is_dir()) {
            for file in entries(&date)? {
                let is_arrow = file.extension().is_some_and(|e| e == "arrow");
                let relative = file.strip_prefix(root).ok().and_then(Path::to_str);
                found.extend(relative.filter(|_| is_arrow).map(str::to_owned));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Deletes what lies in `folder`.
pub(crate) fn clear(folder: &Path) -> Result<()> {
    entries(folder)?.iter().try_for_each(|path| remove(path))
}

/// Deletes the file at `path`, if there is one.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(DatasetError::io("remove", path)),
    }
}

/// What lies in `folder`.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(folder)
        .and_then(|dir| dir.map(|entry| Ok(entry?.path())).collect())
        .map_err(DatasetError::io("list folder", folder))
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
}
