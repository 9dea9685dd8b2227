//! A selection returns the same rows as a filter over all rows, but reads only the files that it needs.

use crate::made_rows::{Name, START_MS, batch};
use arrow::array::AsArray;
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::TimestampMillisecondType;
use arrow::record_batch::RecordBatch;
use gleaner_dataset::{Dataset, DatasetError, Identity, RowsBuilder, Selection, Writer};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{FileRow, HostRow, SampleRow};
use proptest::collection::{btree_set, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Midnight, the time of the third record of the first database.
const MIDNIGHT_MS: i64 = START_MS + 60_000;
const COLUMNS: [&str; 5] = ["size_bytes", "time", "host_id", "file_id", "sequence"];

fn write(root: &Path, table: &Table, seals: &[Vec<Name>]) -> Dataset {
    let mut writer = Writer::open(root).unwrap();
    for names in seals {
        writer.append(table, batch(table, names)).unwrap();
        writer.seal().unwrap();
    }
    Dataset::open(root).unwrap()
}

fn hosts(ids: &[&str]) -> Option<BTreeSet<String>> {
    Some(ids.iter().map(ToString::to_string).collect())
}

fn selected(dataset: &Dataset, table: &Table, selection: &Selection) -> Vec<RecordBatch> {
    let batches = dataset.select(table, selection).unwrap();
    batches.collect::<Result<_, _>>().unwrap()
}

/// Reads every row, and then filters: the obvious way to select.
fn filtered(dataset: &Dataset, table: &Table, selection: &Selection) -> RecordBatch {
    let batches: Vec<_> = dataset.scan(table).map(Result::unwrap).collect();
    let schema = gleaner_schemas::arrow::schema(table).into();
    let all = concat_batches(&schema, &batches).unwrap();
    let host = all.column_by_name("host_id").unwrap().as_string::<i32>();
    let time = all.column_by_name("time").unwrap();
    let time = time.as_primitive::<TimestampMillisecondType>();
    let keep = |row: usize| {
        let (host, time) = (host.value(row), time.value(row));
        selection
            .hosts
            .as_ref()
            .is_none_or(|hosts| hosts.contains(host))
            && selection.from_ms.is_none_or(|ms| time >= ms)
            && selection.until_ms.is_none_or(|ms| time < ms)
    };
    let kept: Vec<bool> = (0..all.num_rows()).map(keep).collect();
    let rows = filter_record_batch(&all, &kept.into()).unwrap();
    let asked = selection.columns.as_ref().map(|names| {
        let index = |name: &String| all.schema_ref().index_of(name).unwrap();
        names.iter().map(index).collect::<Vec<_>>()
    });
    asked.map_or(rows.clone(), |asked| rows.project(&asked).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_is_what_a_filter_would_leave(
        seals in vec(vec((0..4u8, 0..2u8, 0..8i64, 0..4i64), 1..40), 1..5),
        chosen in of(btree_set(0..5u8, 0..4)),
        from in of(select(vec![START_MS, START_MS + 20_001, MIDNIGHT_MS, MIDNIGHT_MS + 40_000_000])),
        until in of(select(vec![START_MS + 40_000, MIDNIGHT_MS, MIDNIGHT_MS + 1, i64::MAX])),
        columns in of(subsequence(COLUMNS.to_vec(), 1..=5).prop_shuffle()),
    ) {
        let table = FileRow::TABLE;
        let folder = tempfile::tempdir().unwrap();
        let seals: Vec<Vec<Name>> = seals
            .into_iter()
            .map(|names| names.into_iter().map(|(h, d, s, k)| Name::new(h, d, s, k)).collect())
            .collect();
        let dataset = write(folder.path(), &table, &seals);
        let selection = Selection {
            hosts: chosen.map(|hosts| hosts.into_iter().map(|h| format!("host-{h}")).collect()),
            from_ms: from,
            until_ms: until,
            columns: columns.map(|names| names.into_iter().map(str::to_owned).collect()),
        };
        let batches = selected(&dataset, &table, &selection);
        let schema = selection.schema(&table).unwrap();
        prop_assert!(batches.iter().all(|b| b.num_rows() > 0 && b.schema() == schema));
        let found = concat_batches(&schema, &batches).unwrap();
        let expected = filtered(&dataset, &table, &selection);
        prop_assert_eq!(found.columns(), expected.columns());
        prop_assert!(dataset.rows_selected_at_most(&table, &selection) >= found.num_rows() as u64);
        let of_days = dataset.dates_selected(&table, &selection).into_iter().flat_map(|date| {
            let day = dataset.select_date(&table, date, &selection).unwrap();
            day.map(Result::unwrap).collect::<Vec<_>>()
        });
        prop_assert_eq!(of_days.collect::<Vec<_>>(), batches);

        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        for host in (0..5).map(|h| format!("host-{h}")) {
            let of_host = dataset.read_host_between(&table, &host, &names, from, until).unwrap();
            let hosts = Some(BTreeSet::from([host]));
            let expected = filtered(&dataset, &table, &Selection { hosts, ..selection.clone() });
            prop_assert_eq!(of_host.columns(), expected.columns());
        }
    }
}

#[test]
fn batches_are_of_one_day_and_host_in_the_datasets_order() {
    let folder = tempfile::tempdir().unwrap();
    let table = SampleRow::TABLE;
    let names = |hosts: [u8; 2]| -> Vec<Name> {
        let of = |host| (0..6).map(move |sequence| Name::new(host, 0, sequence, 0));
        hosts.into_iter().flat_map(of).collect()
    };
    let dataset = write(folder.path(), &table, &[names([3, 1]), names([2, 1])]);
    let batches = selected(&dataset, &table, &Selection::default());
    let found: Vec<(&str, usize)> = batches
        .iter()
        .map(|b| (b.column(0).as_string::<i32>().value(0), b.num_rows()))
        .collect();
    let day = [("host-1", 3), ("host-2", 3), ("host-3", 3)];
    assert_eq!(found, [day, day].concat());
}

/// A dataset of four files, each of one day and one host; and the dataset's folder.
fn four_files() -> (tempfile::TempDir, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    let of = |host| (0..6).map(move |sequence| Name::new(host, 0, sequence, 1));
    let seals = [of(1).collect(), of(2).collect::<Vec<_>>()];
    let dataset = write(folder.path(), &FileRow::TABLE, &seals);
    assert_eq!(dataset.manifest().files.len(), 4);
    (folder, dataset)
}

#[test]
fn files_that_cannot_hold_what_is_wanted_are_not_opened() {
    let (folder, dataset) = four_files();
    let file = |date: &str, host: &str| -> PathBuf {
        let files = &dataset.manifest().files;
        let found = files.iter().find(|f| f.date == date && f.may_hold(host));
        folder.path().join(&found.unwrap().path)
    };
    let kept = file("2026-11-21", "host-2");
    for entry in &dataset.manifest().files {
        let path = folder.path().join(&entry.path);
        if path != kept {
            fs::write(path, "torn").unwrap();
        }
    }
    let select = |hosts, from_ms| {
        let selection = Selection {
            hosts,
            from_ms,
            ..Selection::default()
        };
        let batches = dataset.select(&FileRow::TABLE, &selection).unwrap();
        batches.collect::<Result<Vec<_>, _>>()
    };
    let sound = select(hosts(&["host-2", "host-9"]), Some(MIDNIGHT_MS)).unwrap();
    assert_eq!(sound.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    assert_eq!(select(hosts(&[]), None).unwrap(), []);
    for (torn, hosts, from_ms) in [
        (file("2026-11-20", "host-2"), hosts(&["host-2"]), None),
        (
            file("2026-11-21", "host-1"),
            hosts(&["host-1"]),
            Some(MIDNIGHT_MS),
        ),
        (file("2026-11-21", "host-1"), None, Some(MIDNIGHT_MS)),
    ] {
        let error = select(hosts, from_ms).unwrap_err().to_string();
        assert!(error.contains(torn.to_str().unwrap()), "{error}");
    }
}

#[test]
fn columns_that_do_not_exist_are_all_named() {
    let (_folder, dataset) = four_files();
    let columns = |names: &[&str]| Selection {
        columns: Some(names.iter().map(ToString::to_string).collect()),
        ..Selection::default()
    };
    let wrong = columns(&["time", "sise_bytes", "colour"]);
    let error = dataset.select(&FileRow::TABLE, &wrong).err().unwrap();
    assert!(matches!(error, DatasetError::UnknownColumn { .. }));
    let said = error.to_string();
    assert!(
        said.contains("files") && said.contains("sise_bytes, colour"),
        "{said}"
    );
    let twice = columns(&["sequence", "time", "sequence"]);
    let schema = twice.schema(&FileRow::TABLE).unwrap();
    assert_eq!(schema.fields().len(), 2);
    assert_eq!(
        selected(&dataset, &FileRow::TABLE, &twice)[0].schema(),
        schema
    );
}

#[test]
fn hosts_are_found_by_the_names_in_their_inventories() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = RowsBuilder::new(&HostRow::TABLE);
    for (sequence, host_id, host_name) in [(1, "a", "otter"), (2, "a", "mole"), (1, "b", "otter")] {
        let identity = Identity {
            host_id,
            database_id: "db",
            sequence,
            time_ms: START_MS,
        };
        let row = HostRow {
            host_name: host_name.to_owned(),
            ..HostRow::default()
        };
        rows.push(identity, row.to_values()).unwrap();
    }
    let mut writer = Writer::open(folder.path()).unwrap();
    writer
        .append(&HostRow::TABLE, rows.finish().unwrap())
        .unwrap();
    writer.seal().unwrap();
    let dataset = Dataset::open(folder.path()).unwrap();
    for (name, ids) in [
        ("otter", &["a", "b"][..]),
        ("mole", &["a"]),
        ("badger", &[]),
    ] {
        assert_eq!(
            Some(dataset.hosts_named(name).unwrap()),
            hosts(ids),
            "{name}"
        );
    }
}
