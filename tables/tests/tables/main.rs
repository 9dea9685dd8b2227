//! Publishes datasets that change, and reads the Parquet files. Other engines read the tables in `tests/readers`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use arrow::array::AsArray;
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::record_batch::RecordBatch;
use gleaner_dataset::{Compaction, Dataset, Identity, RowsBuilder, Writer};
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{MissingValueRow, SampleRow};
use gleaner_tables::{GRACE, Options, PublishSummary, TableError, publish};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// 2026-11-20 23:59:30 UTC; records are ten seconds apart, so that the fourth is on the next day.
const START_MS: i64 = 1_795_219_170_000;

struct Setting {
    folder: tempfile::TempDir,
    /// Time of the last publication, and of all before.
    now: SystemTime,
}

impl Setting {
    fn new() -> Self {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(START_MS as u64);
        let folder = tempfile::tempdir().unwrap();
        Self { folder, now }
    }

    fn dataset(&self) -> PathBuf {
        self.folder.path().join("dataset")
    }

    fn tables(&self) -> PathBuf {
        self.folder.path().join("tables")
    }

    /// Seals samples of two hosts with these sequences.
    fn seal(&self, sequences: std::ops::Range<i64>) {
        let mut writer = Writer::open(self.dataset()).unwrap();
        let mut samples = RowsBuilder::new(&SampleRow::TABLE);
        for (host_id, sequence) in sequences.flat_map(|s| [("b", s), ("a", s)]) {
            let identity = Identity {
                host_id,
                database_id: "db",
                sequence,
                time_ms: START_MS + sequence * 10_000,
            };
            let sample = SampleRow {
                mem_free_bytes: sequence,
                load5: (sequence % 2 == 0).then_some(0.5),
                ..SampleRow::default()
            };
            samples.push(identity, sample.to_values()).unwrap();
        }
        writer
            .append(&SampleRow::TABLE, samples.finish().unwrap())
            .unwrap();
        writer.seal().unwrap();
    }

    fn merge(&self) {
        let mut writer = Writer::open(self.dataset()).unwrap();
        let compaction = Compaction {
            fan: 2,
            ..Compaction::default()
        };
        let mut merged = 0;
        while writer
            .compact_step(&compaction, self.now)
            .unwrap()
            .is_some()
        {
            merged += 1;
        }
        assert!(merged > 0);
    }

    fn try_publish(&self) -> Result<PublishSummary, TableError> {
        publish(
            &self.dataset(),
            &self.tables(),
            &Options::default(),
            self.now,
            |_| (),
        )
    }

    fn publish(&self) -> PublishSummary {
        self.try_publish().unwrap()
    }

    /// Every file of the tables with its content, but for the lock.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.tables(), &self.tables(), &mut found);
        found.remove(".lock");
        found
    }

    /// [`Setting::files`] without Avro files, in whose headers the order of entries is random.
    fn files_but_avro(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.files();
        files.retain(|name, _| !name.ends_with(".avro"));
        files
    }

    fn parquet_files(&self) -> BTreeSet<String> {
        let names = self.files().into_keys();
        names.filter(|name| name.ends_with(".parquet")).collect()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.tables().join(name)).unwrap()).unwrap()
    }
}

fn collect(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            found.insert(name, fs::read(path).unwrap());
        }
    }
}

/// Rows of Parquet files as texts, with the types of the dataset, in order.
fn read(root: &Path, names: &BTreeSet<String>, table: &Table) -> Vec<String> {
    let wanted = Arc::new(schema(table));
    let mut rows = Vec::new();
    for name in names {
        let file = File::open(root.join(name)).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)
            .unwrap()
            .build()
            .unwrap();
        for batch in reader {
            let batch = batch.unwrap();
            let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
            assert_eq!(batch.column_by_name("time").unwrap().data_type(), &time);
            let columns = wanted.fields().iter().map(|field| {
                let column = batch.column_by_name(field.name()).unwrap();
                cast(column, field.data_type()).unwrap()
            });
            let batch = RecordBatch::try_new(Arc::clone(&wanted), columns.collect()).unwrap();
            rows.extend(lines(&batch));
        }
    }
    rows.sort();
    rows
}

/// Text of each row.
fn lines(batch: &RecordBatch) -> Vec<String> {
    let row = |row: usize| format!("{:?}", batch.slice(row, 1).columns());
    (0..batch.num_rows()).map(row).collect()
}

fn of_dataset(root: &Path, table: &Table) -> Vec<String> {
    let dataset = Dataset::open(root).unwrap();
    let batches: Vec<_> = dataset.scan(table).map(Result::unwrap).collect();
    let mut rows = lines(&concat_batches(&Arc::new(schema(table)), &batches).unwrap());
    rows.sort();
    rows
}

#[test]
fn parquet_files_have_every_row_once_sorted_by_host_with_field_ids() {
    let setting = Setting::new();
    setting.seal(1..9);
    let summary = setting.publish();
    assert_eq!(
        (summary.rows, summary.files, summary.written_files),
        (16, 2, 2)
    );
    assert_eq!((summary.tables, summary.changed_tables), (1, 1));
    let names = setting.parquet_files();
    let folders: Vec<&str> = names
        .iter()
        .map(|n| n.rsplit_once('/').unwrap().0)
        .collect();
    assert_eq!(
        folders,
        [
            "samples/data/date=2026-11-20",
            "samples/data/date=2026-11-21"
        ]
    );
    let found = read(&setting.tables(), &names, &SampleRow::TABLE);
    assert_eq!(found, of_dataset(&setting.dataset(), &SampleRow::TABLE));
    assert_eq!(found.len(), 16);
    for name in &names {
        let file = File::open(setting.tables().join(name)).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let columns = builder.parquet_schema().root_schema().get_fields().to_vec();
        let ids: Vec<i32> = columns.iter().map(|c| c.get_basic_info().id()).collect();
        assert_eq!(ids, (1..=ids.len() as i32).collect::<Vec<_>>());
        let rows = builder.build().unwrap().next().unwrap().unwrap();
        let hosts: Vec<_> = rows.column(0).as_string::<i32>().iter().flatten().collect();
        assert!(hosts.is_sorted(), "{hosts:?}");
    }
}

#[test]
fn publishing_again_changes_nothing() {
    let setting = Setting::new();
    setting.seal(1..9);
    setting.publish();
    let before = setting.files();
    let summary = setting.publish();
    assert_eq!((summary.changed_tables, summary.written_files), (0, 0));
    assert_eq!((summary.rows, summary.files), (16, 2));
    assert_eq!(setting.files(), before);
    let mark = setting.json("gleaner-tables.json");
    assert_eq!(
        mark["tables"]["samples"],
        "samples/metadata/v1.metadata.json"
    );
}

#[test]
fn a_merge_is_one_snapshot_and_replaced_files_stay_for_the_grace_time() {
    let mut setting = Setting::new();
    setting.seal(1..5);
    setting.seal(5..7); // as many rows on the second day, so that its files are merged
    setting.publish();
    let before = setting.parquet_files();
    assert_eq!(before.len(), 3);
    setting.now += 10 * GRACE;
    setting.merge();
    let summary = setting.publish();
    assert_eq!(
        (summary.rows, summary.files, summary.written_files),
        (12, 2, 1)
    );
    let metadata = setting.json("samples/metadata/v2.metadata.json");
    assert_eq!(metadata["snapshots"].as_array().unwrap().len(), 2);
    assert_eq!(metadata["snapshots"][1]["summary"]["total-records"], "12");
    assert!(before.is_subset(&setting.parquet_files()));

    setting.now += GRACE;
    setting.publish();
    let after = setting.parquet_files();
    assert_eq!(after.len(), 2);
    let found = read(&setting.tables(), &after, &SampleRow::TABLE);
    assert_eq!(found, of_dataset(&setting.dataset(), &SampleRow::TABLE));
    let names: Vec<String> = setting.files().into_keys().collect();
    assert!(
        !names.contains(&"samples/metadata/snap-1.avro".to_owned()),
        "{names:?}"
    );
}

#[test]
fn a_table_that_loses_all_rows_stays_empty_and_others_never_appear() {
    let setting = Setting::new();
    setting.seal(1..3);
    setting.publish();
    fs::remove_dir_all(setting.dataset()).unwrap();
    drop(Writer::open(setting.dataset()).unwrap());
    let summary = setting.publish();
    assert_eq!((summary.tables, summary.files, summary.rows), (1, 0, 0));
    assert!(!setting.tables().join(MissingValueRow::TABLE.name).exists());
}

#[test]
fn leavings_of_a_killed_program_are_used_or_removed() {
    let setting = Setting::new();
    setting.seal(1..9);
    setting.publish();
    let whole = setting.files_but_avro();
    // Killed after the Parquet files, before the commit: the files are found again.
    fs::remove_dir_all(setting.tables().join("samples/metadata")).unwrap();
    let data = setting.tables().join("samples/data");
    fs::write(data.join("date=2026-11-20/.x.parquet.unfinished"), "x").unwrap();
    fs::create_dir_all(data.join("date=2026-11-19")).unwrap();
    fs::write(data.join("date=2026-11-19/y-00000000.parquet"), "y").unwrap();
    assert_eq!(setting.publish().written_files, 0);
    assert_eq!(setting.files_but_avro(), whole);
    assert!(!data.join("date=2026-11-19").exists());
    // Killed after the commit, before the hint.
    fs::write(
        setting.tables().join("samples/metadata/version-hint.text"),
        "0",
    )
    .unwrap();
    setting.publish();
    assert_eq!(setting.files_but_avro(), whole);
    // A Parquet file that was truncated or removed afterwards is written again.
    let damages: [fn(&Path); 2] = [
        |path| fs::write(path, "PAR1").unwrap(),
        |path| fs::remove_file(path).unwrap(),
    ];
    for damage in damages {
        damage(
            &setting
                .tables()
                .join(setting.parquet_files().first().unwrap()),
        );
        assert_eq!(setting.publish().written_files, 1);
        assert_eq!(setting.files_but_avro(), whole);
    }
}

#[test]
fn a_foreign_folder_a_lock_a_full_disk_and_damaged_metadata_are_refused() {
    let setting = Setting::new();
    setting.seal(1..3);
    fs::create_dir(setting.tables()).unwrap();
    fs::write(setting.tables().join("letter.txt"), "mine").unwrap();
    assert!(matches!(
        setting.try_publish(),
        Err(TableError::NotEmpty { .. })
    ));
    fs::remove_file(setting.tables().join("letter.txt")).unwrap();
    setting.publish();

    let lock = File::open(setting.tables().join(".lock")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(
        setting.try_publish(),
        Err(TableError::Locked { .. })
    ));
    lock.unlock().unwrap();

    let options = Options {
        location: Some("/srv/tables".to_owned()),
        ..Options::default()
    };
    let moved = publish(
        &setting.dataset(),
        &setting.tables(),
        &options,
        setting.now,
        |_| (),
    );
    assert!(matches!(moved, Err(TableError::Location { .. })));

    let options = Options {
        reserve_bytes: u64::MAX,
        ..Options::default()
    };
    setting.seal(3..5);
    let full = publish(
        &setting.dataset(),
        &setting.tables(),
        &options,
        setting.now,
        |_| (),
    );
    assert!(matches!(full, Err(TableError::NoRoom { .. })));
    let is_begun = |name: &String| name.ends_with(".unfinished");
    assert!(!setting.files().keys().any(is_begun));
    assert_eq!(setting.publish().written_files, 1);

    fs::write(
        setting.tables().join("samples/metadata/v2.metadata.json"),
        "{}",
    )
    .unwrap();
    assert!(matches!(
        setting.try_publish(),
        Err(TableError::Damaged { .. })
    ));
}

#[test]
fn tables_for_another_place_name_its_location() {
    let setting = Setting::new();
    setting.seal(1..3);
    setting.publish();
    let options = Options {
        location: Some("s3://traces/tables/".to_owned()),
        ..Options::default()
    };
    publish(
        &setting.dataset(),
        &setting.tables(),
        &options,
        setting.now,
        |_| (),
    )
    .unwrap();
    let metadata = setting.json("samples/metadata/v2.metadata.json");
    assert_eq!(metadata["location"], "s3://traces/tables/samples");
    assert_eq!(
        metadata["snapshots"][0]["manifest-list"],
        "s3://traces/tables/samples/metadata/snap-2.avro"
    );
    assert_eq!(metadata["snapshots"].as_array().unwrap().len(), 1);
}
