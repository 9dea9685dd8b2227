//! Names of a writer's files. A dataset has one writer, or several that each write their own hosts.

use super::durable::entries;
use super::places::{LOCK, MANIFEST, STAGING};
use crate::store::Store;
use crate::{DatasetError, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// Folder of the manifests of writers that have names.
pub(crate) const MANIFESTS: &str = "manifests";
const EXTENSION: &str = ".arrow";
const NAME_AT_MOST: usize = 64;

/// A writer's name; `None` for a dataset's only or first writer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WriterName(Option<String>);

impl WriterName {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
        if (1..=NAME_AT_MOST).contains(&name.len()) && name.bytes().all(is_plain) {
            return Ok(Self(Some(name.to_owned())));
        }
        Err(DatasetError::WriterName {
            name: name.to_owned(),
        })
    }

    /// Names of the writers that have a manifest in the dataset at `root`.
    pub(crate) fn with_manifest(root: &Path) -> Result<BTreeSet<Self>> {
        let mut found = BTreeSet::new();
        if root.join(MANIFEST).exists() {
            found.insert(Self(None));
        }
        let folder = root.join(MANIFESTS);
        if folder.is_dir() {
            for path in entries(&folder)? {
                let name = path.file_name().and_then(|n| n.to_str());
                found.extend(name.and_then(Self::of_manifest));
            }
        }
        Ok(found)
    }

    /// Writers with names that have a manifest in a store, whose URL is `root`.
    pub(crate) fn listed_in(store: &dyn Store, root: &Path) -> Result<BTreeSet<Self>> {
        let listed = store.list(MANIFESTS);
        let listed = listed.map_err(DatasetError::io("list", root.join(MANIFESTS)))?;
        Ok(listed
            .iter()
            .filter_map(|name| Self::of_manifest(name))
            .collect())
    }

    /// Writer whose manifest has this name in the folder of manifests; `None` for another file.
    fn of_manifest(name: &str) -> Option<Self> {
        Self::new(name.strip_suffix(".json")?).ok()
    }

    /// Writer of the file at `path`.
    pub(crate) fn of_file(path: &str) -> Self {
        Self(Self::in_file_name(path).map(str::to_owned))
    }

    /// Writer's name in the name of the file at `path`, which is `<hash>.arrow` or `<hash>.<name>.arrow`.
    pub(crate) fn in_file_name(path: &str) -> Option<&str> {
        let file = path.rsplit('/').next().unwrap_or(path);
        let stem = file.strip_suffix(EXTENSION).unwrap_or(file);
        stem.split_once('.').map(|(_, name)| name)
    }

    /// Hash in the name of the file at `path`.
    pub(crate) fn hash_of_file(path: &str) -> &str {
        let file = path.rsplit('/').next().unwrap_or(path);
        file.split('.').next().unwrap_or(file)
    }

    /// Name of this writer's file whose content has this hash.
    pub(crate) fn file(&self, hash: &str) -> String {
        match &self.0 {
            None => format!("{hash}{EXTENSION}"),
            Some(name) => format!("{hash}.{name}{EXTENSION}"),
        }
    }

    /// Path of the writer's manifest, relative to the dataset.
    pub(crate) fn manifest(&self) -> String {
        match &self.0 {
            None => MANIFEST.to_owned(),
            Some(name) => format!("{MANIFESTS}/{name}.json"),
        }
    }

    /// Path of the folder of the writer's unfinished files.
    pub(crate) fn staging(&self) -> String {
        self.hidden(STAGING)
    }

    /// Path of the file that the writer locks.
    pub(crate) fn lock(&self) -> String {
        self.hidden(LOCK)
    }

    fn hidden(&self, of_the_first: &str) -> String {
        match &self.0 {
            None => of_the_first.to_owned(),
            Some(name) => format!("{of_the_first}-{name}"),
        }
    }
}
