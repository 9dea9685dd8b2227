//! Adds rows to a dataset: they are collected in memory, and sealed together.

use crate::file::open_files::OpenFiles;
use crate::file::staged::StagedFile;
use crate::layout::lock::Lock;
use crate::layout::names::{MANIFESTS, WriterName};
use crate::layout::retired;
use crate::layout::{self, DAMAGED, LOCK, RETIRED, STAGING};
use crate::manifest::{Manifest, SourceEntry};
use crate::rows::identity::Identities;
use crate::write::marks::Marks;
use crate::write::pending::PendingRows;
use crate::{DatasetError, Result};
use arrow::array::UInt32Array;
use arrow::compute::take_record_batch;
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The only writer of a dataset, or one of several with their own names. Appended rows stay in memory until
/// [`Writer::seal`]; a long trace should be sealed day by day.
#[derive(Debug)]
pub struct Writer {
    pub(crate) root: PathBuf,
    pub(crate) name: WriterName,
    pub(crate) manifest: Manifest,
    /// Rows that are not sealed yet, by table and day (counted from 1970-01-01).
    pub(crate) pending: BTreeMap<(&'static str, i64), PendingRows>,
    pub(crate) files: OpenFiles,
    pub(crate) marks: Option<Marks>,
    pub(crate) grace: Duration,
    /// Columns that are ignored when a repeated row is compared with the dataset's; `None`: they are not
    /// compared.
    pub(crate) compared_except: Option<&'static [&'static str]>,
    /// Paths of damaged files, which are not merged.
    pub(crate) unsound: HashSet<String>,
    _lock: Lock,
}

impl Writer {
    /// Opens the dataset at `root` for adding rows; creates it if necessary.
    ///
    /// # Errors
    /// [`DatasetError::Locked`] while another writer has the dataset open, [`DatasetError::NotEmpty`] if the
    /// folder holds something other than a dataset, [`DatasetError::NotAFolder`] for a URL,
    /// [`DatasetError::Newer`], or the system's error.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        Self::open_by(root.as_ref(), WriterName::default())
    }

    /// Opens the dataset at `root` as one of several writers. Each has its own name, lock, staging folder and
    /// manifest (`manifests/<name>.json`). Readers see the rows of all writers. Each record should be written by one
    /// writer only: a writer recognizes repetitions in its own files only. [`crate::Dataset`] returns a record once
    /// even if two writers have it; [`crate::Dataset::rows`] and other programs count it twice.
    ///
    /// # Errors
    /// As [`Writer::open`]; [`DatasetError::WriterName`].
    pub fn open_named(root: impl AsRef<Path>, name: &str) -> Result<Self> {
        Self::open_by(root.as_ref(), WriterName::new(name)?)
    }

    fn open_by(root: &Path, name: WriterName) -> Result<Self> {
        layout::check_folder(root)?;
        fs::create_dir_all(root).map_err(DatasetError::io("create folder", root))?;
        let root = fs::canonicalize(root).map_err(DatasetError::io("find", root))?;
        // The entries are listed before the manifests. Another writer may be creating the dataset right now,
        // and it creates its manifest first.
        let foreign = layout::entries(&root)?.iter().any(|p| !is_our_own(p));
        if foreign && WriterName::with_manifest(&root)?.is_empty() {
            return Err(DatasetError::NotEmpty { root });
        }
        let lock = Lock::take(&root, &name)?;
        let is_new = !root.join(name.manifest()).exists();
        let manifest = if is_new {
            Manifest::empty()
        } else {
            Manifest::load(&root, &name)?
        };
        let writer = Self::begin(root, name, manifest, lock)?;
        if is_new {
            if let Some((folder, _)) = writer.name.manifest().rsplit_once('/') {
                layout::create_folders(&writer.root, folder)?;
            }
            writer.manifest.stage(&writer.root, &writer.name)?;
            Manifest::put(&writer.root, &writer.name)?;
            writer.root.parent().map_or(Ok(()), layout::sync_folder)?;
        }
        Ok(writer)
    }

    /// Creates a writer with `manifest`, and removes what a dead writer left.
    pub(crate) fn begin(
        root: PathBuf,
        name: WriterName,
        manifest: Manifest,
        lock: Lock,
    ) -> Result<Self> {
        let named: HashSet<PathBuf> = manifest.files.iter().map(|f| root.join(&f.path)).collect();
        layout::sweep(&root, &name, |path| named.contains(path))?;
        retired::purge(&root, retired::GRACE)?;
        Ok(Self {
            root,
            name,
            manifest,
            pending: BTreeMap::new(),
            files: OpenFiles::default(),
            marks: None,
            grace: retired::GRACE,
            compared_except: None,
            unsound: HashSet::new(),
            _lock: lock,
        })
    }

    /// Begins a staged file for one table and day; `number` distinguishes the files of the same step.
    pub(crate) fn staged_file(
        &self,
        number: usize,
        table: &Table,
        date: &str,
    ) -> Result<StagedFile> {
        let path = self.root.join(self.name.staging()).join(number.to_string());
        StagedFile::create(path, &self.name, table, date.to_owned())
    }

    /// Frees disk space after a failed step. Files that cannot be removed now are removed when the dataset is
    /// next opened.
    pub(crate) fn clear_staging(&self) {
        let _ = layout::clear(&self.root.join(self.name.staging()));
    }

    /// Sets the time for which replaced files are kept, for readers that opened the dataset before. The
    /// default is an hour.
    pub fn keep_retired_for(&mut self, grace: Duration) {
        self.grace = grace;
    }

    /// Highest sealed record sequence of a host's database, over all tables. The first call reads the index
    /// of every file; later calls read no file.
    ///
    /// # Errors
    /// A file that is torn, altered or unreadable.
    pub fn last_sequence(&mut self, host_id: &str, database_id: &str) -> Result<Option<i64>> {
        let marks = match self.marks.take() {
            Some(marks) => marks,
            None => Marks::read(&self.root, &self.manifest)?,
        };
        Ok(self.marks.insert(marks).last_sequence(host_id, database_id))
    }

    /// Manifest of all files that this writer has sealed, also in earlier runs.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Adds or replaces the description of another program's trace, durably and atomically.
    ///
    /// # Errors
    /// The system's error; the dataset is then unchanged.
    pub fn describe(&mut self, source: SourceEntry) -> Result<()> {
        if self.manifest.sources.contains(&source) {
            return Ok(());
        }
        let before = self.manifest.sources.clone();
        self.manifest
            .sources
            .retain(|known| known.name != source.name);
        self.manifest.sources.push(source);
        let published = self.publish(Vec::new(), &[]);
        if published.is_err() {
            self.manifest.sources = before;
        }
        published
    }

    /// Makes seals count repeated rows whose values differ ([`crate::Summary::contradicted_rows`]) in any
    /// column that is not in `except`. A seal then reads all columns of the dataset's rows that might be
    /// repeated, not only those that identify records.
    pub fn compare_repeats(&mut self, except: &'static [&'static str]) {
        self.compared_except = Some(except);
    }

    /// Number of appended rows that are not sealed yet, repetitions included.
    #[must_use]
    pub fn pending_rows(&self) -> u64 {
        self.pending.values().map(|p| p.rows() as u64).sum()
    }

    /// Memory of the rows that are not sealed yet, in bytes.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending.values().map(PendingRows::bytes).sum()
    }

    /// Adds rows of any hosts and days, in any order. Rows that the dataset already has are left out by the seal.
    ///
    /// # Errors
    /// [`DatasetError::WrongSchema`] if the columns are not those of `table`.
    pub fn append(&mut self, table: &Table, batch: RecordBatch) -> Result<()> {
        let batch = checked(table, batch)?;
        let identities = Identities::of(&batch).map_err(DatasetError::rows(table.name))?;
        let mut days: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
        for (position, &time_ms) in (0..).zip(identities.times_ms) {
            days.entry(layout::day(time_ms)).or_default().push(position);
        }
        for (day, positions) in days {
            let rows = if positions.len() == batch.num_rows() {
                batch.clone()
            } else {
                take_record_batch(&batch, &UInt32Array::from(positions))
                    .map_err(DatasetError::rows(table.name))?
            };
            self.pending
                .entry((table.name, day))
                .or_default()
                .push(rows)
                .map_err(DatasetError::rows(table.name))?;
        }
        Ok(())
    }
}

/// Returns true for an entry that a writer may create before the first manifest exists.
fn is_our_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| {
        let of_a_writer = [LOCK, STAGING].iter().any(|own| {
            let rest = name.strip_prefix(own);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        of_a_writer || [RETIRED, DAMAGED, MANIFESTS].contains(&name)
    })
}

/// Returns the batch with the table's own schema, which includes units.
fn checked(table: &Table, batch: RecordBatch) -> Result<RecordBatch> {
    let wrong = |detail| DatasetError::WrongSchema {
        table: table.name.to_owned(),
        detail,
    };
    let expected = schema(table);
    let names = |s: &arrow::datatypes::Schema| -> Vec<String> {
        s.fields().iter().map(|f| f.name().clone()).collect()
    };
    let found = names(batch.schema_ref());
    if found != names(&expected) {
        return Err(wrong(format!(
            "its columns are {found:?}; schemas/SCHEMA.md lists the table's"
        )));
    }
    RecordBatch::try_new(Arc::new(expected), batch.columns().to_vec())
        .map_err(|e| wrong(e.to_string()))
}
