//! Log lines about the source: one per file that differs or is missing, and one each time the source stops
//! working and works again.

use super::{BlockPlace, FetchError, lock};
use crate::catalog::BLOCK_BYTES;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of files that are named in the log.
const MOST_FILES: usize = 10_000;

#[derive(Default)]
pub(super) struct Complaints {
    /// Files that were named: the mount and the row of each.
    files: Mutex<HashSet<(usize, u64)>>,
    is_failing: AtomicBool,
}

impl Complaints {
    /// Logs a failure, unless it was logged before.
    pub(super) fn failed(
        &self,
        place: &BlockPlace,
        error: &FetchError,
        path: impl FnOnce() -> String,
    ) {
        match error {
            FetchError::Differs { .. } | FetchError::Missing { .. } => {
                let mut files = lock(&self.files);
                if files.len() >= MOST_FILES || !files.insert((place.mount, place.row)) {
                    return;
                }
                let is_last = files.len() == MOST_FILES;
                drop(files);
                let (path, index) = (path(), place.index);
                let offset = index * BLOCK_BYTES;
                log(&format!(
                    "{path}: block {index} at byte {offset} {error}; readers get EIO"
                ));
                if is_last {
                    log(&format!(
                        "{MOST_FILES} files were named; further files are not logged"
                    ));
                }
            }
            FetchError::Unavailable { .. } | FetchError::TimedOut => {
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    let path = path();
                    log(&format!(
                        "{path}: {error}; readers get EIO until the source works again"
                    ));
                }
            }
        }
    }

    /// Notes that the source answered.
    pub(super) fn works(&self) {
        // Loaded first, since this is called for every block.
        if self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed)
        {
            log("the source works again");
        }
    }
}

fn log(line: &str) {
    eprintln!("gleaner-commons: {line}");
}
