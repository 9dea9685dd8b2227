//! Size and growth of a collector's part of the dataset, and growth of the whole. The manifests are read only after
//! one of them has changed, not for each request.

use gleaner_dataset::{Dataset, DatasetError, manifest_paths};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

const DAY_MS: i64 = 86_400_000;
/// Number of last days whose records determine the rate of growth.
const RATE_DAYS: i64 = 7;
/// Minimum time span of records from which a rate is computed.
const LEAST_MS: i64 = 3_600_000;

/// Sizes of the dataset's files, which may have several writers.
#[derive(Clone, Debug, Default)]
pub(super) struct Extent {
    files: Vec<SealedFile>,
    /// Reason why the dataset cannot be read; `None` if it can, or if there is none yet.
    pub(super) failure: Option<String>,
}

#[derive(Clone, Debug)]
struct SealedFile {
    /// True if this collector wrote the file.
    is_own: bool,
    rows: u64,
    bytes: u64,
    first_time_ms: i64,
    last_time_ms: i64,
}

impl Extent {
    fn read(root: &Path, writer: Option<&str>) -> Self {
        match Dataset::open(root) {
            Ok(dataset) => {
                let files = dataset.manifest().files.iter().map(|file| SealedFile {
                    is_own: file.writer() == writer,
                    rows: file.rows,
                    bytes: file.bytes,
                    first_time_ms: file.first_time_ms,
                    last_time_ms: file.last_time_ms,
                });
                Self {
                    files: files.collect(),
                    failure: None,
                }
            }
            Err(DatasetError::NotADataset { .. }) => Self::default(),
            Err(e) => Self {
                files: Vec::new(),
                failure: Some(e.to_string()),
            },
        }
    }

    /// Files that this collector wrote.
    fn own(&self) -> impl Iterator<Item = &SealedFile> {
        self.files.iter().filter(|file| file.is_own)
    }

    /// Number of this collector's files.
    pub(super) fn files_count(&self) -> u64 {
        self.own().count() as u64
    }

    /// Number of rows in this collector's files.
    pub(super) fn rows_count(&self) -> u64 {
        self.own().map(|file| file.rows).sum()
    }

    /// Bytes of this collector's files.
    pub(super) fn bytes(&self) -> u64 {
        self.own().map(|file| file.bytes).sum()
    }

    /// Bytes of this collector's new records per day, as the mean of the last seven days. `None` until the records
    /// span an hour.
    pub(super) fn bytes_per_day(&self, now_ms: i64) -> Option<u64> {
        growth(self.own(), now_ms)
    }

    /// Bytes of all collectors' new records per day, as [`Self::bytes_per_day`] has them of one.
    pub(super) fn folder_bytes_per_day(&self, now_ms: i64) -> Option<u64> {
        growth(self.files.iter(), now_ms)
    }
}

fn growth<'a>(files: impl Iterator<Item = &'a SealedFile>, now_ms: i64) -> Option<u64> {
    let from_ms = now_ms - RATE_DAYS * DAY_MS;
    let mut first_ms = now_ms;
    let mut bytes = 0.0;
    for file in files {
        // Clocks may be wrong, so times in the future do not count.
        let (begin, end) = (
            file.first_time_ms.max(from_ms),
            file.last_time_ms.min(now_ms),
        );
        if begin > end {
            continue;
        }
        let whole_ms = (file.last_time_ms - file.first_time_ms).max(1);
        bytes += file.bytes as f64 * ((end - begin).max(1) as f64 / whole_ms as f64).min(1.0);
        first_ms = first_ms.min(begin);
    }
    let span_ms = now_ms - first_ms;
    (span_ms >= LEAST_MS).then(|| (bytes * DAY_MS as f64 / span_ms as f64) as u64)
}

/// Path and identity of a manifest. A manifest is always replaced by another file, never overwritten.
type Stamp = (PathBuf, SystemTime, u64, u64);

/// Extent of the dataset as last read.
#[derive(Debug, Default)]
pub(super) struct Extents(Mutex<Option<(Vec<Stamp>, Extent)>>);

impl Extents {
    /// Extent of the dataset at `root`, which other threads and programs may be writing. `writer` is the name of this
    /// collector.
    pub(super) fn of(&self, root: &Path, writer: Option<&str>) -> Extent {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stamps) = stamps(root) else {
            return Extent::read(root, writer);
        };
        if let Some((last, extent)) = &*read
            && *last == stamps
        {
            return extent.clone();
        }
        let extent = Extent::read(root, writer);
        // After a failure, the next call reads again.
        *read = extent.failure.is_none().then(|| (stamps, extent.clone()));
        extent
    }
}

/// Stamps of all manifests; `None` if they cannot be read, for example because one is being created.
fn stamps(root: &Path) -> Option<Vec<Stamp>> {
    let stamp = |path: PathBuf| -> io::Result<Stamp> {
        let manifest = std::fs::metadata(&path)?;
        let (length, number) = (manifest.len(), manifest.ino());
        Ok((path, manifest.modified()?, length, number))
    };
    let paths = manifest_paths(root).ok()?.into_iter();
    paths.map(|path| stamp(path).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn sealed(first_days: f64, last_days: f64, bytes: u64) -> SealedFile {
        let before = |days: f64| NOW_MS - (days * DAY_MS as f64) as i64;
        SealedFile {
            is_own: true,
            rows: 1,
            bytes,
            first_time_ms: before(first_days),
            last_time_ms: before(last_days),
        }
    }

    fn rate(files: Vec<SealedFile>) -> Option<u64> {
        let failure = None;
        Extent { files, failure }.bytes_per_day(NOW_MS)
    }

    #[test]
    fn growth_is_that_of_the_last_week() {
        assert_eq!(rate(vec![]), None);
        assert_eq!(rate(vec![sealed(0.02, 0.0, 500)]), None); // half an hour of records is too little
        assert_eq!(rate(vec![sealed(0.5, 0.0, 500)]), Some(1000));
        assert_eq!(rate(vec![sealed(30.0, 8.0, 500)]), None);
        // Files that end more than a week ago do not count, and neither do times in the future.
        let files = vec![
            sealed(14.0, 0.0, 14_000),
            sealed(-1.0, -2.0, 1 << 40),
            sealed(30.0, 8.0, 1 << 40),
        ];
        assert_eq!(rate(files), Some(1000));
    }

    #[test]
    fn files_of_other_collectors_count_in_the_folder_only() {
        let others = SealedFile {
            is_own: false,
            ..sealed(0.5, 0.0, 1500)
        };
        let extent = Extent {
            files: vec![sealed(0.5, 0.0, 500), others],
            failure: None,
        };
        let counts = (extent.files_count(), extent.rows_count(), extent.bytes());
        assert_eq!(counts, (1, 1, 500));
        assert_eq!(extent.bytes_per_day(NOW_MS), Some(1000));
        assert_eq!(extent.folder_bytes_per_day(NOW_MS), Some(4000));
    }

    #[test]
    fn a_manifest_is_read_again_when_it_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let extents = Extents::default();
        let now = || extents.of(folder.path(), None);
        assert_eq!((now().files_count(), now().failure), (0, None));
        let manifest = folder.path().join("manifest.json");
        let write = |text: &str| {
            let staged = folder.path().join("staged");
            std::fs::write(&staged, text).unwrap();
            std::fs::rename(&staged, &manifest).unwrap();
        };
        write("{");
        assert!(now().failure.is_some());
        write(r#"{"format_version": 1, "schema_version": 1, "files": []}"#);
        assert_eq!(now().failure, None);
        // The manifest has the same length as before, and perhaps the same modification time.
        write(r#"{"format_version": 1, "schema_version": 1, "files": 12}"#);
        assert!(now().failure.is_some());
    }
}
