//! A dataset as one file per table and date, written batch by batch.

use crate::file::{Format, OpenFile};
use crate::{Result, folder};
use gleaner_dataset::Dataset;
use gleaner_schemas::rows::DATASET_TABLES;
use std::path::Path;

/// How far an export is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Table being written.
    pub table: &'static str,
    /// UTC date being written.
    pub date: &'a str,
    /// Rows written so far, over all tables.
    pub rows: u64,
    /// Rows to write in all.
    pub rows_in_all: u64,
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Files.
    pub files: usize,
    /// Rows in them.
    pub rows: u64,
    /// Their length together.
    pub bytes: u64,
}

/// Writes `dataset` to `out_dir` as Parquet (zstd), with types and units of the columns.
/// `progress` is called after each batch.
///
/// An export that lies there already is replaced.
///
/// # Errors
/// [`crate::ExportError::NotEmpty`] for a folder that holds anything else; or what could not be read or
/// written: what was exported until then is left, and marked as not whole.
pub fn export_parquet(
    dataset: &Dataset,
    out_dir: &Path,
    progress: impl FnMut(&Progress<'_>),
) -> Result<Exported> {
    export(dataset, out_dir, Format::Parquet, progress)
}

/// Writes `dataset` to `out_dir` as CSV with a line of column names; times as RFC 3339 in UTC. An absent
/// value is an empty field, as is an empty text: Parquet tells them apart.
///
/// # Errors
/// As [`export_parquet`].
pub fn export_csv(
    dataset: &Dataset,
    out_dir: &Path,
    progress: impl FnMut(&Progress<'_>),
) -> Result<Exported> {
    export(dataset, out_dir, Format::Csv, progress)
}

fn export(
    dataset: &Dataset,
    out_dir: &Path,
    format: Format,
    mut progress: impl FnMut(&Progress<'_>),
) -> Result<Exported> {
    folder::begin(out_dir, format)?;
    let rows_in_all = DATASET_TABLES.iter().map(|table| dataset.rows(table)).sum();
    let mut exported = Exported::default();
    for table in &DATASET_TABLES {
        for date in dataset.dates(table) {
            let mut file = OpenFile::create(out_dir, table, &date, format)?;
            for batch in dataset.scan_date(table, &date) {
                let batch = batch?;
                file.write(&batch)?;
                exported.rows += batch.num_rows() as u64;
                progress(&Progress {
                    table: table.name,
                    date: &date,
                    rows: exported.rows,
                    rows_in_all,
                });
            }
            exported.bytes += file.finish()?;
            exported.files += 1;
        }
    }
    folder::mark(out_dir, format, true)?;
    Ok(exported)
}
