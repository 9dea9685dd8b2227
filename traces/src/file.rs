//! One file of an export.

use crate::{ExportError, Result};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{Field, FieldRef, Schema, TimestampMillisecondType};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Parquet,
    Csv,
}

impl Format {
    /// Ending of a file's name.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }
}

/// A file being written under a name that readers pass over, until it is whole.
pub(crate) struct OpenFile {
    path: PathBuf,
    unfinished: PathBuf,
    sink: Sink,
}

enum Sink {
    Parquet(ArrowWriter<File>),
    Csv(arrow_csv::Writer<BufWriter<File>>),
}

impl OpenFile {
    pub(crate) fn create(
        out_dir: &Path,
        table: &Table,
        date: &str,
        format: Format,
    ) -> Result<Self> {
        let folder = out_dir.join(table.name).join(format!("date={date}"));
        fs::create_dir_all(&folder).map_err(ExportError::io("create folder", &folder))?;
        let path = folder.join(format!("{}.{}", table.name, format.ending()));
        let unfinished = folder.join(format!(".{}.unfinished", table.name));
        let file = File::create(&unfinished).map_err(ExportError::io("create", &unfinished))?;
        let sink = match format {
            Format::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                let writer = ArrowWriter::try_new(file, Arc::new(schema(table)), Some(properties));
                Sink::Parquet(writer.map_err(ExportError::io("write", &path))?)
            }
            Format::Csv => Sink::Csv(arrow_csv::Writer::new(BufWriter::new(file))),
        };
        Ok(Self {
            path,
            unfinished,
            sink,
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.sink {
            Sink::Parquet(writer) => writer
                .write(batch)
                .map_err(ExportError::io("write", &self.path)),
            Sink::Csv(writer) => with_offset(batch)
                .and_then(|batch| writer.write(&batch))
                .map_err(ExportError::io("write", &self.path)),
        }
    }

    /// Gives the file its name; its length in bytes.
    pub(crate) fn finish(self) -> Result<u64> {
        let file = match self.sink {
            Sink::Parquet(writer) => writer
                .into_inner()
                .map_err(ExportError::io("write", &self.path))?,
            Sink::Csv(writer) => writer
                .into_inner()
                .into_inner()
                .map_err(|e| ExportError::io("write", &self.path)(e.into_error()))?,
        };
        let finish = || {
            file.sync_all()?;
            fs::rename(&self.unfinished, &self.path)?;
            Ok(file.metadata()?.len())
        };
        finish().map_err(ExportError::io::<std::io::Error>("finish", &self.path))
    }
}

/// The batch with its time zone as an offset: without a database of time zones, which is not worth its
/// size for "UTC" alone, Arrow's text formatter knows offsets only.
fn with_offset(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let mut columns = batch.columns().to_vec();
    let mut fields: Vec<FieldRef> = batch.schema_ref().fields().to_vec();
    for (column, field) in columns.iter_mut().zip(&mut fields) {
        if let Some(times) = column.as_primitive_opt::<TimestampMillisecondType>() {
            let times = times.clone().with_timezone("+00:00");
            let data_type = times.data_type().clone();
            *field = Arc::new(Field::clone(field).with_data_type(data_type));
            *column = Arc::new(times);
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
