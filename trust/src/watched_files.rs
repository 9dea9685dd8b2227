//! Values that are made from files, and made again when the files change.

use crate::{Result, TrustError, files};
use rustls::pki_types::pem::PemObject;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Metadata of a file by which a change is noticed without reading the file. A replacement with the old
/// file's dates is noticed too: its inode number or its change time differs.
type Stamp = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

struct Current<T> {
    value: Arc<T>,
    generation: u64,
    /// Stamps of the files that were last loaded, successfully or not. So the same invalid files are reported
    /// only once.
    tried: Vec<Stamp>,
}

/// A value, and the files from which it is made.
pub(crate) struct WatchedFiles<T> {
    paths: Vec<PathBuf>,
    current: Mutex<Current<T>>,
}

impl<T> WatchedFiles<T> {
    pub(crate) fn load(paths: Vec<PathBuf>, make: impl FnOnce() -> Result<T>) -> Result<Self> {
        // The stamps are taken before the files are read, so that a change in between is noticed the next
        // time.
        let tried = stamps(&paths);
        let current = Current {
            value: Arc::new(make()?),
            generation: 1,
            tried,
        };
        Ok(Self {
            paths,
            current: Mutex::new(current),
        })
    }

    pub(crate) fn get(&self) -> Arc<T> {
        self.current().value.clone()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.current().generation
    }

    /// Makes the value again if a file has changed, and returns true in this case. If making fails, the old
    /// value stays, and the error is returned only once.
    pub(crate) fn reload_if_changed(&self, make: impl FnOnce() -> Result<T>) -> Result<bool> {
        let mut current = self.current();
        let now = stamps(&self.paths);
        if now == current.tried {
            return Ok(false);
        }
        current.tried = now;
        current.value = Arc::new(make()?);
        current.generation += 1;
        Ok(true)
    }

    /// Makes the value again, even if no file has changed. If making fails, the old value stays until the
    /// files change.
    pub(crate) fn remake(&self, make: impl FnOnce() -> Result<T>) -> Result<()> {
        let mut current = self.current();
        current.tried = stamps(&self.paths);
        current.value = Arc::new(make()?);
        current.generation += 1;
        Ok(())
    }

    fn current(&self) -> MutexGuard<'_, Current<T>> {
        // The value is complete even after a panic of another thread.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let m = fs::metadata(path).ok()?;
        let modified = (m.mtime(), m.mtime_nsec());
        let changed = (m.ctime(), m.ctime_nsec());
        Some((m.dev(), m.ino(), m.len(), modified, changed))
    };
    paths.iter().map(stamp).collect()
}

/// Reads all items of one kind in a PEM file. It is an error if there is none.
pub(crate) fn read_pem<T: PemObject>(path: &Path, wanted: &'static str) -> Result<Vec<T>> {
    parse_pem(path, &files::read(path)?, wanted)
}

/// Parses a file's content like [`read_pem`].
pub(crate) fn parse_pem<T: PemObject>(
    path: &Path,
    bytes: &[u8],
    wanted: &'static str,
) -> Result<Vec<T>> {
    let content = |reason: String| TrustError::Content {
        path: path.to_owned(),
        wanted,
        reason,
    };
    let items = T::pem_slice_iter(bytes)
        .collect::<std::result::Result<Vec<T>, _>>()
        .map_err(|e| content(e.to_string()))?;
    if items.is_empty() {
        return Err(content("there is none in it".to_owned()));
    }
    Ok(items)
}
