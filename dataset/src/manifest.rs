//! `manifest.json`: which files belong. Where in each a host's rows lie, its own index says.

use crate::layout;
use crate::layout::names::WriterName;
use crate::{DatasetError, FORMAT_VERSION, Result};
use gleaner_schemas::SCHEMA_VERSION;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of a manifest on its way.
const STAGED: &str = "manifest";

/// Text before the manifest's own hash, which is its last member and covers every byte before it.
const OWN_HASH: &str = ",\n  \"blake3\": \"";
/// End of a manifest, and what its hash is computed with in place of the hash.
const END: &str = "\n}\n";

/// The whole of `manifest.json`, or of that of a named writer, but for its own hash.
///
/// A member that this version does not know is damage: a new one needs a new format version, or comes with a new schema
/// version, which is looked at first as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the layout and of this file.
    pub format_version: u32,
    /// Version of the tables' columns.
    pub schema_version: u32,
    /// Traces of other programs that were imported, and what their columns mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceEntry>,
    /// Every file, ordered by table, date and path.
    pub files: Vec<FileEntry>,
}

/// A trace of another program, as its importer describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceEntry {
    /// Name of the source, as in `hosts.source`.
    pub name: String,
    /// Meaning of available memory there: a sentence.
    pub available: String,
    /// True where its importer makes sizes up, since the trace has none; since schema version 5.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sizes_are_made_up: bool,
    /// The columns that it fills.
    pub columns: Vec<SourceColumn>,
}

/// A column that a source fills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceColumn {
    /// Table of the column.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Figure of the source that it is made of.
    pub from: String,
}

/// Entry of one Arrow file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Table whose rows it holds.
    pub table: String,
    /// UTC day of its rows, as `2026-11-21`.
    pub date: String,
    /// Path of the file, relative to the dataset.
    pub path: String,
    /// Rows in it.
    pub rows: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3 hash of its content, in hexadecimal.
    pub blake3: String,
    /// Hash of its Arrow footer, index included, checked before it is parsed.
    pub footer_blake3: String,
    /// Earliest time in it, ms since 1970-01-01 UTC.
    pub first_time_ms: i64,
    /// Latest time in it, ms since 1970-01-01 UTC.
    pub last_time_ms: i64,
    /// Hosts with rows in it.
    #[serde(default)]
    pub hosts_count: u64,
    /// Id of its first host.
    #[serde(default)]
    pub first_host_id: String,
    /// Id of its last host.
    #[serde(default)]
    pub last_host_id: String,
    /// Time up to which it was thinned by a [`crate::Policy`]; absent where it holds all that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned_to_ms: Option<i64>,
    /// The index of a file of format version 1, which has none of its own: its hosts, ordered by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostEntry>,
}

/// A host's part of a file of format version 1: `batches` record batches from `first_batch` on, which
/// hold its rows only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    /// Id of the host.
    pub host_id: String,
    /// Index of its first record batch in the file.
    pub first_batch: usize,
    /// Number of its record batches.
    pub batches: usize,
    /// Rows in them.
    pub rows: u64,
    /// Hash of their bytes, checked before they are decompressed.
    pub blake3: String,
    /// Databases that the rows come from, ordered by id.
    pub databases: Vec<DatabaseEntry>,
}

/// The records of one database in a host's part: none outside these bounds, but maybe not all within.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseEntry {
    /// Id of the database.
    pub database_id: String,
    /// Lowest record sequence.
    pub first_sequence: i64,
    /// Highest record sequence.
    pub last_sequence: i64,
}

impl Manifest {
    /// Manifest of an empty dataset.
    pub(crate) fn empty() -> Self {
        Self {
            format_version: FORMAT_VERSION,
            schema_version: SCHEMA_VERSION,
            sources: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The manifests of every writer of the dataset at `root`, as one.
    pub(crate) fn load_all(root: &Path) -> Result<Self> {
        let mut names = WriterName::with_manifest(root)?.into_iter();
        let mut all = Self::load(root, &names.next().unwrap_or_default())?;
        for name in names {
            let other = Self::load(root, &name)?;
            all.format_version = all.format_version.max(other.format_version);
            all.schema_version = all.schema_version.max(other.schema_version);
            all.files.extend(other.files);
            for source in other.sources {
                if all.sources.iter().all(|known| known.name != source.name) {
                    all.sources.push(source);
                }
            }
        }
        all.sort();
        Ok(all)
    }

    pub(crate) fn sort(&mut self) {
        let order = |f: &FileEntry| (f.table.clone(), f.date.clone(), f.path.clone());
        self.files.sort_by_cached_key(order);
    }

    /// Reads the manifest of a writer of the dataset at `root`.
    pub(crate) fn load(root: &Path, name: &WriterName) -> Result<Self> {
        let text = Self::text(root, name)?;
        Self::parse(root.join(name.manifest()), &text)
    }

    /// The manifest of a writer of the dataset at `root`, as it is written.
    pub(crate) fn text(root: &Path, name: &WriterName) -> Result<Vec<u8>> {
        let path = root.join(name.manifest());
        fs::read(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => DatasetError::NotADataset {
                root: root.to_owned(),
            },
            _ => DatasetError::io("read", &path)(e),
        })
    }

    /// Parses the `text` of the manifest at `path`.
    pub(crate) fn parse(path: PathBuf, text: &[u8]) -> Result<Self> {
        // Versions first: a newer manifest may hold what this program cannot parse.
        let malformed = |source| DatasetError::Manifest {
            path: path.clone(),
            source,
        };
        let versions: Versions = serde_json::from_slice(text).map_err(malformed)?;
        for (what, found, known) in [
            ("format version", versions.format_version, FORMAT_VERSION),
            ("schema version", versions.schema_version, SCHEMA_VERSION),
        ] {
            if found > known {
                return Err(DatasetError::Newer {
                    path,
                    what,
                    found,
                    known,
                });
            }
        }
        let text = match unsigned(text) {
            Some(own) => own,
            None if versions.blake3.is_some() => {
                return Err(DatasetError::ManifestAltered { path });
            }
            // Written before manifests had a hash.
            None => text.to_vec(),
        };
        let mut manifest: Self = serde_json::from_slice(&text).map_err(malformed)?;
        for file in &mut manifest.files {
            if let [first, ..] = &file.hosts[..] {
                file.hosts_count = file.hosts.len() as u64;
                file.first_host_id.clone_from(&first.host_id);
                let last = file.hosts.last().unwrap_or(first);
                file.last_host_id.clone_from(&last.host_id);
            }
        }
        Ok(manifest)
    }

    /// Writes the manifest aside, for [`Manifest::put`].
    pub(crate) fn stage(&self, root: &Path, name: &WriterName) -> Result<()> {
        let staged = root.join(name.staging()).join(STAGED);
        let write = || -> io::Result<()> {
            let mut file = File::create(&staged)?;
            file.write_all(signed(serde_json::to_string_pretty(self)?).as_bytes())?;
            file.sync_all()
        };
        write().map_err(DatasetError::io("write", &staged))
    }

    /// Puts the staged manifest in the place of the one at `root`: a reader finds the old one or this one.
    pub(crate) fn put(root: &Path, name: &WriterName) -> Result<()> {
        let staged = root.join(name.staging()).join(STAGED);
        layout::put(&staged, &root.join(name.manifest()))
    }
}

/// The manifest's text with its own hash as the last member.
fn signed(text: String) -> String {
    let text = text + "\n";
    let hash = blake3::hash(text.as_bytes());
    let members = text.strip_suffix(END).unwrap_or(&text);
    format!("{members}{OWN_HASH}{hash}\"{END}")
}

/// The text of which the manifest's own hash was made; none where it has no hash, or another.
fn unsigned(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (members, hash) = text.rsplit_once(OWN_HASH)?;
    let hash = hash.strip_suffix(END)?.strip_suffix('"')?;
    let own = members.to_owned() + END;
    (blake3::hash(own.as_bytes()).to_string() == hash).then(|| own.into_bytes())
}

impl FileEntry {
    /// Returns false if the file certainly has no rows of `host_id`.
    #[must_use]
    pub fn may_hold(&self, host_id: &str) -> bool {
        self.first_host_id.as_str() <= host_id && host_id <= self.last_host_id.as_str()
    }
}

#[derive(Deserialize)]
struct Versions {
    format_version: u32,
    schema_version: u32,
    #[serde(default)]
    blake3: Option<serde::de::IgnoredAny>,
}
