//! Sealing: rows are sorted and written aside, moved to their place, and only then named in the manifest.
//! A writer killed at any point leaves the dataset as it was, or as it was to be.

use crate::identity::Identities;
use crate::layout::{self, STAGING};
use crate::manifest::FileEntry;
use crate::mapped::Mapped;
use crate::reader::projected;
use crate::{DatasetError, Result, Writer, order, staged};
use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use gleaner_schemas::SCHEMA_VERSION;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use std::path::PathBuf;
use std::sync::Arc;

/// What a seal added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files written.
    pub files: usize,
    /// Rows in them.
    pub rows: u64,
    /// Their length together.
    pub bytes: u64,
    /// Rows left out because the dataset held them already, or because they were appended twice.
    pub repeated_rows: u64,
}

impl Writer {
    /// Makes everything appended part of the dataset, durably and at once.
    ///
    /// # Errors
    /// What the system refused, or a file of the same day that is damaged; the dataset is then as it was.
    pub fn seal(mut self) -> Result<Summary> {
        let mut summary = Summary::default();
        let mut staged: Vec<(PathBuf, FileEntry)> = Vec::new();
        for ((name, day), batches) in std::mem::take(&mut self.pending) {
            let table =
                gleaner_schemas::rows::table(name).ok_or_else(|| wrong(name, "no table"))?;
            let date = layout::date(day).ok_or_else(|| wrong(name, "its time has no date"))?;
            let appended = concat_batches(&Arc::new(schema(&table)), &batches)
                .map_err(DatasetError::rows(name))?;
            let held = self.held(&table, &date, &appended)?;
            let rows =
                order::sorted_once(&table, &appended, &held).map_err(DatasetError::rows(name))?;
            summary.repeated_rows += (appended.num_rows() - rows.num_rows()) as u64;
            if rows.num_rows() > 0 {
                let path = self.root.join(STAGING).join(staged.len().to_string());
                let entry = staged::write(&path, &table, date, &rows)?;
                staged.push((path, entry));
            }
        }
        for (path, entry) in &staged {
            summary.files += 1;
            summary.rows += entry.rows;
            summary.bytes += entry.bytes;
            layout::create_folders(&self.root, &layout::folder(&entry.table, &entry.date))?;
            layout::put(path, &self.root.join(&entry.path))?;
        }
        if !staged.is_empty() {
            let files = &mut self.manifest.files;
            files.extend(staged.into_iter().map(|(_, entry)| entry));
            files.sort_by(|a, b| (&a.table, &a.date, &a.path).cmp(&(&b.table, &b.date, &b.path)));
            self.manifest.schema_version = SCHEMA_VERSION;
            self.manifest.replace(&self.root)?;
        }
        Ok(summary)
    }

    /// What the dataset holds already on `date` that `appended` might repeat: only where the record
    /// sequences overlap is anything read.
    fn held(&self, table: &Table, date: &str, appended: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let names = projected(table, &order::columns(table))?;
        let identities = Identities::of(appended).map_err(DatasetError::rows(table.name))?;
        let ranges = identities.sequence_ranges();
        let mut held = Vec::new();
        for file in &self.manifest.files {
            if file.table != table.name || file.date != date {
                continue;
            }
            for host in &file.hosts {
                let overlaps = host.databases.iter().any(|d| {
                    let database = (host.host_id.as_str(), d.database_id.as_str());
                    ranges.get(&database).is_some_and(|&(first, last)| {
                        d.first_sequence <= last && first <= d.last_sequence
                    })
                });
                if overlaps {
                    held.extend(Mapped::open(&self.root, file)?.read(host, &names)?);
                }
            }
        }
        Ok(held)
    }
}

fn wrong(table: &str, detail: &str) -> DatasetError {
    DatasetError::WrongSchema {
        table: table.to_owned(),
        detail: detail.to_owned(),
    }
}
