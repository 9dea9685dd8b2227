//! Sources: a folder of this host, or an HTTP server that answers ranges. A source holds the sealed folder's
//! files under their paths; it is not trusted.

mod folder;
mod http;
mod url;

pub use url::UrlError;

use crate::catalog::{Catalog, CatalogEntry, EntryKind};
use crate::store::{BlockOrigin, BlockPlace, FetchError};
use folder::Folder;
use http::Http;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Base;

/// Address of a source, as typed: a folder, `https://…` or `http://…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAddress {
    text: String,
    place: SourcePlace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SourcePlace {
    Folder(PathBuf),
    Url(Base),
}

impl SourceAddress {
    /// Parses the address.
    ///
    /// # Errors
    /// A sentence about a malformed URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let place = if text.contains("://") {
            SourcePlace::Url(Base::parse(text)?)
        } else {
            SourcePlace::Folder(PathBuf::from(text))
        };
        Ok(Self {
            text: text.to_owned(),
            place,
        })
    }

    /// Path of the folder; `None` for a server.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            SourcePlace::Folder(path) => Some(path),
            SourcePlace::Url(_) => None,
        }
    }
}

impl std::fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Failure to open a source.
#[derive(Debug, thiserror::Error)]
#[error("source {}: {source}", .path.display())]
pub struct SourceError {
    path: PathBuf,
    source: io::Error,
}

/// An open source of the files in a catalog.
pub struct BlockSource {
    catalog: Arc<Catalog>,
    reader: Reader,
}

enum Reader {
    Folder(Folder),
    Http(Http),
}

/// A part of a file to be read.
struct FilePart<'a> {
    row: u64,
    path: &'a [u8],
    /// Size of the file in the catalog.
    file_bytes: u64,
    offset: u64,
    /// Number of bytes, at least 1; they lie within the file.
    bytes: u64,
}

impl BlockSource {
    /// Opens a source. A folder must exist; a server is not contacted yet. `timeout` limits connecting.
    ///
    /// # Errors
    /// [`SourceError`]: the folder cannot be opened.
    pub fn open(
        address: &SourceAddress,
        catalog: Arc<Catalog>,
        timeout: Duration,
    ) -> Result<Self, SourceError> {
        let reader = match &address.place {
            SourcePlace::Folder(path) => {
                let folder = Folder::open(path).map_err(|source| SourceError {
                    path: path.clone(),
                    source,
                })?;
                Reader::Folder(folder)
            }
            SourcePlace::Url(base) => Reader::Http(Http::new(base.clone(), timeout)),
        };
        Ok(Self { catalog, reader })
    }

    /// Checks the size of a row's file, as far as that is possible without reading it.
    ///
    /// # Errors
    /// [`FetchError::Differs`] if the file has another size; errors of reading.
    pub fn check_size(
        &self,
        entry: &CatalogEntry<'_>,
        deadline: Instant,
    ) -> Result<(), FetchError> {
        match &self.reader {
            Reader::Folder(folder) => folder.check_size(entry.path, entry.bytes),
            Reader::Http(http) => http.check_size(entry.path, entry.bytes, deadline),
        }
    }
}

impl BlockOrigin for BlockSource {
    fn fetch(&self, place: &BlockPlace, deadline: Instant) -> Result<Vec<u8>, FetchError> {
        let entry = self.catalog.entry(place.row);
        let entry = entry.filter(|e| e.kind == EntryKind::File && e.block_bytes(place.index) > 0);
        let entry = entry.ok_or_else(|| FetchError::Missing {
            detail: "the catalog has no such block".to_owned(),
        })?;
        let part = FilePart {
            row: place.row,
            path: entry.path,
            file_bytes: entry.bytes,
            offset: place.index * crate::catalog::BLOCK_BYTES,
            bytes: entry.block_bytes(place.index),
        };
        match &self.reader {
            Reader::Folder(folder) => folder.fetch(&part),
            Reader::Http(http) => http.fetch(&part, deadline),
        }
    }

    fn path_of(&self, place: &BlockPlace) -> String {
        let entry = self.catalog.entry(place.row);
        entry.map_or_else(String::new, |e| crate::catalog::shown(e.path))
    }
}

/// Sources of several mounts, by the number of the mount.
pub struct MountSources(pub Vec<BlockSource>);

impl BlockOrigin for MountSources {
    fn fetch(&self, place: &BlockPlace, deadline: Instant) -> Result<Vec<u8>, FetchError> {
        match self.0.get(place.mount) {
            Some(source) => source.fetch(place, deadline),
            None => Err(missing("there is no such mount")),
        }
    }

    fn path_of(&self, place: &BlockPlace) -> String {
        let source = self.0.get(place.mount);
        source.map_or_else(String::new, |source| source.path_of(place))
    }
}

fn differs(detail: String) -> FetchError {
    FetchError::Differs { detail }
}

fn missing(detail: impl ToString) -> FetchError {
    FetchError::Missing {
        detail: detail.to_string(),
    }
}

fn unavailable(detail: impl ToString) -> FetchError {
    FetchError::Unavailable {
        detail: detail.to_string(),
    }
}

/// Path of this host for a path in a catalog.
fn native(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path))
}
