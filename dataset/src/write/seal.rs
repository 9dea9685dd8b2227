//! Sealing: rows are sorted and written to the staging folder. Their files are moved to their places, and
//! only then named in the manifest. If the writer is killed at any point, the dataset is either unchanged or
//! fully sealed.

use crate::file::index::HostRows;
use crate::layout;
use crate::layout::retired;
use crate::manifest::{FileEntry, Manifest};
use crate::rows::identity::Identities;
use crate::rows::order;
use crate::rows::projected;
use crate::write::pending::PendingRows;
use crate::{DatasetError, FORMAT_VERSION, Result, Writer};
use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use gleaner_schemas::SCHEMA_VERSION;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

/// If fewer than one in this many of a file's hosts are needed, each of them is looked up; otherwise all are read.
const FEW_SHARE: u64 = 16;

/// Counts of the files and rows that a seal has added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of files written.
    pub files: usize,
    /// Number of rows in these files.
    pub rows: u64,
    /// Total length of the files, in bytes.
    pub bytes: u64,
    /// Number of rows left out, because the dataset already had them or they were appended twice.
    pub repeated_rows: u64,
    /// Number of repeated rows whose values contradict those of the dataset's row, which stays. They are
    /// counted only after [`Writer::compare_repeats`].
    pub contradicted_rows: u64,
}

/// Result of staging the rows of one table and day.
struct StagedDay {
    repeated_rows: u64,
    contradicted_rows: u64,
    /// Path and entry of the file; `None` if the dataset already held all rows.
    file: Option<(PathBuf, FileEntry)>,
}

impl Writer {
    /// Makes all appended rows part of the dataset, durably and atomically.
    ///
    /// # Errors
    /// The system's error, or a damaged file of the same day. The dataset is then unchanged, and the appended
    /// rows are kept: once there is enough disk space, the seal can be repeated.
    pub fn seal(&mut self) -> Result<Summary> {
        let sealed = self.seal_pending();
        match sealed {
            Ok(_) => self.pending.clear(),
            // This frees disk space. Files that cannot be removed now are removed when the dataset is next
            // opened.
            Err(_) => self.clear_staging(),
        }
        sealed
    }

    fn seal_pending(&mut self) -> Result<Summary> {
        let mut summary = Summary::default();
        let mut staged: Vec<(PathBuf, FileEntry)> = Vec::new();
        for made in self.staged_pending() {
            let made = made?;
            summary.repeated_rows += made.repeated_rows;
            summary.contradicted_rows += made.contradicted_rows;
            staged.extend(made.file);
        }
        for (_, entry) in &staged {
            summary.files += 1;
            summary.rows += entry.rows;
            summary.bytes += entry.bytes;
        }
        if !staged.is_empty() {
            self.publish(staged, &[])?;
        }
        for ((name, _), pending) in &self.pending {
            for rows in &pending.pieces {
                if let Some(marks) = &mut self.marks {
                    let identities = Identities::of(rows).map_err(DatasetError::rows(name))?;
                    marks.add(&identities);
                }
            }
        }
        Ok(summary)
    }

    /// Writes the appended rows to the staging folder, one file per table and day. Sorting and compressing
    /// are most of the work of a seal, and are therefore shared among the CPUs. The result is still in the
    /// order of tables and days.
    fn staged_pending(&self) -> Vec<Result<StagedDay>> {
        let next = AtomicUsize::new(0);
        let pending: Vec<_> = self.pending.iter().collect();
        let stage_some = || {
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(((name, day), rows)) = pending.get(number) else {
                    return made;
                };
                made.push((number, self.stage(number, name, *day, rows)));
            }
        };
        let threads = available_parallelism()
            .map_or(1, usize::from)
            .min(pending.len());
        let mut made = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(stage_some)).collect();
            let mut made = stage_some();
            for other in others {
                match other.join() {
                    Ok(more) => made.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            made
        });
        made.sort_unstable_by_key(|(number, _)| *number);
        made.into_iter().map(|(_, file)| file).collect()
    }

    fn stage(
        &self,
        number: usize,
        name: &str,
        day: i64,
        pending: &PendingRows,
    ) -> Result<StagedDay> {
        let table = gleaner_schemas::rows::table(name).ok_or_else(|| wrong(name, "no table"))?;
        let date = layout::date(day).ok_or_else(|| wrong(name, "its time has no date"))?;
        let appended = concat_batches(&Arc::new(schema(&table)), &pending.pieces)
            .map_err(DatasetError::rows(name))?;
        let held = self.overlapping_rows(&table, &date, &appended)?;
        let rows =
            order::sorted_once(&table, &appended, &held).map_err(DatasetError::rows(name))?;
        let repeated_rows = (appended.num_rows() - rows.num_rows()) as u64;
        let mut contradicted_rows = 0;
        if let Some(except) = self.compared_except
            && repeated_rows > 0
        {
            let contradicted = order::count_contradictions(&table, &appended, &held, except);
            contradicted_rows = contradicted.map_err(DatasetError::rows(name))?;
        }
        let mut file = self.staged_file(number, &table, &date)?;
        file.add(&rows)?;
        Ok(StagedDay {
            repeated_rows,
            contradicted_rows,
            file: file.finish()?,
        })
    }

    /// Adds the files `staged` to the dataset and removes those at the paths `replaced`, in one atomic step.
    pub(crate) fn publish(
        &mut self,
        staged: Vec<(PathBuf, FileEntry)>,
        replaced: &[String],
    ) -> Result<()> {
        let mut manifest = self.manifest.clone();
        manifest.format_version = FORMAT_VERSION;
        manifest.schema_version = SCHEMA_VERSION;
        let files = &mut manifest.files;
        files.retain(|f| !replaced.contains(&f.path));
        files.extend(staged.iter().map(|(_, entry)| entry.clone()));
        manifest.sort();
        // The steps that need disk space come first: later steps then hardly ever fail.
        manifest.stage(&self.root, &self.name)?;
        for (_, entry) in &staged {
            layout::create_folders(&self.root, &layout::folder(&entry.table, &entry.date))?;
        }
        for (path, entry) in &staged {
            if let Err(error) = layout::put(path, &self.root.join(&entry.path)) {
                self.delete_placed(&staged);
                return Err(error);
            }
        }
        Manifest::put(&self.root, &self.name)?;
        self.manifest = manifest;
        self.files.forget(replaced);
        // The dataset is complete now. Files that cannot be retired at this point are retired when it is next opened.
        for path in replaced {
            // A repair may have written a file of the same content as the replaced one, which then has the same path.
            if staged.iter().all(|(_, entry)| entry.path != *path) {
                let _ = retired::retire(&self.root, path);
            }
        }
        let _ = retired::purge(&self.root, self.grace);
        Ok(())
    }

    /// Deletes files that are already in their places but will not be in the manifest. Files that cannot be
    /// deleted now are removed when the dataset is next opened.
    fn delete_placed(&self, staged: &[(PathBuf, FileEntry)]) {
        for (_, entry) in staged {
            if self.manifest.files.iter().all(|f| f.path != entry.path) {
                let _ = layout::remove(&self.root.join(&entry.path));
            }
        }
    }

    /// Rows of `date` in the dataset that `appended` might repeat. Only rows of databases whose record
    /// sequences overlap are read.
    fn overlapping_rows(
        &self,
        table: &Table,
        date: &str,
        appended: &RecordBatch,
    ) -> Result<Vec<RecordBatch>> {
        let names = if self.compared_except.is_some() {
            Arc::new(schema(table))
        } else {
            projected(table, &order::columns(table))?
        };
        let identities = Identities::of(appended).map_err(DatasetError::rows(table.name))?;
        let ranges = identities.sequence_ranges();
        let mut held = Vec::new();
        for entry in &self.manifest.files {
            if entry.table != table.name || entry.date != date {
                continue;
            }
            let file = self.files.open(&self.root, entry)?;
            let mut hosts: Vec<HostRows> = Vec::new();
            if ranges.len() as u64 > entry.hosts_count / FEW_SHARE {
                hosts = file.hosts().collect::<Result<_>>()?;
            } else {
                let mut ids: Vec<&str> = ranges.keys().map(|(host, _)| *host).collect();
                ids.dedup();
                for id in ids.into_iter().filter(|id| entry.may_hold(id)) {
                    hosts.extend(file.host(id)?);
                }
            }
            for host in hosts {
                let overlaps = host.databases.iter().any(|d| {
                    let database = (host.host_id.as_str(), d.database_id.as_str());
                    ranges.get(&database).is_some_and(|&(first, last)| {
                        d.first_sequence <= last && first <= d.last_sequence
                    })
                });
                if overlaps {
                    held.extend(file.read(&host, &names)?);
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
