//! Cache of files that are open, checked and parsed: a program that reads one host after another needs the
//! same files again and again.
//!
//! A mapped file takes no file descriptor, so that thousands can stay open. A dataset of years has thousands
//! of files, and all of them are needed for each host. Of a file on a store, the footer is in memory, or the whole
//! file if it is small.

use crate::Result;
use crate::file::arrow_file::ArrowFile;
use crate::file::batch_cache::BatchCache;
use crate::file::remote::Remote;
use crate::manifest::FileEntry;
use crate::store::{Fetcher, Limits};
use arrow::datatypes::SchemaRef;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of record batches in all open files together; each takes about 200 bytes of index in memory.
const BATCHES_AT_MOST: usize = 1 << 19;
/// Number added to a file's record batches when open files are limited: at most 8,192 files are then open.
/// Each takes one map; this is an eighth of the maps that Linux allows a process.
const BATCHES_A_FILE: usize = 64;
/// Maximum size of the fetched footers and small files of all open files together.
const FETCHED_BYTES_AT_MOST: usize = 256 << 20;
/// Number of files whose ends are requested ahead, if several files are opened one after the other.
const FILES_AHEAD: usize = 32;
/// Maximum number of schemas that files share; there is one per table and version of Gleaner.
const SCHEMAS_AT_MOST: usize = 64;

pub(crate) struct OpenFiles {
    files: Mutex<Files>,
    kept: Arc<BatchCache>,
    /// Source of the files; `None` for a folder, whose files are mapped.
    fetcher: Option<Arc<Fetcher>>,
    batches_at_most: usize,
    fetched_bytes_at_most: usize,
}

#[derive(Default)]
struct Files {
    /// Open files by path in the dataset, each with the number of its last use.
    open: HashMap<String, (u64, Arc<ArrowFile>)>,
    schemas: Vec<SchemaRef>,
    batches: usize,
    fetched_bytes: usize,
    uses: u64,
    opened: u64,
}

impl Default for OpenFiles {
    fn default() -> Self {
        Self {
            files: Mutex::default(),
            kept: Arc::default(),
            fetcher: None,
            batches_at_most: BATCHES_AT_MOST,
            fetched_bytes_at_most: FETCHED_BYTES_AT_MOST,
        }
    }
}

impl OpenFiles {
    /// Cache of files that `fetcher` fetches from a store.
    pub(crate) fn of_store(fetcher: Fetcher) -> Self {
        Self {
            fetcher: Some(Arc::new(fetcher)),
            ..Self::default()
        }
    }

    /// Limits of fetching; `None` for files of a folder.
    pub(crate) fn limits(&self) -> Option<&Limits> {
        self.fetcher.as_deref().map(Fetcher::limits)
    }

    /// Returns the file that `entry` names, from the cache if it is there.
    pub(crate) fn open(&self, root: &Path, entry: &FileEntry) -> Result<Arc<ArrowFile>> {
        if let Some(file) = self.lock().get(&entry.path) {
            return Ok(file);
        }
        // Nothing is locked here: to fetch the file may take long, and other threads need other files.
        let mut file = match &self.fetcher {
            None => ArrowFile::open(root, entry)?,
            Some(fetcher) => ArrowFile::fetch(root, entry, fetcher)?,
        };
        file.kept = Arc::clone(&self.kept);
        Ok(self.lock().add(&entry.path, file, self))
    }

    /// Opens files in their order. Those of a store are fetched at the same time.
    pub(crate) fn open_all<'a>(
        &'a self,
        root: &'a Path,
        entries: &'a [&'a FileEntry],
    ) -> impl Iterator<Item = Result<Arc<ArrowFile>>> + use<'a> {
        for entry in entries.iter().take(FILES_AHEAD) {
            self.request(entry);
        }
        entries.iter().enumerate().map(move |(at, entry)| {
            if let Some(later) = entries.get(at + FILES_AHEAD) {
                self.request(later);
            }
            self.open(root, entry)
        })
    }

    /// Requests the end of a file of a store, unless the file is open.
    fn request(&self, entry: &FileEntry) {
        if let Some(fetcher) = &self.fetcher
            && !self.lock().open.contains_key(&entry.path)
        {
            Remote::new(fetcher, entry).request_end(entry);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of times that a file was opened because it was not in the cache.
    pub(crate) fn opened(&self) -> u64 {
        self.lock().opened
    }

    /// Closes files that are no longer part of the dataset.
    pub(crate) fn forget(&self, paths: &[String]) {
        let mut files = self.lock();
        for path in paths {
            if let Some((_, file)) = files.open.remove(path) {
                files.batches -= batches(&file);
                files.fetched_bytes -= file.fetched_bytes;
            }
        }
    }
}

impl Files {
    fn get(&mut self, path: &str) -> Option<Arc<ArrowFile>> {
        self.uses += 1;
        let now = self.uses;
        let (used, file) = self.open.get_mut(path)?;
        *used = now;
        Some(Arc::clone(file))
    }

    /// Adds an opened file within the limits, unless another thread added the same file meanwhile. Returns the
    /// cached file.
    fn add(&mut self, path: &str, mut file: ArrowFile, cache: &OpenFiles) -> Arc<ArrowFile> {
        if let Some(file) = self.get(path) {
            return file;
        }
        self.opened += 1;
        match self.schemas.iter().find(|known| ***known == *file.schema) {
            Some(known) => file.schema = Arc::clone(known),
            None if self.schemas.len() < SCHEMAS_AT_MOST => {
                self.schemas.push(Arc::clone(&file.schema));
            }
            None => {}
        }
        let (batches, fetched_bytes) = (batches(&file), file.fetched_bytes);
        while !self.open.is_empty()
            && (self.batches + batches > cache.batches_at_most
                || self.fetched_bytes + fetched_bytes > cache.fetched_bytes_at_most)
        {
            self.shrink();
        }
        self.batches += batches;
        self.fetched_bytes += fetched_bytes;
        let file = Arc::new(file);
        let cached = (self.uses, Arc::clone(&file));
        self.open.insert(path.to_owned(), cached);
        file
    }

    /// Closes the least recently used quarter of the files.
    fn shrink(&mut self) {
        let mut uses: Vec<u64> = self.open.values().map(|(used, _)| *used).collect();
        uses.sort_unstable();
        let Some(&oldest_kept) = uses.get(uses.len() / 4) else {
            return;
        };
        self.open.retain(|_, (used, _)| *used > oldest_kept);
        self.batches = self.open.values().map(|(_, file)| batches(file)).sum();
        let fetched = self.open.values().map(|(_, file)| file.fetched_bytes);
        self.fetched_bytes = fetched.sum();
    }
}

/// Number by which a file counts towards [`BATCHES_AT_MOST`].
fn batches(file: &ArrowFile) -> usize {
    BATCHES_A_FILE + file.parts().len()
}

impl std::fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenFiles")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dataset, Identity, RowsBuilder, Writer};
    use gleaner_schemas::column::{Row as _, Value};
    use gleaner_schemas::rows::HostRow;

    const DAY_MS: i64 = 86_400_000;
    const FILES: i64 = 650;
    const HOSTS: [&str; 3] = ["host-a", "host-b", "host-c"];

    /// A dataset with one file per day, each with three hosts.
    fn days() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        let mut rows = RowsBuilder::new(&HostRow::TABLE);
        for (sequence, host_id) in (0..FILES).flat_map(|day| HOSTS.map(|host| (day, host))) {
            let identity = Identity {
                host_id,
                database_id: "db",
                sequence,
                time_ms: 1_700_000_000_000 + sequence * DAY_MS,
            };
            let name = [("host_name", Value::Text(host_id.to_owned()))];
            rows.push_known(identity, &name).unwrap();
        }
        writer
            .append(&HostRow::TABLE, rows.finish().unwrap())
            .unwrap();
        assert_eq!(writer.seal().unwrap().files, FILES as usize);
        folder
    }

    /// The test failed with an LRU cache of 512 files: it opened all 650 files again for every host.
    #[test]
    fn a_file_is_opened_once_however_many_hosts_are_read() {
        let folder = days();
        let dataset = Dataset::open(folder.path()).unwrap();
        for _ in 0..2 {
            for host in HOSTS {
                let rows = dataset.read_host(&HostRow::TABLE, host, &["time"]).unwrap();
                assert_eq!(rows.num_rows(), FILES as usize);
            }
        }
        assert_eq!(dataset.files_opened(), FILES as u64);
    }

    #[test]
    fn what_is_held_open_is_bounded_and_the_files_used_last_stay() {
        let folder = days();
        let files = OpenFiles {
            batches_at_most: 100 * (BATCHES_A_FILE + 1),
            ..OpenFiles::default()
        };
        let dataset = Dataset::open(folder.path()).unwrap();
        for entry in &dataset.manifest().files {
            files.open(folder.path(), entry).unwrap();
            assert!(files.files.lock().unwrap().open.len() <= 101);
        }
        assert_eq!(files.opened(), FILES as u64);
        let last = dataset.manifest().files.last().unwrap();
        files.open(folder.path(), last).unwrap();
        assert_eq!(files.opened(), FILES as u64);
    }
}
