//! Reads a dataset: one host at a time, or all hosts day by day.

use crate::file::open_files::OpenFiles;
use crate::manifest::Manifest;
use crate::rows::{order, projected};
use crate::{DatasetError, FileEntry, Result};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Indexes in the manifest of the files of each table and UTC date, since a dataset of a thousand hosts has
/// thousands of files.
type Days = BTreeMap<String, BTreeMap<String, Vec<usize>>>;

/// A dataset, with the manifest as it was when opened. Data that are sealed later are not visible.
///
/// Files that a writer replaces meanwhile stay readable for an hour (see `Writer::keep_retired_for`).
#[derive(Clone, Debug)]
pub struct Dataset {
    root: PathBuf,
    manifest: Arc<Manifest>,
    files: Arc<OpenFiles>,
    days: Arc<Days>,
    hosts: Arc<OnceLock<Vec<String>>>,
}

impl Dataset {
    /// Opens the dataset in the folder `root`.
    ///
    /// # Errors
    /// [`DatasetError::NotADataset`], [`DatasetError::Newer`], or an unreadable manifest.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref().to_owned();
        let manifest = Arc::new(Manifest::load_all(&root)?);
        let mut days = Days::new();
        for (at, file) in manifest.files.iter().enumerate() {
            let of_table = days.entry(file.table.clone()).or_default();
            of_table.entry(file.date.clone()).or_default().push(at);
        }
        Ok(Self {
            root,
            manifest,
            files: Arc::default(),
            days: Arc::new(days),
            hosts: Arc::default(),
        })
    }

    /// Folder of the dataset.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The manifest as it was when the dataset was opened.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Number of times that a file was opened. Each file is opened once, as long as all indexes fit in the
    /// cache.
    #[must_use]
    pub fn files_opened(&self) -> u64 {
        self.files.opened()
    }

    /// Ids of all hosts, sorted. Reads the index of every file.
    ///
    /// # Errors
    /// A file that is torn, altered or unreadable.
    pub fn hosts(&self) -> Result<Vec<String>> {
        if let Some(known) = self.hosts.get() {
            return Ok(known.clone());
        }
        let hosts = self.hosts_of(self.manifest.files.iter())?;
        let hosts = hosts.into_iter().collect();
        Ok(self.hosts.get_or_init(|| hosts).clone())
    }

    /// UTC days on which `table` has rows, as `2026-11-21`, in order.
    #[must_use]
    pub fn dates(&self, table: &Table) -> Vec<String> {
        let days = self.days.get(table.name).into_iter().flatten();
        days.map(|(date, _)| date.clone()).collect()
    }

    /// Number of rows of `table` according to the manifest, without reading a file.
    #[must_use]
    pub fn rows(&self, table: &Table) -> u64 {
        self.files(table).map(|f| f.rows).sum()
    }

    /// The rows of one host in `table`, ordered by time, sequence and key. The batch has `columns` in this
    /// order; they must include `host_id`, `database_id`, `sequence` and `time`. If there are no rows, the
    /// batch is empty.
    ///
    /// # Errors
    /// [`DatasetError::UnknownColumn`]; or an error that names a torn, altered or unreadable file.
    pub fn read_host(&self, table: &Table, host: &str, columns: &[&str]) -> Result<RecordBatch> {
        self.read_host_between(table, host, columns, None, None)
    }

    /// Every row of `table`, in batches of one day and host, ordered by day, host, time, sequence and key.
    pub fn scan(&self, table: &Table) -> impl Iterator<Item = Result<RecordBatch>> {
        let table = *table;
        self.dates(&table)
            .into_iter()
            .flat_map(move |date| self.scan_date(&table, &date))
    }

    /// Rows of [`Dataset::scan`] that belong to one UTC day.
    pub fn scan_date(
        &self,
        table: &Table,
        date: &str,
    ) -> impl Iterator<Item = Result<RecordBatch>> + use<'_> {
        let (table, date, wanted) = (*table, date.to_owned(), Arc::new(schema(table)));
        let files = self.files_of(&table, &date);
        let (hosts, error) = match self.hosts_of(files) {
            Ok(hosts) => (hosts, None),
            Err(error) => (BTreeSet::new(), Some(error)),
        };
        let rows = hosts
            .into_iter()
            .map(move |host| self.read_day(&table, &date, &host, &wanted));
        error.map(Err).into_iter().chain(rows)
    }

    /// Every row of one file of `table`, in batches of one host, ordered by host, time, sequence and key.
    ///
    /// # Errors
    /// [`DatasetError::Missing`] if the file was replaced more than an hour ago; otherwise an error that names a file
    /// that is torn, altered or unreadable.
    pub fn scan_file(
        &self,
        table: &Table,
        entry: &FileEntry,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let wanted = Arc::new(schema(table));
        let file = self.files.open(&self.root, entry)?;
        let hosts = file.hosts().collect::<Result<Vec<_>>>()?;
        Ok(hosts.into_iter().flat_map(move |host| {
            let batches = file.read(&host, &wanted);
            let (batches, error) = match batches {
                Ok(batches) => (batches, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            batches.into_iter().map(Ok).chain(error.map(Err))
        }))
    }

    fn files(&self, table: &Table) -> impl Iterator<Item = &FileEntry> + use<'_> {
        let name = table.name;
        self.manifest.files.iter().filter(move |f| f.table == name)
    }

    /// The files of `table`, grouped by UTC day, in the order of days.
    pub(crate) fn files_by_day<'a>(
        &'a self,
        table: &Table,
    ) -> impl Iterator<Item = impl Iterator<Item = &'a FileEntry>> {
        let days = self.days.get(table.name).into_iter().flatten();
        days.map(|(_, files)| files.iter().filter_map(|at| self.manifest.files.get(*at)))
    }

    /// The files of `table` for one day.
    fn files_of(&self, table: &Table, date: &str) -> impl Iterator<Item = &FileEntry> + use<'_> {
        let of_day = self.days.get(table.name).and_then(|days| days.get(date));
        let files = of_day.into_iter().flatten();
        files.filter_map(|at| self.manifest.files.get(*at))
    }

    /// Ids of the hosts that have rows in `files`.
    pub(crate) fn hosts_of<'a>(
        &self,
        files: impl Iterator<Item = &'a FileEntry>,
    ) -> Result<BTreeSet<String>> {
        let mut hosts = BTreeSet::new();
        for entry in files {
            for host in self.files.open(&self.root, entry)?.hosts() {
                hosts.insert(host?.host_id);
            }
        }
        Ok(hosts)
    }

    /// A host's rows of one day, from all files of that day.
    fn read_day(
        &self,
        table: &Table,
        date: &str,
        host: &str,
        wanted: &SchemaRef,
    ) -> Result<RecordBatch> {
        let files = self.files_of(table, date);
        self.read_files(table, files, host, wanted)
    }

    /// A host's rows in `files`, which must all be of one day.
    pub(crate) fn read_files<'a>(
        &self,
        table: &Table,
        files: impl Iterator<Item = &'a FileEntry>,
        host: &str,
        wanted: &SchemaRef,
    ) -> Result<RecordBatch> {
        let mut parts = Vec::new();
        for entry in files {
            if entry.may_hold(host) {
                let file = self.files.open(&self.root, entry)?;
                parts.extend(file.host(host)?.map(|rows| (file, rows)));
            }
        }
        let read = |columns: &SchemaRef| -> Result<RecordBatch> {
            let mut batches = Vec::new();
            for (file, rows) in &parts {
                batches.extend(file.read(rows, columns)?);
            }
            concat_batches(columns, &batches).map_err(DatasetError::rows(table.name))
        };
        if parts.len() < 2 {
            return read(wanted); // a single file is sorted and holds each row once
        }
        let mut names: Vec<&str> = wanted.fields().iter().map(|f| f.name().as_str()).collect();
        let asked = names.len();
        names.extend(order::columns(table));
        let rows = read(&projected(table, &names)?)?;
        order::sorted_once(table, &rows, &[])
            .and_then(|sorted| sorted.project(&(0..asked).collect::<Vec<_>>()))
            .and_then(|sorted| sorted.with_schema(Arc::clone(wanted)))
            .map_err(DatasetError::rows(table.name))
    }
}
