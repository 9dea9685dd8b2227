//! Exports contain exactly the rows of the dataset.

use arrow::array::AsArray;
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use arrow::ipc::reader::FileReader;
use arrow::record_batch::RecordBatch;
use gleaner_dataset::{
    Dataset, DatasetError, Identity, RowsBuilder, Selection, SourceColumn, SourceEntry, Writer,
};
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{ProcessRow, SampleRow};
use gleaner_traces::export::describe_sources;
use gleaner_traces::{Export, ExportError, ExportSummary, Format, Progress, export};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

/// 2026-11-20 23:59:30 UTC; records are ten seconds apart, so that the fourth is on the next day.
const START_MS: i64 = 1_795_219_170_000;

/// A dataset sealed twice: two hosts with eight records each, and in each record one sample and two processes.
fn dataset(folder: &Path) -> Dataset {
    for sequences in [[1, 3, 5, 7], [2, 4, 6, 8]] {
        let mut writer = Writer::open(folder).unwrap();
        let mut samples = RowsBuilder::new(&SampleRow::TABLE);
        let mut processes = RowsBuilder::new(&ProcessRow::TABLE);
        for (host_id, sequence) in sequences.iter().flat_map(|s| [("b", s), ("a", s)]) {
            let identity = Identity {
                host_id,
                database_id: "db",
                sequence: *sequence,
                time_ms: START_MS + sequence * 10_000,
            };
            let sample = SampleRow {
                load5: Some(0.5),
                ..SampleRow::default()
            };
            samples.push(identity, sample.to_values()).unwrap();
            for pid in [30, 4] {
                let process = ProcessRow {
                    pid,
                    name: format!("a, \"{pid}\""),
                    cpu_ms: (pid == 4).then_some(10),
                    ..ProcessRow::default()
                };
                processes.push(identity, process.to_values()).unwrap();
            }
        }
        for (table, rows) in [(SampleRow::TABLE, samples), (ProcessRow::TABLE, processes)] {
            writer.append(&table, rows.finish().unwrap()).unwrap();
        }
        writer.seal().unwrap();
    }
    Dataset::open(folder).unwrap()
}

fn whole(dataset: &Dataset, to: &Path, format: Format) -> ExportSummary {
    export(dataset, to, &Export::all(format), |_| ()).unwrap()
}

fn of_date(dataset: &Dataset, table: &Table, date: &str) -> RecordBatch {
    let batches: Vec<_> = dataset.scan_date(table, date).map(Result::unwrap).collect();
    concat_batches(&Arc::new(schema(table)), &batches).unwrap()
}

#[test]
fn parquet_holds_every_row_with_its_type_unit_and_order() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dataset = dataset(from.path());
    let (all, mut seen) = (Export::all(Format::Parquet), Vec::new());
    let exported = export(&dataset, to.path(), &all, |p: &Progress<'_>| {
        seen.push((p.rows, p.rows_in_all));
    });
    let exported = exported.unwrap();
    assert_eq!((exported.files, exported.rows), (4, 48));
    assert_eq!(seen.last(), Some(&(48, 48)));
    for table in [SampleRow::TABLE, ProcessRow::TABLE] {
        for date in ["2026-11-20", "2026-11-21"] {
            let path = format!("{0}/date={date}/{0}.parquet", table.name);
            let file = File::open(to.path().join(path)).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            assert_eq!(reader.schema().fields(), schema(&table).fields());
            let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
            let read = concat_batches(&batches[0].schema(), &batches).unwrap();
            let expected = of_date(&dataset, &table, date);
            assert_eq!(read.columns(), expected.columns());
        }
    }
}

#[test]
fn csv_is_quoted_and_absent_values_are_empty() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let exported = whole(&dataset(from.path()), to.path(), Format::Csv);
    assert_eq!((exported.files, exported.rows), (4, 48));
    let path = to.path().join("processes/date=2026-11-20/processes.csv");
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 8, "two records, two hosts, two processes");
    assert!(lines[0].starts_with("host_id,database_id,sequence,time,pid,"));
    assert_eq!(
        lines[1],
        "a,db,1,2026-11-20T23:59:40Z,4,0,\"a, \"\"4\"\"\",false,10,0,,,,,,,,"
    );
    assert!(lines[2].contains(",30,0,\"a, \"\"30\"\"\",false,,0,"));
}

#[test]
fn an_export_is_replaced_and_nothing_else() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dataset = dataset(from.path());
    whole(&dataset, to.path(), Format::Csv);
    let note = to.path().join("samples/date=2026-11-20/note.txt");
    fs::write(&note, "mine").unwrap();
    whole(&dataset, to.path(), Format::Parquet);
    let day = |name: &str| to.path().join("samples/date=2026-11-20").join(name);
    assert!(day("samples.parquet").exists() && !day("samples.csv").exists() && note.exists());

    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("letter.txt"), "dear").unwrap();
    let error = export(
        &dataset,
        foreign.path(),
        &Export::all(Format::Parquet),
        |_| (),
    )
    .unwrap_err();
    assert!(matches!(error, ExportError::NotEmpty { .. }), "{error}");
    assert_eq!(fs::read_dir(foreign.path()).unwrap().count(), 1);
}

#[test]
fn an_export_that_stopped_says_so() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dataset = dataset(from.path());
    let torn = from
        .path()
        .join(&dataset.manifest().files.last().unwrap().path);
    fs::write(&torn, "torn").unwrap();
    let error = export(&dataset, to.path(), &Export::all(Format::Parquet), |_| ()).unwrap_err();
    let name = torn.file_name().unwrap().to_str().unwrap();
    assert!(error.to_string().contains(name), "{error}");
    let mark = to.path().join("gleaner-export.json");
    assert!(
        fs::read_to_string(&mark)
            .unwrap()
            .contains("\"is_whole\": false")
    );

    fs::remove_dir_all(from.path()).unwrap();
    let sound = self::dataset(from.path());
    whole(&sound, to.path(), Format::Parquet);
    assert!(
        fs::read_to_string(&mark)
            .unwrap()
            .contains("\"is_whole\": true")
    );
}

fn arrow_file(root: &Path, table: &str, date: &str) -> RecordBatch {
    let path = root.join(format!("{table}/date={date}/{table}.arrow"));
    let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

#[test]
fn arrow_files_hold_the_same_compressed_or_not() {
    let from = tempfile::tempdir().unwrap();
    let dataset = dataset(from.path());
    let mut bytes = Vec::new();
    for is_compressed in [true, false] {
        let to = tempfile::tempdir().unwrap();
        let wanted = Export {
            is_compressed,
            ..Export::all(Format::Arrow)
        };
        let exported = export(&dataset, to.path(), &wanted, |_| ()).unwrap();
        assert_eq!((exported.files, exported.rows), (4, 48));
        for table in [SampleRow::TABLE, ProcessRow::TABLE] {
            for date in ["2026-11-20", "2026-11-21"] {
                let found = arrow_file(to.path(), table.name, date);
                assert_eq!(found, of_date(&dataset, &table, date));
            }
        }
        bytes.push(exported.bytes);
    }
    assert!(bytes[0] < bytes[1], "{bytes:?}");
}

#[test]
fn a_part_is_exported_and_no_empty_file() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dataset = dataset(from.path());
    let columns = ["name", "pid", "time"].map(str::to_owned).to_vec();
    for format in [Format::Arrow, Format::Csv, Format::Parquet] {
        let wanted = Export {
            tables: vec![ProcessRow::TABLE],
            selection: Selection {
                hosts: Some(["b".to_owned()].into()),
                from_ms: Some(START_MS + 50_000),
                until_ms: Some(START_MS + 80_000),
                columns: Some(columns.clone()),
            },
            ..Export::all(format)
        };
        let exported = export(&dataset, to.path(), &wanted, |p: &Progress<'_>| {
            assert!(p.rows <= p.rows_in_all);
        });
        let exported = exported.unwrap();
        assert_eq!((exported.files, exported.rows), (1, 6), "{format:?}");
        let tables: Vec<_> = fs::read_dir(to.path()).unwrap().collect();
        assert_eq!(
            tables.len(),
            2,
            "one table, and what says that this is an export"
        );
        match format {
            Format::Arrow => {
                let rows = arrow_file(to.path(), "processes", "2026-11-21");
                let (names, pids) = (rows.column(0), rows.column(1));
                assert_eq!(names.as_string::<i32>().value(0), "a, \"4\"");
                let pids = pids.as_primitive::<Int64Type>().values();
                assert_eq!(pids, &[4, 30, 4, 30, 4, 30]);
            }
            Format::Csv => {
                let path = to.path().join("processes/date=2026-11-21/processes.csv");
                let text = fs::read_to_string(path).unwrap();
                let mut lines = text.lines();
                assert_eq!(lines.next(), Some("name,pid,time"));
                assert_eq!(
                    lines.next(),
                    Some("\"a, \"\"4\"\"\",4,2026-11-21T00:00:20Z")
                );
            }
            Format::Parquet => {
                let path = to
                    .path()
                    .join("processes/date=2026-11-21/processes.parquet");
                let file = File::open(path).unwrap();
                let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
                assert_eq!(reader.schema().fields().len(), 3);
            }
        }
    }
    let wanted = Export {
        selection: Selection {
            columns: Some(columns),
            ..Selection::default()
        },
        ..Export::all(Format::Csv)
    };
    let error = export(&dataset, to.path(), &wanted, |_| ()).unwrap_err();
    let is_named = |e: &DatasetError| e.to_string().contains("samples has no column name, pid");
    assert!(
        matches!(&error, ExportError::Dataset(e) if is_named(e)),
        "{error}"
    );
    assert!(
        to.path().join("processes").exists(),
        "what is there is left"
    );
}

/// Each file of an export, and the folder's description, states the meaning of an imported host's figures.
#[test]
fn an_export_says_what_the_figures_of_imported_hosts_mean() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plain = dataset(from.path());
    whole(&plain, to.path(), Format::Parquet);
    describe_sources(&plain, to.path()).unwrap();
    let mark = || fs::read_to_string(to.path().join("gleaner-export.json")).unwrap();
    assert!(!mark().contains("sources"));
    let source = SourceEntry {
        name: "another tracer".into(),
        available_meaning: "Available memory is an upper bound.".into(),
        has_invented_sizes: true,
        columns: vec![SourceColumn {
            table: "samples".into(),
            column: "physical_bytes".into(),
            origin: "100 GiB, which stands for all".into(),
        }],
    };
    let mut writer = Writer::open(from.path()).unwrap();
    writer.describe(source.clone()).unwrap();
    let sources = [source];
    drop(writer);
    let dataset = Dataset::open(from.path()).unwrap();
    let read = |text: &str| serde_json::from_str::<Vec<SourceEntry>>(text).unwrap();
    for format in [Format::Parquet, Format::Arrow, Format::Csv] {
        whole(&dataset, to.path(), format);
        describe_sources(&dataset, to.path()).unwrap();
        let mark: serde_json::Value = serde_json::from_str(&mark()).unwrap();
        assert_eq!(mark["is_whole"], true);
        assert_eq!(read(&mark["sources"].to_string()), sources);
        let file = |ending| {
            let path = to.path().join("samples/date=2026-11-20");
            File::open(path.join(format!("samples.{ending}"))).unwrap()
        };
        let schema = match format {
            Format::Parquet => {
                let reader = ParquetRecordBatchReaderBuilder::try_new(file("parquet"));
                reader.unwrap().schema().clone()
            }
            Format::Arrow => FileReader::try_new(file("arrow"), None).unwrap().schema(),
            Format::Csv => continue, // CSV has no metadata
        };
        assert_eq!(read(&schema.metadata()["gleaner.sources"]), sources);
    }
}
