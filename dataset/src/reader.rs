//! Reading: one host without the rest, or everything day by day.

use crate::manifest::Manifest;
use crate::mapped::Mapped;
use crate::{DatasetError, FileEntry, Result, order};
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A dataset as its manifest stood when it was opened; what is sealed later is not seen.
#[derive(Clone, Debug)]
pub struct Dataset {
    root: PathBuf,
    manifest: Manifest,
}

impl Dataset {
    /// Opens the dataset in the folder `root`.
    ///
    /// # Errors
    /// [`DatasetError::NotADataset`], [`DatasetError::Newer`], or a manifest that cannot be read.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref().to_owned();
        let manifest = Manifest::load(&root)?;
        Ok(Self { root, manifest })
    }

    /// Its folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What it holds.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Ids of all hosts, sorted.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        let hosts: BTreeSet<&String> = self
            .manifest
            .files
            .iter()
            .flat_map(|f| f.hosts.iter().map(|h| &h.host_id))
            .collect();
        hosts.into_iter().cloned().collect()
    }

    /// UTC days on which `table` has rows, as `2026-11-21`, in order.
    #[must_use]
    pub fn dates(&self, table: &Table) -> Vec<String> {
        let dates: BTreeSet<&String> = self.files(table).map(|f| &f.date).collect();
        dates.into_iter().cloned().collect()
    }

    /// Rows of `table` by the manifest, without reading a file.
    #[must_use]
    pub fn rows(&self, table: &Table) -> u64 {
        self.files(table).map(|f| f.rows).sum()
    }

    /// The rows of one host in `table`, ordered by time, sequence and key, with `columns` in this order
    /// (`host_id`, `database_id`, `sequence` and `time` among them). No rows is an empty batch.
    ///
    /// # Errors
    /// [`DatasetError::UnknownColumn`]; or, naming the file, that it is torn, altered or unreadable.
    pub fn read_host(&self, table: &Table, host: &str, columns: &[&str]) -> Result<RecordBatch> {
        let wanted = projected(table, columns)?;
        let days = self
            .dates(table)
            .iter()
            .map(|date| self.read_day(table, date, host, &wanted))
            .collect::<Result<Vec<_>>>()?;
        concat_batches(&wanted, &days).map_err(DatasetError::rows(table.name))
    }

    /// Every row of `table`, in batches of one day and host, ordered by day, host, time, sequence, key.
    pub fn scan(&self, table: &Table) -> impl Iterator<Item = Result<RecordBatch>> {
        let table = *table;
        self.dates(&table)
            .into_iter()
            .flat_map(move |date| self.scan_date(&table, &date))
    }

    /// The part of [`Dataset::scan`] that lies on one UTC day.
    pub fn scan_date(
        &self,
        table: &Table,
        date: &str,
    ) -> impl Iterator<Item = Result<RecordBatch>> + use<'_> {
        let (table, date, wanted) = (*table, date.to_owned(), Arc::new(schema(table)));
        let hosts: BTreeSet<&str> = self
            .files(&table)
            .filter(|f| f.date == date)
            .flat_map(|f| f.hosts.iter().map(|h| h.host_id.as_str()))
            .collect();
        hosts
            .into_iter()
            .map(move |host| self.read_day(&table, &date, host, &wanted))
    }

    /// Reads every file whole and compares it with the hash that it was sealed with.
    ///
    /// # Errors
    /// The first file, in the manifest's order, that is missing, torn or altered.
    pub fn verify(&self) -> Result<()> {
        self.manifest.files.iter().try_for_each(|entry| {
            let found = Mapped::open(&self.root, entry)?.file_hash();
            if found == entry.blake3 {
                return Ok(());
            }
            Err(DatasetError::Altered {
                path: self.root.join(&entry.path),
                detail: format!("its BLAKE3 hash is {found} instead of {}", entry.blake3),
            })
        })
    }

    fn files(&self, table: &Table) -> impl Iterator<Item = &FileEntry> + use<'_> {
        let name = table.name;
        self.manifest.files.iter().filter(move |f| f.table == name)
    }

    /// A host's rows of one day, from all files that have some.
    fn read_day(
        &self,
        table: &Table,
        date: &str,
        host: &str,
        wanted: &SchemaRef,
    ) -> Result<RecordBatch> {
        let parts: Vec<_> = self
            .files(table)
            .filter(|f| f.date == date)
            .filter_map(|f| Some((f, f.host(host)?)))
            .collect();
        let read = |columns: &SchemaRef| -> Result<RecordBatch> {
            let mut batches = Vec::new();
            for (file, part) in &parts {
                batches.extend(Mapped::open(&self.root, file)?.read(part, columns)?);
            }
            concat_batches(columns, &batches).map_err(DatasetError::rows(table.name))
        };
        if parts.len() < 2 {
            return read(wanted); // one file is sorted, and holds each row once
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

/// The table's schema cut down to `columns`.
pub(crate) fn projected(table: &Table, columns: &[&str]) -> Result<SchemaRef> {
    let whole = schema(table);
    let fields = columns
        .iter()
        .map(|name| match whole.field_with_name(name) {
            Ok(field) => Ok(field.clone()),
            Err(_) => Err(DatasetError::UnknownColumn {
                table: table.name.to_owned(),
                column: (*name).to_owned(),
            }),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Schema::new_with_metadata(fields, whole.metadata)))
}
