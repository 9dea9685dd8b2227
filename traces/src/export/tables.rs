//! Exports a dataset's tables as one file per table and date, written batch by batch.

use super::file::OpenFile;
use super::{ExportSummary, Format, folder};
use crate::{ExportError, Result};
use arrow::datatypes::{Schema, SchemaRef};
use gleaner_dataset::{Dataset, Selection, SourceEntry};
use gleaner_schemas::column::Table;
use gleaner_schemas::rows::DATASET_TABLES;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Progress of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Table being written.
    pub table: &'static str,
    /// UTC date being written.
    pub date: &'a str,
    /// Rows written so far, over all tables.
    pub rows: u64,
    /// Total number of rows to write; an upper bound if hosts or times are selected.
    pub rows_in_all: u64,
}

/// Options of an export.
#[derive(Clone, Debug)]
pub struct Export {
    /// Format of the files.
    pub format: Format,
    /// True to compress columns (zstd); CSV never is.
    pub is_compressed: bool,
    /// Tables, in this order.
    pub tables: Vec<Table>,
    /// Rows and columns to export.
    pub selection: Selection,
}

impl Export {
    /// Exports everything, compressed.
    #[must_use]
    pub fn all(format: Format) -> Self {
        Self {
            format,
            is_compressed: true,
            tables: DATASET_TABLES.to_vec(),
            selection: Selection::default(),
        }
    }
}

/// Writes `dataset` to `out_dir` with the options of `export`; `progress` is called after each batch.
///
/// Replaces an export that is in the folder. Days without selected rows get no file.
///
/// # Errors
/// Before anything is written: [`crate::ExportError::NotEmpty`] for a folder that holds anything else, or
/// an error for a column that one of the tables lacks. Errors of reading or writing: the incomplete
/// export stays, marked as incomplete.
pub fn export(
    dataset: &Dataset,
    out_dir: &Path,
    export: &Export,
    mut progress: impl FnMut(&Progress<'_>),
) -> Result<ExportSummary> {
    let (tables, selection) = (&export.tables, &export.selection);
    let schemas = tables.iter().map(|table| selection.schema(table));
    let schemas = schemas.collect::<gleaner_dataset::Result<Vec<_>>>()?;
    let sources = &dataset.manifest().sources;
    let schemas: Vec<SchemaRef> = schemas.iter().map(|s| with_sources(s, sources)).collect();
    folder::begin(out_dir, export.format.ending())?;
    let rows_of = |table| dataset.rows_selected_at_most(table, selection);
    let rows_in_all = tables.iter().map(rows_of).sum();
    let mut exported = ExportSummary::default();
    for (table, schema) in tables.iter().zip(&schemas) {
        for date in dataset.dates_selected(table, selection) {
            let mut open = None;
            for batch in dataset.select_date(table, date, selection)? {
                let batch = batch?;
                let file = match &mut open {
                    Some(file) => file,
                    none => none.insert(create(out_dir, table, date, schema, export)?),
                };
                file.write(&batch)?;
                exported.rows += batch.num_rows() as u64;
                progress(&Progress {
                    table: table.name,
                    date,
                    rows: exported.rows,
                    rows_in_all,
                });
            }
            if let Some(file) = open {
                exported.add(0, file.finish()?); // its rows are already counted
            }
        }
    }
    folder::mark(out_dir, export.format.ending(), true)?;
    Ok(exported)
}

/// Schema whose metadata says what imported hosts' figures mean, if the dataset has imported hosts.
fn with_sources(schema: &SchemaRef, sources: &[SourceEntry]) -> SchemaRef {
    if sources.is_empty() {
        return Arc::clone(schema);
    }
    let mut metadata = schema.metadata().clone();
    let described = serde_json::json!(sources).to_string();
    metadata.insert("gleaner.sources".to_owned(), described);
    Arc::new(Schema::clone(schema).with_metadata(metadata))
}

fn create(
    out_dir: &Path,
    table: &Table,
    date: &str,
    schema: &SchemaRef,
    export: &Export,
) -> Result<OpenFile> {
    let folder = out_dir.join(table.name).join(format!("date={date}"));
    fs::create_dir_all(&folder).map_err(ExportError::io("create folder", &folder))?;
    let path = folder.join(format!("{}.{}", table.name, export.format.ending()));
    OpenFile::create(path, schema, export.format, export.is_compressed)
}
