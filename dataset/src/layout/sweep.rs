//! Lists a dataset's Arrow files, and removes what a dead writer left.

use super::durable::entries;
use super::names::WriterName;
use super::{places, retired};
use crate::{DatasetError, Result};
use std::fs;
use std::path::Path;

/// Cleans up after a writer that died. Staged files are deleted. Files that no manifest names are retired,
/// since a reader may still have the previous manifest. Only the holder of the lock of `name` may call this,
/// and only that writer's files are touched: other writers may have files that are not in their manifests yet.
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

/// Arrow files in the folders of tables, relative to `root`, whether or not a manifest names them.
pub(crate) fn arrow_files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for table in places::tables() {
        let folder = root.join(table);
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
