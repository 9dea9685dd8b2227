//! A columnar file of an export.

use super::Format;
use super::unfinished::UnfinishedFile;
use crate::{ExportError, Result};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef, TimestampMillisecondType};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Format {
    pub(super) const ALL: [Self; 3] = [Self::Parquet, Self::Csv, Self::Arrow];

    /// Suffix of file names in this format.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
        }
    }
}

/// A file being written.
pub(super) struct OpenFile {
    unfinished: UnfinishedFile,
    schema: SchemaRef,
    sink: Sink,
}

enum Sink {
    Parquet(ArrowWriter<File>),
    Csv(arrow_csv::Writer<BufWriter<File>>),
    Arrow(FileWriter<BufWriter<File>>),
}

impl OpenFile {
    pub(super) fn create(
        path: PathBuf,
        schema: &SchemaRef,
        format: Format,
        is_compressed: bool,
    ) -> Result<Self> {
        let (unfinished, file) = UnfinishedFile::create(path)?;
        let path = &unfinished.path;
        let sink = match format {
            Format::Parquet => parquet(file, schema, is_compressed)
                .map(Sink::Parquet)
                .map_err(ExportError::io("write", path))?,
            Format::Csv => Sink::Csv(csv(file, schema).map_err(ExportError::io("write", path))?),
            Format::Arrow => arrow(file, schema, is_compressed)
                .map(Sink::Arrow)
                .map_err(ExportError::io("write", path))?,
        };
        Ok(Self {
            schema: Arc::clone(schema),
            unfinished,
            sink,
        })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn path(&self) -> &Path {
        &self.unfinished.path
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let path = &self.unfinished.path;
        match &mut self.sink {
            Sink::Parquet(writer) => writer.write(batch).map_err(ExportError::io("write", path)),
            Sink::Csv(writer) => with_offset(batch)
                .and_then(|batch| writer.write(&batch))
                .map_err(ExportError::io("write", path)),
            Sink::Arrow(writer) => writer.write(batch).map_err(ExportError::io("write", path)),
        }
    }

    /// Renames the file to its final name; returns its length in bytes.
    pub(super) fn finish(self) -> Result<u64> {
        let path = &self.unfinished.path;
        let file = match self.sink {
            Sink::Parquet(writer) => writer
                .into_inner()
                .map_err(ExportError::io("write", path))?,
            Sink::Csv(writer) => writer
                .into_inner()
                .into_inner()
                .map_err(|e| ExportError::io("write", path)(e.into_error()))?,
            Sink::Arrow(writer) => writer
                .into_inner()
                .map_err(ExportError::io("write", path))?
                .into_inner()
                .map_err(|e| ExportError::io("write", path)(e.into_error()))?,
        };
        self.unfinished.finish(&file)
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

/// CSV writer; the header line is written even without rows.
fn csv(file: File, schema: &SchemaRef) -> Result<arrow_csv::Writer<BufWriter<File>>, ArrowError> {
    let mut writer = arrow_csv::Writer::new(BufWriter::new(file));
    writer.write(&with_offset(&RecordBatch::new_empty(Arc::clone(schema)))?)?;
    Ok(writer)
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

/// Batch whose time zone is written as an offset. For the name "UTC", Arrow's text formatter would need a
/// time zone database, which is too large for one zone.
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
