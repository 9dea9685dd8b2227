//! `manifest.json`: lists the dataset's files. The place of a host's rows in a file is in that file's index.

use crate::layout;
use crate::layout::names::WriterName;
use crate::store::Store;
use crate::{DatasetError, FORMAT_VERSION, Result};
use gleaner_schemas::{SCHEMA_VERSION, renames};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of a staged manifest.
const STAGED: &str = "manifest";

/// Text between the other members and the manifest's own hash, its last member. The hash covers every byte
/// before this text, and [`END`].
const OWN_HASH: &str = ",\n  \"blake3\": \"";
/// Last bytes of a manifest. For the hash, this text directly follows the other members.
const END: &str = "\n}\n";

/// Content of `manifest.json`, or of a named writer's manifest, except for its own hash.
///
/// An unknown member is treated as damage: new members come with a new format version or a new schema
/// version, and both versions are checked first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the layout and of the manifest.
    pub format_version: u32,
    /// Version of the tables' columns.
    pub schema_version: u32,
    /// Imported traces of other programs, and the meaning of their columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceEntry>,
    /// All files, ordered by table, date and path.
    pub files: Vec<FileEntry>,
}

/// Description of another program's trace, made by its importer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceEntry {
    /// Name of the source, as in `hosts.source`.
    pub name: String,
    /// Meaning of available memory in the source: a sentence. The aliases here are names that earlier builds wrote.
    #[serde(alias = "available")]
    pub available_meaning: String,
    /// True if the importer invents sizes, because the trace has none. Written since schema version 5.
    #[serde(
        default,
        skip_serializing_if = "std::ops::Not::not",
        alias = "sizes_are_made_up"
    )]
    pub has_invented_sizes: bool,
    /// The columns that the source fills.
    pub columns: Vec<SourceColumn>,
}

/// A column of a table that a source fills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceColumn {
    /// Table of the column.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Figure of the source from which the column is computed.
    #[serde(alias = "from")]
    pub origin: String,
}

/// Entry of one Arrow file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Table of the rows in the file.
    pub table: String,
    /// UTC day of the rows, as `2026-11-21`.
    pub date: String,
    /// Path of the file, relative to the dataset. The folder of an older file has the table's earlier name.
    pub path: String,
    /// Number of rows in the file.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// BLAKE3 hash of the file's content, in hexadecimal.
    pub blake3: String,
    /// Hash of the file's Arrow footer, which contains the index. It is checked before the footer is parsed.
    pub footer_blake3: String,
    /// Earliest time of a row, ms since 1970-01-01 UTC.
    pub first_time_ms: i64,
    /// Latest time of a row, ms since 1970-01-01 UTC.
    pub last_time_ms: i64,
    /// Number of hosts with rows in the file.
    #[serde(default)]
    pub hosts_count: u64,
    /// Id of the file's first host.
    #[serde(default)]
    pub first_host_id: String,
    /// Id of the file's last host.
    #[serde(default)]
    pub last_host_id: String,
    /// Interval to which a [`crate::Policy`] thinned the file's samples, in ms; absent if the file has all samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned_to_ms: Option<i64>,
    /// Hosts in a file of format version 1, ordered by id; such a file has no index of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostEntry>,
}

/// A host's part of a file of format version 1: record batches with rows of this host only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    /// Id of the host.
    pub host_id: String,
    /// Index of the host's first record batch in the file.
    pub first_batch: usize,
    /// Number of the host's record batches.
    pub batches: usize,
    /// Number of rows in these batches.
    pub rows: u64,
    /// Hash of the batches' bytes, checked before they are decompressed.
    pub blake3: String,
    /// Databases of the rows, ordered by id.
    pub databases: Vec<DatabaseEntry>,
}

/// Bounds of one database's records in a host's part. All records are within the bounds, but not all records
/// within the bounds need exist.
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

    /// Reads the manifests of all writers of the dataset at `root`, merged into one.
    pub(crate) fn load_all(root: &Path) -> Result<Self> {
        let mut names = WriterName::with_manifest(root)?.into_iter();
        let first = Self::load(root, &names.next().unwrap_or_default())?;
        first.merge(names.map(|name| Self::load(root, &name)))
    }

    /// Fetches the manifests of all writers of the dataset in a store, merged into one. `root` is the store's URL.
    pub(crate) fn fetch_all(store: &dyn Store, root: &Path) -> Result<Self> {
        let named = WriterName::listed_in(store, root)?;
        let fetch = |name: &WriterName| {
            let path = root.join(name.manifest());
            match store.read(&name.manifest()) {
                Ok(text) => Self::parse(path, &text),
                Err(e) if e.kind() == io::ErrorKind::NotFound && *name == WriterName::default() => {
                    Err(DatasetError::NotADataset {
                        root: root.to_owned(),
                    })
                }
                Err(e) => Err(DatasetError::io("read", path)(e)),
            }
        };
        let mut others = named.iter().map(fetch);
        let first = match fetch(&WriterName::default()) {
            // Perhaps only writers that have names wrote the dataset.
            Err(none @ DatasetError::NotADataset { .. }) => others.next().unwrap_or(Err(none)),
            first => first,
        };
        first?.merge(others)
    }

    /// This manifest, with the files and sources of others.
    fn merge(self, others: impl Iterator<Item = Result<Self>>) -> Result<Self> {
        let mut all = self;
        for other in others {
            let other = other?;
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

    /// Replaces earlier names of tables and columns by the present ones. The files themselves stay in their places.
    fn rename(&mut self) {
        for file in &mut self.files {
            file.table = renames::table_name(&file.table).to_owned();
        }
        for filled in self
            .sources
            .iter_mut()
            .flat_map(|source| &mut source.columns)
        {
            filled.table = renames::table_name(&filled.table).to_owned();
            filled.column = renames::column_name(&filled.table, &filled.column).to_owned();
        }
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

    /// Text of the manifest of a writer of the dataset at `root`.
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
        // The versions are checked first: a newer manifest may have members that this program cannot parse.
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
            // The manifest was written before manifests had a hash.
            None => text.to_vec(),
        };
        let mut manifest: Self = serde_json::from_slice(&text).map_err(malformed)?;
        manifest.rename();
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

    /// Writes the manifest to the staging folder; [`Manifest::put`] moves it to its place.
    pub(crate) fn stage(&self, root: &Path, name: &WriterName) -> Result<()> {
        let staged = root.join(name.staging()).join(STAGED);
        let write = || -> io::Result<()> {
            let mut file = File::create(&staged)?;
            file.write_all(signed(serde_json::to_string_pretty(self)?).as_bytes())?;
            file.sync_all()
        };
        write().map_err(DatasetError::io("write", &staged))
    }

    /// Replaces the manifest at `root` by the staged one. A reader finds either the old one or the new one.
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

/// The text that the manifest's own hash covers; `None` if the hash is missing or differs.
fn unsigned(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (members, hash) = text.rsplit_once(OWN_HASH)?;
    let hash = hash.strip_suffix(END)?.strip_suffix('"')?;
    let own = members.to_owned() + END;
    (blake3::hash(own.as_bytes()).to_string() == hash).then(|| own.into_bytes())
}

impl FileEntry {
    /// Returns false only if the file certainly has no rows of `host_id`.
    #[must_use]
    pub fn may_hold(&self, host_id: &str) -> bool {
        self.first_host_id.as_str() <= host_id && host_id <= self.last_host_id.as_str()
    }

    /// Name of the writer of the file; `None` for the dataset's only or first writer.
    #[must_use]
    pub fn writer(&self) -> Option<&str> {
        WriterName::in_file_name(&self.path)
    }
}

/// Paths of the manifests of all writers of the dataset at `root`, in the order of the writers' names. Empty if there is
/// no dataset.
///
/// # Errors
/// [`DatasetError::Io`] if the folder of manifests cannot be listed.
pub fn manifest_paths(root: &Path) -> Result<Vec<PathBuf>> {
    let names = WriterName::with_manifest(root)?;
    Ok(names
        .iter()
        .map(|name| root.join(name.manifest()))
        .collect())
}

/// Checks that `name` may be the name of a writer: 1 to 64 lower-case letters, digits, `-` and `_`.
///
/// # Errors
/// [`DatasetError::WriterName`].
pub fn check_writer_name(name: &str) -> Result<()> {
    WriterName::new(name).map(|_| ())
}

#[derive(Deserialize)]
struct Versions {
    format_version: u32,
    schema_version: u32,
    #[serde(default)]
    blake3: Option<serde::de::IgnoredAny>,
}
