//! Opens a dataset in a folder or on an object store.

use crate::bucket::Bucket;
use crate::{Target, TargetError};
use gleaner_dataset::{Dataset, DatasetError};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Reason why a dataset could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL or an option is invalid.
    #[error("cannot open {url}: {source}")]
    Target {
        /// URL as given.
        url: String,
        /// Fault of the URL or of the option.
        source: TargetError,
    },
    /// No thread for requests could be started.
    #[error("cannot start threads to read {url}: {source}")]
    Threads {
        /// URL as given.
        url: String,
        /// Error of the system.
        source: io::Error,
    },
    /// There is no dataset, or it cannot be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

/// Opens the dataset at `place`: a folder, `file:///folder` or `s3://bucket/prefix`. The environment variables
/// `AWS_…` have credentials and options of the object store.
///
/// Must not be called from asynchronous code, and neither must the dataset's functions: they wait for the store.
///
/// # Errors
/// [`OpenError`].
pub fn open(place: &Path) -> Result<Dataset, OpenError> {
    match place.to_str().filter(|text| text.contains("://")) {
        Some(url) => open_with(url, &BTreeMap::new()),
        None => Ok(Dataset::open(place)?),
    }
}

/// Opens the dataset at a URL, with options of the object store ([`Target::new`]).
///
/// # Errors
/// [`OpenError`].
pub fn open_with(url: &str, options: &BTreeMap<String, String>) -> Result<Dataset, OpenError> {
    let invalid = |source: TargetError| OpenError::Target {
        url: url.to_owned(),
        source,
    };
    let target = Target::new(url, options).map_err(invalid)?;
    if let Some(folder) = target.folder() {
        return Ok(Dataset::open(folder)?);
    }
    let store = target.open().map_err(|e| invalid(e.into()))?;
    let bucket = Bucket::new(target.to_string(), store);
    let bucket = bucket.map_err(|source| OpenError::Threads {
        url: url.to_owned(),
        source,
    })?;
    Ok(Dataset::open_in(Arc::new(bucket))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_cannot_be_opened_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("nowhere");
        for (place, expected) in [
            (nowhere.display().to_string(), "not a dataset"),
            (format!("file://{}", nowhere.display()), "not a dataset"),
            ("file://nowhere".to_owned(), "file:///absolute/folder"),
            (
                "gs://bucket/x".to_owned(),
                "cannot open gs://bucket/x: neither s3://",
            ),
            (
                "s3://".to_owned(),
                "cannot open s3://: write s3://bucket/prefix",
            ),
        ] {
            let said = open(Path::new(&place)).unwrap_err().to_string();
            assert!(said.contains(expected), "{place}: {said}");
        }
    }

    #[test]
    fn a_folder_is_opened_by_its_path_and_by_its_url() {
        let folder = tempfile::tempdir().unwrap();
        gleaner_dataset::Writer::open(folder.path()).unwrap();
        let by_path = open(folder.path()).unwrap();
        let url = format!("file://{}", folder.path().display());
        let by_url = open(Path::new(&url)).unwrap();
        assert_eq!(by_path.root(), by_url.root());
        assert_eq!(by_path.manifest(), by_url.manifest());
    }
}
