//! Datasets of every published version stay readable, and each value is read as before.

use crate::made_rows::copy;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMillisecondType};
use gleaner_dataset::{Compaction, Dataset, Identity, RowsBuilder, Writer};
use gleaner_schemas::arrow::IDENTITY;
use gleaner_schemas::column::{Row, Table, Value};
use gleaner_schemas::rows::{
    ActivityRow, CgroupRow, ClockRow, DATASET_TABLES, EventRow, FileRow, GapRow, HostRow,
    MissingValueRow, NumaNodeRow, ProcessRow, SampleRow, table,
};
use gleaner_schemas::{SCHEMA_VERSION, renames};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const MINUTE_MS: i64 = 60_000;

/// A record: host id, sequence, and time in minutes after 2026-11-20 23:59 UTC.
type Record = (&'static str, i64, i64);

fn add<R: Row>(writer: &mut Writer, rows: &[(Record, R)]) {
    let mut builder = RowsBuilder::new(&R::TABLE);
    for ((host_id, sequence, minutes), row) in rows {
        let identity = Identity {
            host_id,
            database_id: "db-1",
            sequence: *sequence,
            time_ms: crate::made_rows::START_MS + minutes * MINUTE_MS,
        };
        builder.push(identity, row.to_values()).unwrap();
    }
    writer.append(&R::TABLE, builder.finish().unwrap()).unwrap();
}

/// Adds a row that has only the columns `known`, like a row of a host without an agent.
fn add_known(writer: &mut Writer, table: &Table, record: Record, known: &[(&str, Value)]) {
    let (host_id, sequence, minutes) = record;
    let identity = Identity {
        host_id,
        database_id: "db-1",
        sequence,
        time_ms: crate::made_rows::START_MS + minutes * MINUTE_MS,
    };
    let mut builder = RowsBuilder::new(table);
    builder.push_known(identity, known).unwrap();
    writer.append(table, builder.finish().unwrap()).unwrap();
}

/// Adds a trace of another program, with one sample.
fn add_foreign(writer: &mut Writer, host_id: &'static str, sequence: i64, minutes: i64) {
    let host = [
        ("host_name", Value::Text("foreign".into())),
        ("source", Value::Text("another tracer".into())),
    ];
    let of_host = (host_id, sequence, minutes);
    add_known(writer, &HostRow::TABLE, of_host, &host);
    let sample = [
        ("is_complete_state", Value::Flag(false)),
        ("physical_bytes", Value::Integer(8 << 30)),
        ("available_bytes", Value::Integer(5 << 30)),
    ];
    let of_sample = (host_id, sequence + 1, minutes);
    add_known(writer, &SampleRow::TABLE, of_sample, &sample);
}

/// Writes the rows of the golden dataset with the current code, in two seals.
fn write(root: &Path) {
    let sample = |mem_free_bytes, load5| SampleRow {
        boot_id: Some("boot-1".into()),
        boottime_ms: Some(90_000),
        physical_bytes: 25_276_514_304,
        mem_total_bytes: 25_276_514_304,
        available_bytes: 20_000_000_000,
        category_correction_bytes: -4096,
        mem_free_bytes,
        load5,
        guest_load5: load5.map(|load| load / 4.0),
        ..SampleRow::default()
    };
    let mut writer = Writer::open(root).unwrap();
    add(
        &mut writer,
        &[(("host-a", 2, 2), sample(2 << 30, Some(0.25)))],
    );
    let process = |pid, name: &str| ProcessRow {
        pid,
        start_boottime_ms: 1234,
        name: name.into(),
        rss_bytes: 8192,
        memory_source: "pss".into(),
        anon_bytes: Some(4096),
        ..ProcessRow::default()
    };
    add(
        &mut writer,
        &[
            (("host-a", 2, 2), process(1200, "zürich")),
            (("host-a", 2, 2), process(7, "cron")),
        ],
    );
    writer.seal().unwrap();
    add(
        &mut writer,
        &[
            (
                ("host-b", 1, 3),
                SampleRow {
                    boottime_ms: None,
                    ..sample(3 << 30, None)
                },
            ),
            (("host-a", 1, 0), sample(1 << 30, Some(0.5))),
        ],
    );
    let file = FileRow {
        file_id: -7,
        open_processes_count: 1,
        size_bytes: Some(10_000),
        cached_bytes: Some(8192),
        ..FileRow::default()
    };
    add(&mut writer, &[(("host-a", 1, 0), file)]);
    let activity = ActivityRow {
        source: "input".into(),
        state: "denied".into(),
        devices_count: 2,
        ..ActivityRow::default()
    };
    add(&mut writer, &[(("host-a", 1, 0), activity)]);
    let absence = MissingValueRow {
        item: "processes".into(),
        reason: "vanished".into(),
        detail: "No such process".into(),
        missing_count: 3,
    };
    add(&mut writer, &[(("host-a", 1, 0), absence)]);
    let gap = GapRow {
        from_time_ms: crate::made_rows::START_MS,
        to_time_ms: crate::made_rows::START_MS + MINUTE_MS,
        cause: "sleep".into(),
    };
    add(&mut writer, &[(("host-a", 3, 1), gap)]);
    let host = HostRow {
        host_name: "workstation".into(),
        cpus_count: 2,
        headroom_share: 0.15,
        numa_nodes_count: Some(2),
        ..HostRow::default()
    };
    add(&mut writer, &[(("host-a", 4, 1), host)]);
    let node = |numa_node, mem_free_bytes| NumaNodeRow {
        numa_node,
        mem_total_bytes: 12 << 30,
        mem_free_bytes,
        ..NumaNodeRow::default()
    };
    add(
        &mut writer,
        &[
            (("host-a", 1, 0), node(1, 1 << 29)),
            (("host-a", 1, 0), node(0, 1 << 30)),
        ],
    );
    let cgroup = CgroupRow {
        cgroup_id: 9,
        active_processes_count: 1,
        memory_bytes: Some(1 << 20),
        ..CgroupRow::default()
    };
    add(&mut writer, &[(("host-a", 1, 0), cgroup)]);
    let event = EventRow {
        kind: "clock_step".into(),
        duration_ms: Some(-3_600_000),
        detail: None,
    };
    add(&mut writer, &[(("host-a", 5, 2), event)]);
    let clock = |skew_ms, collector: Option<&str>| ClockRow {
        skew_ms,
        collector: collector.map(str::to_owned),
    };
    add(
        &mut writer,
        &[
            (("host-a", 2, 4), clock(-3_600_012, None)),
            (("host-b", 1, 4), clock(7, Some("north"))),
        ],
    );
    add_foreign(&mut writer, "host-c", 1, 2);
    writer.seal().unwrap();
}

/// Reads all columns that `layout` names, by present or earlier names. Returns the rows by table and host, in
/// order; each row is a list of values in the order of the columns.
fn reading(root: &Path, layout: &Tables) -> serde_json::Value {
    let dataset = Dataset::open(root).unwrap();
    assert_eq!(dataset.verify().problems, []);
    let mut tables = serde_json::Map::new();
    for (name, columns) in layout {
        let table = table(renames::table_name(name)).unwrap();
        let present = |column: &'_ String| renames::column_name(table.name, column).to_owned();
        let present: Vec<String> = columns.iter().map(present).collect();
        let present: Vec<&str> = present.iter().map(String::as_str).collect();
        let mut rows = Vec::new();
        for host in dataset.hosts().unwrap() {
            let batch = dataset.read_host(&table, &host, &present).unwrap();
            rows.extend((0..batch.num_rows()).map(|row| values(&batch, row)));
        }
        let entry = serde_json::json!({ "columns": columns, "rows": rows });
        tables.insert(name.clone(), entry);
    }
    serde_json::Value::Object(tables)
}

/// Tables, each with the names of its columns.
type Tables = BTreeMap<String, Vec<String>>;

/// Tables of the current version.
fn present() -> Tables {
    let columns = |t: &Table| -> Vec<String> {
        let own = t.columns.iter().map(|c| c.name);
        IDENTITY.into_iter().chain(own).map(str::to_owned).collect()
    };
    DATASET_TABLES
        .iter()
        .map(|t| (t.name.to_owned(), columns(t)))
        .collect()
}

fn values(batch: &RecordBatch, row: usize) -> Vec<Value> {
    let value = |column: &dyn Array| {
        if column.is_null(row) {
            return Value::Null;
        }
        match column.data_type() {
            DataType::Int64 => Value::Integer(column.as_primitive::<Int64Type>().value(row)),
            DataType::Timestamp(..) => {
                Value::Integer(column.as_primitive::<TimestampMillisecondType>().value(row))
            }
            DataType::Float64 => Value::Real(column.as_primitive::<Float64Type>().value(row)),
            DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row).to_owned()),
            DataType::Boolean => Value::Flag(column.as_boolean().value(row)),
            other => panic!("no column is of type {other}"),
        }
    };
    batch.columns().iter().map(|c| value(c)).collect()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn published(version: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(golden().join(format!("{version}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_version_reads_as_published() {
    for version in ["v1", "v2", "v3", "v4", "v5", "v6", "v7"] {
        let published = published(version);
        let columns = |(name, table): (&String, &serde_json::Value)| {
            let columns = serde_json::from_value(table["columns"].clone()).unwrap();
            (name.clone(), columns)
        };
        let layout = published.as_object().unwrap().iter().map(columns).collect();
        assert_eq!(
            reading(&golden().join(version), &layout),
            published,
            "{version}"
        );
    }
}

#[test]
fn what_an_older_version_did_not_record_is_absent() {
    let old = reading(&golden().join("v1"), &present());
    let samples = &old["samples"];
    let at = |name: &str| present()["samples"].iter().position(|c| c == name).unwrap();
    let rows = samples["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert!(row[at("arc_bytes")].is_null());
        assert!(!row[at("mem_free_bytes")].is_null());
    }
    assert_eq!(old["events"]["rows"], serde_json::json!([]));
}

/// Rows can be added to a dataset of version 1.
#[test]
fn rows_are_added_to_an_older_version() {
    let folder = tempfile::tempdir().unwrap();
    copy(&golden().join("v1"), folder.path());
    let event = EventRow {
        kind: "boot".into(),
        ..EventRow::default()
    };
    let mut writer = Writer::open(folder.path()).unwrap();
    let sample = SampleRow {
        arc_bytes: Some(7),
        ..SampleRow::default()
    };
    add(&mut writer, &[(("host-a", 6, 0), event)]);
    add(&mut writer, &[(("host-a", 7, 0), sample)]);
    writer.seal().unwrap();
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.manifest().schema_version, SCHEMA_VERSION);
    let read = |table, column| {
        let rows = dataset
            .read_host(&table, "host-a", &["sequence", column])
            .unwrap();
        (0..rows.num_rows())
            .map(|row| values(&rows, row))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        read(EventRow::TABLE, "kind"),
        [[Value::Integer(6), Value::Text("boot".into())]]
    );
    assert_eq!(
        read(SampleRow::TABLE, "arc_bytes"),
        [
            [Value::Integer(1), Value::Null],
            [Value::Integer(7), Value::Integer(7)],
            [Value::Integer(2), Value::Null],
        ]
    );
}

/// Version 6 had other names for some tables and columns. Its files stay in their folders, new files get the
/// new names, and a reader finds the rows of both.
#[test]
fn a_dataset_of_version_6_is_extended_under_new_names() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    copy(&golden().join("v6"), root);
    let mut writer = Writer::open(root).unwrap();
    let missing = |missing_count| MissingValueRow {
        item: "files".into(),
        reason: "denied".into(),
        missing_count,
        ..MissingValueRow::default()
    };
    let repeated = MissingValueRow {
        item: "processes".into(),
        reason: "vanished".into(),
        ..MissingValueRow::default()
    };
    let rows = [
        (("host-a", 1, 0), repeated),
        (("host-a", 6, 0), missing(4)),
        (("host-a", 7, 1), missing(5)),
    ];
    add(&mut writer, &rows);
    let node = NumaNodeRow {
        numa_node: 1,
        reserve_bytes: Some(6),
        ..NumaNodeRow::default()
    };
    add(&mut writer, &[(("host-a", 6, 0), node)]);
    let sealed = writer.seal().unwrap();
    assert_eq!((sealed.rows, sealed.repeated_rows), (3, 1));

    let check = |folders: &[&str], step: &str| {
        let dataset = Dataset::open(root).unwrap();
        assert_eq!(dataset.verify().problems, [], "{step}");
        let files = dataset.manifest().files.iter();
        let files = files.filter(|file| file.table == "missing_values");
        let found: BTreeSet<&str> = files.map(|f| f.path.split('/').next().unwrap()).collect();
        assert!(found.iter().eq(folders), "{step}: {found:?}");
        let read = |table: &Table, columns: &[&str]| {
            let rows = dataset.read_host(table, "host-a", columns).unwrap();
            let integers = |at: usize| {
                rows.column(at)
                    .as_primitive::<Int64Type>()
                    .values()
                    .to_vec()
            };
            (integers(0), integers(1))
        };
        let counts = read(&MissingValueRow::TABLE, &["sequence", "missing_count"]);
        assert_eq!(counts, (vec![1, 6, 7], vec![3, 4, 5]), "{step}");
        let nodes = read(&NumaNodeRow::TABLE, &["sequence", "numa_node"]);
        assert_eq!(nodes, (vec![1, 1, 6], vec![0, 1, 1]), "{step}");
    };
    check(&["absences", "missing_values"], "appended");
    drop(writer);
    std::fs::remove_file(root.join("manifest.json")).unwrap();
    assert!(gleaner_dataset::repair(root).unwrap().manifest_rebuilt);
    check(&["absences", "missing_values"], "rebuilt");
    let mut writer = Writer::open(root).unwrap();
    let compaction = Compaction {
        fan: 2,
        quiet: Duration::ZERO,
        ..Compaction::default()
    };
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    while writer.compact_step(&compaction, later).unwrap().is_some() {}
    check(&["missing_values"], "merged");
}

/// In another program's trace, columns may be absent that agents always fill. This holds even if one file
/// also has a host's own rows of an older version.
#[test]
fn rows_that_lack_columns_are_added_to_an_older_version() {
    let folder = tempfile::tempdir().unwrap();
    copy(&golden().join("v3"), folder.path());
    let mut writer = Writer::open(folder.path()).unwrap();
    add_foreign(&mut writer, "host-a", 6, 3);
    writer.seal().unwrap();
    let reading = |step: &str| {
        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!(dataset.verify().problems, [], "{step}");
        let columns = ["sequence", "mem_free_bytes", "available_bytes"];
        let rows = dataset.read_host(&SampleRow::TABLE, "host-a", &columns);
        let rows = rows.unwrap();
        (0..rows.num_rows())
            .map(|row| values(&rows, row))
            .collect::<Vec<_>>()
    };
    let integer = Value::Integer;
    let expected = [
        [integer(1), integer(1 << 30), integer(20_000_000_000)],
        [integer(2), integer(2 << 30), integer(20_000_000_000)],
        [integer(7), Value::Null, integer(5 << 30)],
    ];
    assert_eq!(reading("appended"), expected);

    let compaction = Compaction {
        fan: 2,
        quiet: Duration::ZERO,
        ..Compaction::default()
    };
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    let mut merged = 0;
    while let Some(step) = writer.compact_step(&compaction, later).unwrap() {
        merged += usize::from(step.table == "samples");
    }
    assert!(merged > 0, "no samples were merged");
    assert_eq!(reading("merged"), expected);
    let absent_is_refused = {
        let mut builder = RowsBuilder::new(&SampleRow::TABLE);
        let identity = Identity {
            host_id: "host-a",
            database_id: "db-1",
            sequence: 9,
            time_ms: crate::made_rows::START_MS,
        };
        let known = [("physical_bytes", Value::Integer(1))];
        builder.push_known(identity, &known).unwrap();
        builder.finish().unwrap_err().to_string()
    };
    assert!(
        absent_is_refused.contains("is_complete_state"),
        "{absent_is_refused}"
    );
}

/// The current code writes the same rows, and they are read as published. The dataset and its reading stay
/// under `target/tmp`, so that they can be published with a new version.
#[test]
fn present_code_writes_what_reads_as_published() {
    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden");
    let _ = std::fs::remove_dir_all(&fresh); // left by the previous run, if any
    write(&fresh.join("v7"));
    let found = reading(&fresh.join("v7"), &present());
    std::fs::write(fresh.join("v7.json"), format!("{found:#}\n")).unwrap();
    assert_eq!(found, published("v7"), "see {}", fresh.display());
}
