//! Version 1 as it was published stays readable, value for value.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMillisecondType};
use gleaner_dataset::{Dataset, Identity, RowsBuilder, Writer};
use gleaner_schemas::arrow::IDENTITY;
use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::rows::{
    AbsenceRow, ActivityRow, FileRow, GapRow, HostRow, ProcessRow, SampleRow, TABLES,
};
use std::path::Path;

const MINUTE_MS: i64 = 60_000;

/// A host id, a sequence and a time in minutes after 2026-11-20 23:59 UTC.
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

/// Writes the rows that the golden dataset holds, in two seals, with the present code.
fn write(root: &Path) {
    let sample = |mem_free_bytes, load5| SampleRow {
        boot_id: Some("boot-1".into()),
        boottime_ms: 90_000,
        physical_bytes: 25_276_514_304,
        mem_total_bytes: 25_276_514_304,
        available_bytes: 20_000_000_000,
        remainder_bytes: -4096,
        mem_free_bytes,
        load5,
        ..SampleRow::default()
    };
    let mut writer = Writer::open(root).unwrap();
    add(
        &mut writer,
        &[(("host-a", 2, 2), sample(2 << 30, Some(0.25)))],
    );
    let process = |pid, name: &str| ProcessRow {
        pid,
        started_ms: 1234,
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

    let mut writer = Writer::open(root).unwrap();
    add(
        &mut writer,
        &[
            (("host-b", 1, 3), sample(3 << 30, None)),
            (("host-a", 1, 0), sample(1 << 30, Some(0.5))),
        ],
    );
    let file = FileRow {
        file_id: -7,
        open_count: 1,
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
    let absence = AbsenceRow {
        item: "processes".into(),
        reason: "vanished".into(),
        detail: "No such process".into(),
        absent_count: 3,
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
        ..HostRow::default()
    };
    add(&mut writer, &[(("host-a", 4, 1), host)]);
    writer.seal().unwrap();
}

/// Everything in the dataset: rows by table, host and order, each a list in the order of the columns.
fn reading(root: &Path) -> serde_json::Value {
    let dataset = Dataset::open(root).unwrap();
    dataset.verify().unwrap();
    let mut tables = serde_json::Map::new();
    for table in &TABLES {
        let own = table.columns.iter().map(|c| c.name);
        let columns: Vec<&str> = IDENTITY.into_iter().chain(own).collect();
        let mut rows = Vec::new();
        for host in dataset.hosts() {
            let batch = dataset.read_host(table, &host, &columns).unwrap();
            rows.extend((0..batch.num_rows()).map(|row| values(&batch, row)));
        }
        let entry = serde_json::json!({ "columns": columns, "rows": rows });
        tables.insert(table.name.to_owned(), entry);
    }
    serde_json::Value::Object(tables)
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

#[test]
fn version_1_reads_as_published() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let text = std::fs::read_to_string(golden.join("v1.json")).unwrap();
    let published: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(reading(&golden.join("v1")), published);
}

/// The same rows, written by the present code, read the same. The dataset and its reading are left under
/// `target/tmp` for a new version to adopt.
#[test]
fn present_code_writes_what_reads_as_published() {
    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden");
    let _ = std::fs::remove_dir_all(&fresh); // of the run before, if there was one
    write(&fresh.join("v1"));
    let found = reading(&fresh.join("v1"));
    std::fs::write(fresh.join("v1.json"), format!("{found:#}\n")).unwrap();
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/v1.json");
    let published = std::fs::read_to_string(published).unwrap();
    let published: serde_json::Value = serde_json::from_str(&published).unwrap();
    assert_eq!(found, published, "see {}", fresh.display());
}
