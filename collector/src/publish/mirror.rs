//! Updates the object store from the dataset. After each step, the store has a complete set of files.

use super::{Failure, Settings};
use futures_util::TryStreamExt;
use gleaner_dataset::{DatasetError, FileEntry, Snapshot};
use gleaner_objects::Target;
use object_store::path::Path as Location;
use object_store::{ObjectStore, ObjectStoreExt};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer files are uploaded in parts of this length, one of which is in memory at a time. S3 accepts at
/// most 10,000 parts, of at least 5 MiB each; the dataset's files have at most some 512 MiB.
const PART_BYTES: u64 = 8 << 20;

/// The copy on an object store, with facts that the collector remembers about it.
pub(super) struct Mirror {
    dataset: PathBuf,
    name: Option<String>,
    target: Target,
    grace: Duration,
    /// Manifest that was uploaded last.
    put: Option<Vec<u8>>,
    /// Files in the store that the manifest does not list, each with the time at which this was first
    /// noticed. A restart forgets these times, so the files stay longer.
    retired: BTreeMap<String, Instant>,
}

impl Mirror {
    pub(super) fn new(dataset: &Path, name: Option<&str>, settings: &Settings) -> Self {
        Self {
            dataset: dataset.to_owned(),
            name: name.map(str::to_owned),
            target: settings.target.clone(),
            grace: settings.grace,
            put: None,
            retired: BTreeMap::new(),
        }
    }

    /// Time until the next removal.
    pub(super) fn next_removal(&self) -> Option<Duration> {
        let first = self.retired.values().min()?;
        Some(self.grace.saturating_sub(first.elapsed()))
    }

    /// Uploads missing files, and removes extra ones; passes the number and size of the missing files to
    /// `pending`. Returns false while there is no dataset yet.
    pub(super) async fn synchronize(
        &mut self,
        pending: &impl Fn(u64, u64),
    ) -> Result<bool, Failure> {
        loop {
            let snapshot = match Snapshot::open(&self.dataset, self.name.as_deref()) {
                Err(DatasetError::NotADataset { .. }) => return Ok(false), // nothing was sealed yet
                opened => opened?,
            };
            match self.put_all(&snapshot, pending).await {
                // Files were merged meanwhile, so the present manifest lists other files.
                Err(Failure::Dataset(DatasetError::Missing { .. })) if self.is_old(&snapshot) => {}
                done => return done.map(|()| true),
            }
        }
    }

    fn is_old(&self, snapshot: &Snapshot) -> bool {
        let now = Snapshot::open(&self.dataset, self.name.as_deref());
        now.is_ok_and(|now| now.manifest_text() != snapshot.manifest_text())
    }

    async fn put_all(
        &mut self,
        snapshot: &Snapshot,
        pending: &impl Fn(u64, u64),
    ) -> Result<(), Failure> {
        let sum = |files: &[&FileEntry]| files.iter().map(|file| file.bytes).sum();
        if self.put.as_deref() != Some(snapshot.manifest_text()) {
            let files: Vec<_> = snapshot.files().iter().collect();
            pending(files.len() as u64, sum(&files)); // until the store has listed its files
        }
        let store = self.target.open().map_err(self.failed("open", ""))?;
        let found = self.list(&store).await?;
        let lacks = |file: &&FileEntry| found.get(&file.path) != Some(&file.bytes);
        let lacking: Vec<_> = snapshot.files().iter().filter(lacks).collect();
        pending(lacking.len() as u64, sum(&lacking));
        self.claim(snapshot, &found)?;
        for (index, file) in lacking.iter().enumerate() {
            self.put_file(&store, snapshot, file).await?;
            let left = &lacking[index + 1..];
            pending(left.len() as u64, sum(left));
        }
        self.put_manifest(&store, snapshot, &found).await?;
        self.remove_retired(&store, snapshot, &found).await
    }

    /// Lists every object in the store with its size in bytes.
    async fn list(&self, store: &Arc<dyn ObjectStore>) -> Result<BTreeMap<String, u64>, Failure> {
        let objects = store.list(None);
        let objects = objects.map_ok(|object| (object.location.to_string(), object.size));
        objects.try_collect().await.map_err(self.failed("list", ""))
    }

    /// Checks that a manifest in the store belongs to this dataset. A collector that has lost its disk or has
    /// a wrong configuration must not replace what may be the last copy of another dataset.
    fn claim(&self, snapshot: &Snapshot, found: &BTreeMap<String, u64>) -> Result<(), Failure> {
        let suffix = self
            .name
            .as_ref()
            .map_or(String::new(), |n| format!("-{n}"));
        let note = self.dataset.join(format!(".published{suffix}"));
        let url = self.target.to_string();
        if fs::read_to_string(&note).is_ok_and(|claimed| claimed == url) {
            return Ok(());
        }
        let manifest = snapshot.manifest_path();
        if found.contains_key(&manifest) {
            return Err(Failure::NotOurs { url, manifest });
        }
        fs::write(&note, url).map_err(Failure::io("write", &note))?;
        for path in [&note, &self.dataset] {
            let synced = File::open(path).and_then(|file| file.sync_all());
            synced.map_err(Failure::io("sync", path))?;
        }
        Ok(())
    }

    async fn put_file(
        &self,
        store: &Arc<dyn ObjectStore>,
        snapshot: &Snapshot,
        entry: &FileEntry,
    ) -> Result<(), Failure> {
        let path = self.dataset.join(&entry.path);
        let file = snapshot.open_file(entry)?;
        prove(&file, &path, entry)?;
        let next = || read_part(&file, &path);
        let location = Location::from(entry.path.as_str());
        let failed = || self.failed("put", &entry.path);
        if entry.bytes <= PART_BYTES {
            let put = store.put(&location, next()?.into()).await;
            return put.map(|_| ()).map_err(failed());
        }
        let mut upload = store.put_multipart(&location).await.map_err(failed())?;
        let put = async {
            for _ in 0..entry.bytes.div_ceil(PART_BYTES) {
                let part = next()?.into();
                upload.put_part(part).await.map_err(failed())?;
            }
            upload.complete().await.map(|_| ()).map_err(failed())
        };
        let put = put.await;
        if put.is_err() {
            let _ = upload.abort().await; // if this fails, the bucket's rules clean up
        }
        put
    }

    async fn put_manifest(
        &mut self,
        store: &Arc<dyn ObjectStore>,
        snapshot: &Snapshot,
        found: &BTreeMap<String, u64>,
    ) -> Result<(), Failure> {
        let (path, text) = (snapshot.manifest_path(), snapshot.manifest_text());
        if self.put.as_deref() == Some(text) && found.get(&path) == Some(&(text.len() as u64)) {
            return Ok(());
        }
        let location = Location::from(path.as_str());
        let put = store.put(&location, text.to_vec().into()).await;
        put.map_err(self.failed("put", &path))?;
        self.put = Some(text.to_vec());
        Ok(())
    }

    /// Removes files that this collector uploaded and that no manifest has listed for the grace period.
    async fn remove_retired(
        &mut self,
        store: &Arc<dyn ObjectStore>,
        snapshot: &Snapshot,
        found: &BTreeMap<String, u64>,
    ) -> Result<(), Failure> {
        let named: BTreeSet<_> = snapshot.files().iter().map(|f| f.path.as_str()).collect();
        let is_over = |path: &str| snapshot.is_of_writer(path) && !named.contains(path);
        self.retired
            .retain(|path, _| found.contains_key(path) && is_over(path));
        for path in found.keys().filter(|path| is_over(path)) {
            let since = self.retired.entry(path.clone());
            since.or_insert_with(Instant::now);
        }
        let due = |(path, since): (&String, &Instant)| {
            (since.elapsed() >= self.grace).then(|| path.clone())
        };
        let due: Vec<String> = self.retired.iter().filter_map(due).collect();
        for path in due {
            match store.delete(&Location::from(path.as_str())).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed("remove", &path)(error)),
            }
            self.retired.remove(&path);
        }
        Ok(())
    }

    fn failed(
        &self,
        action: &'static str,
        path: &str,
    ) -> impl FnOnce(object_store::Error) -> Failure + use<> {
        let place = format!("{}/{path}", self.target);
        let place = place.trim_end_matches('/').to_owned();
        move |source| Failure::Store {
            action,
            place,
            source,
        }
    }
}

/// Checks that the file is as it was sealed. Otherwise each attempt would upload a damaged file in vain.
/// Leaves the file at its beginning.
fn prove(file: &File, path: &Path, entry: &FileEntry) -> Result<(), Failure> {
    let mut hash = blake3::Hasher::new();
    let mut file = file;
    std::io::copy(&mut file, &mut hash).map_err(Failure::io("read", path))?;
    file.rewind().map_err(Failure::io("read", path))?;
    if hash.finalize().to_hex().as_str() == entry.blake3 {
        return Ok(());
    }
    Err(Failure::Dataset(DatasetError::Altered {
        path: path.to_owned(),
        detail: "its content has another hash".to_owned(),
    }))
}

fn read_part(file: &File, path: &Path) -> Result<Vec<u8>, Failure> {
    let mut part = Vec::new();
    let read = file.take(PART_BYTES).read_to_end(&mut part);
    read.map_err(Failure::io("read", path))?;
    Ok(part)
}
