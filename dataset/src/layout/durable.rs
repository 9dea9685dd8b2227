//! Durable moves of files into a dataset's folder: afterwards, the file is there completely or not at all.

use crate::{DatasetError, Result};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Moves a staged file to its place. Even after a power loss the file is there completely or not at all.
pub(crate) fn put(staged: &Path, place: &Path) -> Result<()> {
    fs::rename(staged, place).map_err(DatasetError::io("rename a file to", place))?;
    place.parent().map_or(Ok(()), sync_folder)
}

/// Creates the folder `root/relative` and its parents. Each is made durable in its own parent folder.
pub(crate) fn create_folders(root: &Path, relative: &str) -> Result<PathBuf> {
    let mut path = root.to_path_buf();
    for part in relative.split('/') {
        let parent = path.clone();
        path.push(part);
        if !path.is_dir() {
            match fs::create_dir(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {} // another writer created it just now
                other => other.map_err(DatasetError::io("create folder", &path))?,
            }
            sync_folder(&parent)?;
        }
    }
    Ok(path)
}

/// Syncs `folder`, so that its entries survive a power loss.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(DatasetError::io("sync folder", folder))
}

/// Deletes all files in `folder`.
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

/// Paths of the entries of `folder`.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(folder)
        .and_then(|dir| dir.map(|entry| Ok(entry?.path())).collect())
        .map_err(DatasetError::io("list folder", folder))
}
