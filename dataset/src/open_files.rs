//! Files that were opened, checked and parsed already: whoever reads host after host meets the same ones.

use crate::Result;
use crate::manifest::FileEntry;
use crate::mapped::Mapped;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Files kept open at most; each takes some KiB, its mapped bytes apart, and maybe one shared batch.
const FILES_AT_MOST: usize = 512;

#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<Files>);

#[derive(Default)]
struct Files {
    /// By path in the dataset, with the time of their last use.
    open: HashMap<String, (u64, Arc<Mapped>)>,
    uses: u64,
}

impl OpenFiles {
    /// The file that `entry` names, opened or found open.
    pub(crate) fn open(&self, root: &Path, entry: &FileEntry) -> Result<Arc<Mapped>> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.uses += 1;
        let now = files.uses;
        if let Some((used, file)) = files.open.get_mut(&entry.path) {
            *used = now;
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(Mapped::open(root, entry)?);
        if files.open.len() >= FILES_AT_MOST {
            let oldest = files.open.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(path) = oldest.map(|(path, _)| path.clone()) {
                files.open.remove(&path);
            }
        }
        files
            .open
            .insert(entry.path.clone(), (now, Arc::clone(&file)));
        Ok(file)
    }

    /// These files are of no use any more.
    pub(crate) fn forget(&self, paths: &[String]) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.open.retain(|path, _| !paths.contains(path));
    }
}

impl std::fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenFiles")
    }
}
