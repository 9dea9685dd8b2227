//! Findings of single hosts as Parquet files: one file per list of the findings.
//!
//! ```text
//! FOLDER/idle_periods.parquet    a row per record; a column per field, with the name and type of the JSON member
//! ```
//!
//! Rows are in the order of host ids. Absent values are null; times are integers in ms since 1970-01-01 UTC. The
//! columns come from the records' Rust types, so files and JSON documents always have the same fields. The same
//! findings give the same bytes.

use crate::{ExportError, Result};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use gleaner_schemas::findings::{
    Finding, FindingVisitor, Findings, RecordFile, RecordFiles, take_records_of_hosts,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_arrow::schema::{SchemaLike, TracingOptions};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of rows of a row group. Readers of a few hosts skip most groups of a large fleet's file.
const GROUP_ROWS: usize = 65_536;

/// Number of records that are converted at a time.
const BATCH_ROWS: usize = 8192;

/// Checks that `folder` can be written: it must be absent or empty.
///
/// # Errors
/// [`ExportError::Occupied`] if the folder has files, or an error of reading the folder.
pub fn check(folder: &Path) -> Result<()> {
    let mut entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(ExportError::io("list folder", folder))?,
    };
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(ExportError::Occupied {
            folder: folder.to_owned(),
        }),
    }
}

/// Moves the records of single hosts from `findings` into Parquet files in `folder`, which must be absent or
/// empty. The folder appears when all files are complete. Each list's memory is freed when its file is written.
///
/// # Errors
/// [`ExportError::Occupied`] if the folder has files, or an error of writing; `findings` may then have lost
/// records.
pub fn write(findings: &mut Findings, folder: &Path) -> Result<RecordFiles> {
    check(folder)?;
    let parent = folder.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(ExportError::io("create folder", parent))?;
    let staged = tempfile::Builder::new()
        .prefix(".gleaner-new-")
        // As any folder that a program makes: the umask decides who may read it.
        .permissions(Permissions::from_mode(0o777))
        .tempdir_in(parent)
        .map_err(ExportError::io("create a folder in", parent))?;
    let mut lists = Lists {
        findings,
        folder: staged.path(),
        written: Ok(Vec::new()),
    };
    Findings::visit(&mut lists);
    let files = lists.written?;
    // The folder's old name is gone afterwards, so nothing is left to be removed at the end of `staged`.
    fs::rename(staged.path(), folder).map_err(ExportError::io("create folder", folder))?;
    Ok(RecordFiles {
        folder: folder.display().to_string(),
        files,
    })
}

/// Writer of every list of the findings.
struct Lists<'a> {
    findings: &'a mut Findings,
    folder: &'a Path,
    /// Files so far, or the first error.
    written: Result<Vec<RecordFile>>,
}

impl FindingVisitor for Lists<'_> {
    fn visit<F: Finding>(&mut self) {
        let Ok(files) = &mut self.written else { return };
        let records: Vec<F> = take_records_of_hosts(self.findings);
        if records.is_empty() {
            return;
        }
        match write_list(&records, self.folder) {
            Ok(file) => files.push(file),
            Err(error) => self.written = Err(error),
        }
    }
}

fn write_list<F: Finding>(records: &[F], folder: &Path) -> Result<RecordFile> {
    let name = format!("{}.parquet", F::KEY);
    let path = folder.join(&name);
    let columns = columns::<F>().map_err(ExportError::io("write", &path))?;
    let schema = Arc::new(Schema::new(columns.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS));
    let file = File::create(&path).map_err(ExportError::io("create", &path))?;
    let writer = ArrowWriter::try_new(file, schema, Some(properties.build()));
    let mut writer = writer.map_err(ExportError::io("write", &path))?;
    for records in records.chunks(BATCH_ROWS) {
        let batch = serde_arrow::to_record_batch(&columns, &records);
        let batch = batch.map_err(ExportError::io("write", &path))?;
        let written = writer.write(&batch);
        written.map_err(ExportError::io("write", &path))?;
    }
    let file = writer.into_inner();
    let file = file.map_err(ExportError::io("write", &path))?;
    file.sync_all().map_err(ExportError::io("finish", &path))?;
    Ok(RecordFile {
        measure: F::KEY.to_owned(),
        file: name,
        rows_count: records.len() as i64,
        blake3: hash(&path).map_err(ExportError::io("read", &path))?,
    })
}

/// Columns of a list's file. A variant of an enumeration is its name, as in JSON.
fn columns<F: Finding>() -> Result<Vec<FieldRef>, serde_arrow::Error> {
    let options = TracingOptions::default()
        .enums_without_data_as_strings(true)
        .strings_as_large_utf8(false)
        .sequence_as_large_list(false);
    let columns = Vec::<FieldRef>::from_type::<F>(options)?;
    let as_text = |column: FieldRef| match column.data_type() {
        DataType::Dictionary(_, text) => {
            let (text, nullable) = (text.as_ref().clone(), column.is_nullable());
            Arc::new(Field::new(column.name().as_str(), text, nullable))
        }
        _ => column,
    };
    Ok(columns.into_iter().map(as_text).collect())
}

fn hash(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{Float64Type, Int64Type};
    use gleaner_schemas::findings::{
        Forecast, HostSummary, LendingMode, MemoryContext, Reclaims, Scope,
    };
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    fn forecast(host: &str, share: Option<f64>) -> Forecast {
        Forecast {
            host_id: host.to_owned(),
            time_ms: 1_795_000_000_001,
            scope: Scope::Idle,
            region_bytes: (1 << 53) + 1,
            region_share: share,
            ahead_s: 600,
            probability: 0.1,
        }
    }

    fn findings() -> Findings {
        let reclaims = |host: Option<&str>| Reclaims {
            host_id: host.map(str::to_owned),
            size_class: "all".to_owned(),
            hosts_count: 1,
            reclaims_count: 2,
            observed_days: 0.5,
            reclaims_per_day: 4.0,
        };
        Findings {
            hosts: vec![HostSummary {
                host_id: "a".to_owned(),
                ..HostSummary::default()
            }],
            forecasts: vec![forecast("b", None), forecast("a", Some(0.25))],
            reclaims: vec![reclaims(Some("a")), reclaims(None)],
            ..Findings::default()
        }
    }

    #[test]
    fn records_of_hosts_become_files_with_exact_values() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("new/records");
        let mut found = findings();
        let written = write(&mut found, &folder).unwrap();
        let names: Vec<&str> = written.files.iter().map(|f| f.measure.as_str()).collect();
        assert_eq!(names, ["hosts", "reclaims", "forecasts"]);
        assert!(found.hosts.is_empty() && found.forecasts.is_empty());
        assert_eq!(found.reclaims.len(), 1, "records of several hosts stay");

        let file = File::open(folder.join("forecasts.parquet")).unwrap();
        let mut batches = ParquetRecordBatchReaderBuilder::try_new(file)
            .unwrap()
            .build()
            .unwrap();
        let batch = batches.next().unwrap().unwrap();
        let schema = batch.schema();
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let expected = "host_id time_ms scope region_bytes region_share ahead_s probability";
        assert_eq!(names.join(" "), expected);
        assert_eq!(batch.column(0).as_string::<i32>().value(0), "a");
        assert_eq!(batch.column(2).as_string::<i32>().value(0), "idle");
        let bytes = batch.column(3).as_primitive::<Int64Type>();
        assert_eq!(bytes.value(1), (1 << 53) + 1);
        let shares = batch.column(4).as_primitive::<Float64Type>();
        assert_eq!((shares.value(0), shares.is_null(1)), (0.25, true));
        assert_eq!(batch.num_rows(), 2);
    }

    #[test]
    fn the_same_findings_give_the_same_files() {
        let parent = tempfile::tempdir().unwrap();
        let [first, second] = ["a", "b"].map(|name| {
            let folder = parent.path().join(name);
            write(&mut findings(), &folder).unwrap().files
        });
        assert_eq!(first, second);
        let left = fs::read_dir(parent.path()).unwrap().count();
        assert_eq!(left, 2, "no temporary folder is left");
    }

    #[test]
    fn a_folder_with_files_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        write(&mut findings(), folder.path()).unwrap();
        let mut found = findings();
        let error = write(&mut found, folder.path()).unwrap_err();
        assert!(matches!(error, ExportError::Occupied { .. }), "{error}");
        assert_eq!(found, findings());
        assert!(folder.path().join("hosts.parquet").is_file());
    }

    /// Visits every list, and checks that columns can be made of it.
    struct Columns(Vec<String>);

    impl FindingVisitor for Columns {
        fn visit<F: Finding>(&mut self) {
            for column in columns::<F>().unwrap() {
                let kind = column.data_type();
                let is_plain = matches!(
                    kind,
                    DataType::Utf8 | DataType::Int64 | DataType::Float64 | DataType::Boolean
                );
                if !is_plain {
                    self.0.push(format!("{}.{}", F::KEY, column.name()));
                }
            }
        }
    }

    #[test]
    fn every_list_has_columns_of_plain_types() {
        let mut nested = Columns(Vec::new());
        Findings::visit(&mut nested);
        // No record of a single host is nested.
        assert_eq!(nested.0, ["sources.columns"]);
        let modes = columns::<MemoryContext>().unwrap();
        let mode = modes.iter().find(|column| column.name() == "mode").unwrap();
        assert_eq!(mode.data_type(), &DataType::Utf8);
        assert_eq!(serde_json::to_value(LendingMode::Paper).unwrap(), "paper");
    }
}
