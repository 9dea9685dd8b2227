//! Brings published tables up to date with a dataset.

use crate::commit::{self, Commit, HINT, State, TargetTable};
use crate::convert;
use crate::folder::{Folder, TableFolder};
use crate::iceberg::manifest::DataFile;
use crate::iceberg::metadata::Metadata;
use crate::{Result, TableError};
use gleaner_dataset::{Dataset, DatasetError, FileEntry};
use gleaner_schemas::column::Table;
use gleaner_schemas::rows::DATASET_TABLES;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

const DAY_MS: i64 = 86_400_000;
const US_PER_MS: i64 = 1000;
/// Property of a table that has the meaning of imported hosts' figures, as JSON.
const SOURCES: &str = "gleaner.sources";

/// Options of a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// URL under which readers find the folder, if not by its path; for tables that are copied elsewhere.
    pub location: Option<String>,
    /// Time for which replaced snapshots and their files stay.
    pub grace: Duration,
    /// Bytes that stay free on the folder's disk: a Parquet file is written only if they remain free after it.
    pub reserve_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            location: None,
            grace: crate::GRACE,
            reserve_bytes: 0,
        }
    }
}

/// Progress of a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Table being published.
    pub table: &'static str,
    /// UTC date of the file being published.
    pub date: &'a str,
    /// Rows published so far, over all tables.
    pub rows: u64,
    /// Number of rows of the dataset.
    pub rows_in_all: u64,
}

/// Counts of a publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishSummary {
    /// Number of tables, without those that never had rows.
    pub tables: usize,
    /// Number of tables with a new version.
    pub changed_tables: usize,
    /// Number of rows in the tables.
    pub rows: u64,
    /// Number of Parquet files of the newest snapshots.
    pub files: usize,
    /// Total length of these files, in bytes.
    pub bytes: u64,
    /// Number of files that this publication wrote.
    pub written_files: usize,
}

/// Publishes the dataset at `root` in the folder `out_dir`, or brings the tables there up to date. Call it with the
/// present time as `now`; `progress` is called after each file. If the program is killed, the tables stay as before or
/// as after the step, and the next publication continues.
///
/// # Errors
/// [`TableError::NotEmpty`] for a folder with other files; [`TableError::Locked`] while another program publishes
/// there; [`TableError::NoRoom`] for a full disk; errors of reading or writing. All leave the tables readable.
pub fn publish(
    root: &Path,
    out_dir: &Path,
    options: &Options,
    now: SystemTime,
    mut progress: impl FnMut(&Progress<'_>),
) -> Result<PublishSummary> {
    let folder = Folder::open(out_dir, options.location.as_deref())?;
    let since_1970 = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    loop {
        let dataset = Dataset::open(root)?;
        let run = Run {
            dataset: &dataset,
            folder: &folder,
            now_ms: ms(since_1970),
            grace_ms: ms(options.grace),
            reserve_bytes: options.reserve_bytes,
        };
        match run.publish(&mut progress) {
            // The file was merged meanwhile. Parquet files written so far are found again.
            Err(TableError::Dataset(DatasetError::Missing { .. })) if is_old(&dataset) => {}
            done => return done,
        }
    }
}

fn is_old(dataset: &Dataset) -> bool {
    Dataset::open(dataset.root()).is_ok_and(|now| now.manifest() != dataset.manifest())
}

/// State of one attempt to publish.
struct Run<'a> {
    dataset: &'a Dataset,
    folder: &'a Folder,
    now_ms: i64,
    grace_ms: i64,
    reserve_bytes: u64,
}

impl Run<'_> {
    fn publish(&self, progress: &mut impl FnMut(&Progress<'_>)) -> Result<PublishSummary> {
        let mut summary = PublishSummary::default();
        let mut published: Vec<(&str, TableFolder, u64, Metadata)> = Vec::new();
        for table in &DATASET_TABLES {
            let folder = self.folder.table(table.name);
            if let Some((version, metadata)) = self.table(table, &folder, &mut summary, progress)? {
                published.push((table.name, folder, version, metadata));
            }
        }
        summary.tables = published.len();
        let names = published.iter();
        let names = names.map(|(table, _, version, _)| (*table, commit::metadata_name(*version)));
        self.folder.mark(&names.collect::<Vec<_>>())?;
        for (_, folder, version, metadata) in &published {
            remove_expired(folder, *version, metadata)?;
        }
        Ok(summary)
    }

    /// Publishes one table; returns its newest version, or `None` if it never had rows.
    fn table(
        &self,
        table: &Table,
        folder: &TableFolder,
        summary: &mut PublishSummary,
        progress: &mut impl FnMut(&Progress<'_>),
    ) -> Result<Option<(u64, Metadata)>> {
        let state = newest(folder)?;
        let wanted = TargetTable {
            table: *table,
            location: folder.location.clone(),
            schema: State::next_schema(state.as_ref(), table),
            files: Vec::new(),
            properties: self.properties(),
        };
        let wanted = TargetTable {
            files: self.files(&wanted, folder, state.as_ref(), summary, progress)?,
            ..wanted
        };
        let next = commit::next(state.as_ref(), &wanted, self.now_ms, self.grace_ms);
        let published = match next.map_err(TableError::damaged(folder.path("metadata")))? {
            Some(Commit {
                version,
                metadata,
                objects,
            }) => {
                for (name, content) in &objects {
                    folder.put(name, content)?;
                }
                summary.changed_tables += 1;
                Some((version, metadata))
            }
            None => state.map(|state| (state.version, state.metadata)),
        };
        if let Some((version, _)) = &published {
            put_hint(folder, *version)?;
        }
        Ok(published)
    }

    /// The table's Parquet files, one for each of the dataset's files; writes those that are missing.
    fn files(
        &self,
        wanted: &TargetTable,
        folder: &TableFolder,
        state: Option<&State>,
        summary: &mut PublishSummary,
        progress: &mut impl FnMut(&Progress<'_>),
    ) -> Result<Vec<DataFile>> {
        let manifest = self.dataset.manifest();
        let rows_in_all = manifest.files.iter().map(|f| f.rows).sum();
        let live = state.map_or(&[][..], |state| &state.live[..]);
        let live: BTreeMap<&str, &DataFile> = live
            .iter()
            .filter_map(|entry| Some((entry.file.path.rsplit_once('-')?.0, &entry.file)))
            .collect();
        let mut files = Vec::new();
        for entry in manifest
            .files
            .iter()
            .filter(|f| f.table == wanted.table.name)
        {
            let base = base_name(entry);
            let path = match live.get(base.as_str()) {
                Some(file) if is_whole(folder, file)? => file.path.clone(),
                known => {
                    let path = format!("{base}-{}.parquet", wanted.schema.0.fingerprint());
                    let is_damaged = known.is_some_and(|file| file.path == path);
                    if is_damaged || folder.length(&path)?.is_none() {
                        self.convert(wanted, entry, folder, &path)?;
                        summary.written_files += 1;
                    }
                    path
                }
            };
            let bytes = folder.length(&path)?.unwrap_or_default();
            summary.rows += entry.rows;
            summary.bytes += bytes;
            summary.files += 1;
            files.push(data_file(entry, path, bytes)?);
            progress(&Progress {
                table: wanted.table.name,
                date: &entry.date,
                rows: summary.rows,
                rows_in_all,
            });
        }
        Ok(files)
    }

    fn convert(
        &self,
        wanted: &TargetTable,
        entry: &FileEntry,
        folder: &TableFolder,
        name: &str,
    ) -> Result<()> {
        // A Parquet file is about as long as the dataset's file.
        self.folder.check_room(entry.bytes, self.reserve_bytes)?;
        let schema = convert::arrow_schema(&wanted.table, &wanted.schema.0);
        let rows = self.dataset.scan_file(&wanted.table, entry)?;
        let unfinished = folder.create(name)?;
        let count = convert::write(rows, &schema, &unfinished.file, &unfinished.path)?;
        if count != entry.rows {
            let path = self.dataset.root().join(&entry.path);
            let detail = format!("{count} rows instead of {}", entry.rows);
            return Err(DatasetError::Altered { path, detail }.into());
        }
        unfinished.finish()
    }

    fn properties(&self) -> BTreeMap<String, String> {
        let sources = &self.dataset.manifest().sources;
        if sources.is_empty() {
            return BTreeMap::new();
        }
        let described = serde_json::json!(sources).to_string();
        BTreeMap::from([(SOURCES.to_owned(), described)])
    }
}

/// Newest version of the table in `folder`; `None` if it was never published.
fn newest(folder: &TableFolder) -> Result<Option<State>> {
    let names = folder.metadata_files()?;
    let Some(version) = names
        .iter()
        .filter_map(|name| commit::version_of(name))
        .max()
    else {
        return Ok(None);
    };
    let name = commit::metadata_name(version);
    let text = folder.read(&name)?;
    let metadata = Metadata::parse(&text).map_err(TableError::damaged(folder.path(&name)))?;
    let name = commit::manifest_name(metadata.current_snapshot_id);
    let manifest = folder.read(&name)?;
    let state = State::new(version, metadata, &manifest);
    Ok(Some(
        state.map_err(TableError::damaged(folder.path(&name)))?,
    ))
}

/// Writes the newest version's number, unless it is there. No newline: readers take the whole text as the number.
fn put_hint(folder: &TableFolder, version: u64) -> Result<()> {
    let hint = version.to_string();
    let is_there = folder.length(HINT)?.is_some() && folder.read(HINT)? == hint.as_bytes();
    if is_there {
        return Ok(());
    }
    folder.put(HINT, hint.as_bytes())
}

/// Removes the files that no readable snapshot needs, and those that a killed publication left.
fn remove_expired(folder: &TableFolder, version: u64, metadata: &Metadata) -> Result<usize> {
    let mut named: BTreeSet<String> = commit::metadata_names(version, metadata);
    for snapshot in &metadata.snapshots {
        let name = commit::manifest_name(snapshot.snapshot_id);
        let manifest = folder.read(&name)?;
        let live = commit::live_files(&manifest, &metadata.location);
        let live = live.map_err(TableError::damaged(folder.path(&name)))?;
        named.extend(live.into_iter().map(|entry| entry.file.path));
    }
    folder.remove_others(&named)
}

/// Name of the Parquet file of a dataset's file, without the hash of its columns. The dataset's file is named by its
/// content's hash.
fn base_name(entry: &FileEntry) -> String {
    let file = entry.path.rsplit('/').next().unwrap_or(&entry.path);
    let stem = file.strip_suffix(".arrow").unwrap_or(file);
    format!("data/date={}/{stem}", entry.date)
}

fn is_whole(folder: &TableFolder, file: &DataFile) -> Result<bool> {
    let length = folder.length(&file.path)?;
    Ok(length.and_then(|bytes| i64::try_from(bytes).ok()) == Some(file.bytes))
}

fn data_file(entry: &FileEntry, path: String, bytes: u64) -> Result<DataFile> {
    let days = [entry.first_time_ms, entry.last_time_ms].map(|ms| ms.div_euclid(DAY_MS));
    let day = i32::try_from(days[0]).ok().filter(|_| days[0] == days[1]);
    let day = day.ok_or_else(|| TableError::SeveralDays {
        path: entry.path.clone(),
    })?;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Ok(DataFile {
        path,
        day,
        rows: signed(entry.rows),
        bytes: signed(bytes),
        first_host_id: entry.first_host_id.clone(),
        last_host_id: entry.last_host_id.clone(),
        first_time_us: entry.first_time_ms.saturating_mul(US_PER_MS),
        last_time_us: entry.last_time_ms.saturating_mul(US_PER_MS),
    })
}
