//! Files that newer files replaced. They are kept for a while, for readers that opened the dataset before.

use super::durable::{create_folders, entries, put, remove, sync_folder};
use super::places::RETIRED;
use crate::{DatasetError, Result};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Default time for which a retired file is kept.
pub(crate) const GRACE: Duration = Duration::from_secs(3600);

/// Opens the file `relative` of the dataset at `root`: in its place, or else in the folder of retired files.
pub(crate) fn open(root: &Path, relative: &str) -> Result<File> {
    let path = root.join(relative);
    match File::open(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let retired = File::open(root.join(RETIRED).join(relative));
            retired.map_err(|_| DatasetError::Missing { path })
        }
        other => other.map_err(DatasetError::io("open", path)),
    }
}

/// Moves a file to the folder of retired files. Its modification time is set to the present, the time of
/// retirement.
pub(crate) fn retire(root: &Path, relative: &str) -> Result<()> {
    let place = root.join(relative);
    let file = match File::options().write(true).open(&place) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()), // retired by a writer killed afterwards
        other => other.map_err(DatasetError::io("open", &place))?,
    };
    file.set_modified(SystemTime::now())
        .map_err(DatasetError::io("date", &place))?;
    let folder = relative.rsplit_once('/').map_or("", |(folder, _)| folder);
    create_folders(root, &format!("{RETIRED}/{folder}"))?;
    put(&place, &root.join(RETIRED).join(relative))?;
    place.parent().map_or(Ok(()), sync_folder)
}

/// Deletes files that were retired longer than `grace` ago.
pub(crate) fn purge(root: &Path, grace: Duration) -> Result<()> {
    let folder = root.join(RETIRED);
    if folder.is_dir() {
        purge_folder(&folder, SystemTime::now(), grace)?;
    }
    Ok(())
}

fn purge_folder(folder: &Path, now: SystemTime, grace: Duration) -> Result<()> {
    for path in entries(folder)? {
        if path.is_dir() {
            purge_folder(&path, now, grace)?;
            continue;
        }
        let retired = match fs::metadata(&path).and_then(|m| m.modified()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue, // another writer deleted it
            other => other.map_err(DatasetError::io("look at", &path))?,
        };
        match now.duration_since(retired) {
            Ok(age) if age >= grace => remove(&path)?,
            Ok(_) => {}
            // The system's clock was set back: the grace period starts again.
            Err(_) => File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_modified(now))
                .map_err(DatasetError::io("date", &path))?,
        }
    }
    Ok(())
}
