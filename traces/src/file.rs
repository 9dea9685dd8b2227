//! One file of an export.

use crate::export::{Export, Format};
use crate::{ExportError, Result};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef, TimestampMillisecondType};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::record_batch::RecordBatch;
use gleaner_schemas::column::Table;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Format {
    pub(crate) const ALL: [Self; 3] = [Self::Parquet, Self::Csv, Self::Arrow];

    /// Ending of a file's name.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
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
    Arrow(FileWriter<BufWriter<File>>),
}

impl OpenFile {
    pub(crate) fn create(
        out_dir: &Path,
        table: &Table,
        date: &str,
        schema: &SchemaRef,
        export: &Export,
    ) -> Result<Self> {
        let folder = out_dir.join(table.name).join(format!("date={date}"));
        fs::create_dir_all(&folder).map_err(ExportError::io("create folder", &folder))?;
        let path = folder.join(format!("{}.{}", table.name, export.format.ending()));
        let unfinished = folder.join(format!(".{}.unfinished", table.name));
        let file = File::create(&unfinished).map_err(ExportError::io("create", &unfinished))?;
        let sink = match export.format {
            Format::Parquet => parquet(file, schema, export.is_compressed)
                .map(Sink::Parquet)
                .map_err(ExportError::io("write", &path))?,
            Format::Csv => Sink::Csv(arrow_csv::Writer::new(BufWriter::new(file))),
            Format::Arrow => arrow(file, schema, export.is_compressed)
                .map(Sink::Arrow)
                .map_err(ExportError::io("write", &path))?,
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
            Sink::Arrow(writer) => writer
                .write(batch)
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
            Sink::Arrow(writer) => writer
                .into_inner()
                .map_err(ExportError::io("write", &self.path))?
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

fn parquet(
    file: File,
    schema: &SchemaRef,
    is_compressed: bool,
) -> Result<ArrowWriter<File>, ParquetError> {
    let compression = if is_compressed {
        Compression::ZSTD(ZstdLevel::default())
    } else {
        Compression::UNCOMPRESSED
    };
    let properties = WriterProperties::builder().set_compression(compression);
    ArrowWriter::try_new(file, Arc::clone(schema), Some(properties.build()))
}

fn arrow(
    file: File,
    schema: &SchemaRef,
    is_compressed: bool,
) -> Result<FileWriter<BufWriter<File>>, ArrowError> {
    let codec = is_compressed.then_some(CompressionType::ZSTD);
    let options = IpcWriteOptions::default().try_with_compression(codec)?;
    FileWriter::try_new_with_options(BufWriter::new(file), schema, options)
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
