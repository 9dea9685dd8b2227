//! Reads a dataset: one host at a time, or all hosts day by day.

use crate::file::arrow_file::ArrowFile;
use crate::file::host_order::HostOrder;
use crate::file::index::HostRows;
use crate::file::open_files::OpenFiles;
use crate::layout;
use crate::manifest::Manifest;
use crate::rows::{order, projected};
use crate::store::{Fetcher, Limits, Store};
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

/// A file with rows of a host, and the place of these rows in it.
pub(crate) type HostPart = (Arc<ArrowFile>, HostRows);

/// A dataset, with the manifest as it was when opened. Data that are sealed later are not visible.
///
/// Files that a writer replaces meanwhile stay readable for an hour (see `Writer::keep_retired_for`).
///
/// Files of a folder are mapped. Of a store, only the ends of the files are fetched and kept, which contain the
/// indexes, and then the bytes of the requested hosts.
#[derive(Clone, Debug)]
pub struct Dataset {
    root: PathBuf,
    manifest: Arc<Manifest>,
    files: Arc<OpenFiles>,
    days: Arc<Days>,
    hosts: Arc<OnceLock<Vec<String>>>,
    order: Option<Arc<HostOrder>>,
}

impl Dataset {
    /// Opens the dataset in the folder `root`.
    ///
    /// # Errors
    /// [`DatasetError::NotADataset`], [`DatasetError::NotAFolder`] for a URL, [`DatasetError::Newer`], or an
    /// unreadable manifest.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        layout::check_folder(root)?;
        let manifest = Manifest::load_all(root)?;
        Ok(Self::new(root.to_owned(), manifest, OpenFiles::default()))
    }

    /// Opens the dataset in a store.
    ///
    /// # Errors
    /// [`DatasetError::NotADataset`], [`DatasetError::Newer`], or an unreadable manifest.
    pub fn open_in(store: Arc<dyn Store>) -> Result<Self> {
        Self::open_within(store, Limits::default())
    }

    /// Opens the dataset in a store, with other limits of fetching.
    pub(crate) fn open_within(store: Arc<dyn Store>, limits: Limits) -> Result<Self> {
        let root = PathBuf::from(store.url());
        let manifest = Manifest::fetch_all(&*store, &root)?;
        let fetcher = Fetcher::start(&store, limits);
        let fetcher = fetcher.map_err(DatasetError::io("start threads to read", &root))?;
        Ok(Self::new(root, manifest, OpenFiles::of_store(fetcher)))
    }

    fn new(root: PathBuf, manifest: Manifest, files: OpenFiles) -> Self {
        let mut days = Days::new();
        for (at, file) in manifest.files.iter().enumerate() {
            let of_table = days.entry(file.table.clone()).or_default();
            of_table.entry(file.date.clone()).or_default().push(at);
        }
        Self {
            root,
            manifest: Arc::new(manifest),
            files: Arc::new(files),
            days: Arc::new(days),
            hosts: Arc::default(),
            order: None,
        }
    }

    /// This dataset, for a program that reads `hosts` one after the other, in the order of their ids, on any number
    /// of threads. From a store, the bytes of several hosts are then fetched together, and ahead of the reads.
    /// Other hosts can be read, too. No effect on a dataset in a folder.
    #[must_use]
    pub fn read_ahead(&self, hosts: &[String]) -> Self {
        self.ordered(hosts.to_vec(), self.manifest.files.iter())
    }

    /// This dataset, for a reader of `hosts`, in the order of their ids, in `files`.
    pub(crate) fn ordered<'a>(
        &self,
        hosts: Vec<String>,
        files: impl Iterator<Item = &'a FileEntry>,
    ) -> Self {
        let limits = self.files.limits();
        let order = limits.map(|limits| Arc::new(HostOrder::new(hosts, files, limits)));
        Self {
            order,
            ..self.clone()
        }
    }

    /// Folder of the dataset; for a dataset in a store, the URL.
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

    /// Ids of all hosts, sorted. Reads the index of every file; from a store, several at a time.
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
        let ids = hosts.iter().cloned().collect();
        let ordered = self.ordered(ids, self.files_of(&table, &date));
        let rows = hosts
            .into_iter()
            .map(move |host| ordered.read_day(&table, &date, &host, &wanted));
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
        let ids = hosts.iter().map(|host| host.host_id.clone()).collect();
        let order = self.ordered(ids, std::iter::once(entry)).order;
        Ok(hosts.into_iter().flat_map(move |host| {
            let batches = file.read_in_order(&host, &wanted, order.as_deref());
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
        let files: Vec<&FileEntry> = files.collect();
        for file in self.files.open_all(&self.root, &files) {
            for host in file?.hosts() {
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
    fn read_files<'a>(
        &self,
        table: &Table,
        files: impl Iterator<Item = &'a FileEntry>,
        host: &str,
        wanted: &SchemaRef,
    ) -> Result<RecordBatch> {
        let files: Vec<&FileEntry> = files.filter(|file| file.may_hold(host)).collect();
        let parts: Vec<HostPart> = self.parts(&files, host)?.into_iter().flatten().collect();
        self.read_parts(table, &parts, wanted)
    }

    /// Finds the rows of a host in each of `files`. From a store, all the files are then fetched at the same time.
    pub(crate) fn parts(&self, files: &[&FileEntry], host: &str) -> Result<Vec<Option<HostPart>>> {
        let files = self.files.open_all(&self.root, files);
        let parts = files.map(|file| -> Result<Option<HostPart>> {
            let file = file?;
            let rows = file.host(host)?;
            Ok(rows.map(|rows| {
                file.request(&rows, self.order.as_deref());
                (file, rows)
            }))
        });
        parts.collect()
    }

    /// Rows of one host and day, from all their parts.
    pub(crate) fn read_parts(
        &self,
        table: &Table,
        parts: &[HostPart],
        wanted: &SchemaRef,
    ) -> Result<RecordBatch> {
        let read = |columns: &SchemaRef| -> Result<RecordBatch> {
            let mut batches = Vec::new();
            for (file, rows) in parts {
                batches.extend(file.read_in_order(rows, columns, self.order.as_deref())?);
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
