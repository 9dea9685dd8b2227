//! What goes in comes out: sorted, once, by host; whatever the order and number of seals.

use crate::made_rows::{Name, batch, read_names};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use gleaner_dataset::{Dataset, DatasetError, Summary, Writer};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{FileRow, SampleRow};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

fn seal(root: &Path, table: &Table, names: &[Name]) -> Summary {
    let mut writer = Writer::open(root).unwrap();
    writer.append(table, batch(table, names)).unwrap();
    writer.seal().unwrap()
}

fn names(key: std::ops::Range<i64>) -> impl Strategy<Value = Vec<Name>> {
    let name = (0..3u8, 0..2u8, 0..12i64, key)
        .prop_map(|(host, database, sequence, key)| Name::new(host, database, sequence, key));
    vec(name, 0..30)
}

fn seals_add_up_to_the_sorted_set(table: &Table, seals: &[Vec<Name>]) {
    let folder = tempfile::tempdir().unwrap();
    for names in seals {
        seal(folder.path(), table, names);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    dataset.verify().unwrap();

    let expected: BTreeSet<Name> = seals.iter().flatten().cloned().collect();
    let hosts: BTreeSet<String> = expected.iter().map(|n| n.host.clone()).collect();
    assert_eq!(dataset.hosts(), hosts.iter().cloned().collect::<Vec<_>>());
    let mut found = Vec::new();
    for host in &hosts {
        found.extend(read_names(&dataset, table, host));
    }
    assert_eq!(found, expected.iter().cloned().collect::<Vec<_>>());

    // The files themselves hold no repeats, for readers that do not know the manifest.
    assert_eq!(dataset.rows(table), expected.len() as u64);
    let scanned: usize = dataset.scan(table).map(|b| b.unwrap().num_rows()).sum();
    assert_eq!(scanned, expected.len());
    for name in &expected {
        let writer = Writer::open(folder.path()).unwrap();
        let last = writer.last_sequence(&name.host, &name.database);
        assert!(last >= Some(name.sequence), "{last:?} {name:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_of_one_row(seals in vec(names(0..1), 1..5)) {
        seals_add_up_to_the_sorted_set(&SampleRow::TABLE, &seals);
    }

    #[test]
    fn records_of_several_rows(seals in vec(names(0..4), 1..5)) {
        seals_add_up_to_the_sorted_set(&FileRow::TABLE, &seals);
    }
}

#[test]
fn sealing_the_same_rows_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let table = FileRow::TABLE;
    let rows: Vec<Name> = (0..50).map(|i| Name::new(1, 0, i / 5, i % 5)).collect();
    let first = seal(folder.path(), &table, &rows);
    assert_eq!((first.rows, first.repeated_rows), (50, 0));
    assert_eq!(first.files, 2, "two UTC days");
    let before = std::fs::read(folder.path().join("manifest.json")).unwrap();

    let again = seal(folder.path(), &table, &rows);
    assert_eq!((again.files, again.rows, again.repeated_rows), (0, 0, 50));
    let after = std::fs::read(folder.path().join("manifest.json")).unwrap();
    assert_eq!(before, after);
}

#[test]
fn large_parts_are_cut_and_the_manifest_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let table = FileRow::TABLE;
    let mut rows: Vec<Name> = (0..70_000).map(|key| Name::new(1, 0, 5, key)).collect();
    rows.push(Name::new(0, 0, 5, 0));
    rows.push(Name::new(2, 0, 6, 0));
    seal(folder.path(), &table, &rows);
    let dataset = Dataset::open(folder.path()).unwrap();
    let parts: Vec<_> = dataset.manifest().files[0]
        .hosts
        .iter()
        .map(|h| (h.host_id.as_str(), h.first_batch, h.batches, h.rows))
        .collect();
    let cut = [
        ("host-0", 0, 1, 1),
        ("host-1", 1, 2, 70_000),
        ("host-2", 3, 1, 1),
    ];
    assert_eq!(parts, cut);
    let read = dataset.read_host(&table, "host-1", &["file_id"]).unwrap();
    let ids = read.column(0).as_primitive::<Int64Type>();
    assert!(ids.values().iter().copied().eq(0..70_000));
}

#[test]
fn what_is_asked_for_wrongly_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let table = SampleRow::TABLE;
    seal(folder.path(), &table, &[Name::new(1, 0, 1, 0)]);
    let dataset = Dataset::open(folder.path()).unwrap();
    let error = dataset.read_host(&table, "host-1", &["pid"]).unwrap_err();
    assert!(error.to_string().contains("no column pid"), "{error}");
    let nobody = dataset.read_host(&table, "host-9", &["time"]).unwrap();
    assert_eq!((nobody.num_rows(), nobody.num_columns()), (0, 1));

    let mut writer = Writer::open(folder.path()).unwrap();
    let wrong = batch(&FileRow::TABLE, &[Name::new(1, 0, 1, 0)]);
    let error = writer.append(&table, wrong).unwrap_err();
    assert!(matches!(error, DatasetError::WrongSchema { .. }), "{error}");
}

#[test]
fn a_second_writer_is_refused_until_the_first_ends() {
    let folder = tempfile::tempdir().unwrap();
    let first = Writer::open(folder.path()).unwrap();
    let error = Writer::open(folder.path()).unwrap_err();
    assert!(matches!(error, DatasetError::Locked { .. }), "{error}");
    drop(first);
    Writer::open(folder.path()).unwrap();
}

#[test]
fn a_reader_beside_a_writer_sees_whole_seals() {
    let folder = tempfile::tempdir().unwrap();
    let tables = [SampleRow::TABLE, FileRow::TABLE];
    Writer::open(folder.path()).unwrap();
    let seals = 20;
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for sequence in 1..=seals {
                let mut writer = Writer::open(folder.path()).unwrap();
                for table in &tables {
                    let rows = batch(table, &[Name::new(1, 0, sequence, 0)]);
                    writer.append(table, rows).unwrap();
                }
                writer.seal().unwrap();
            }
        });
        let mut last = 0;
        while last < seals as usize {
            let ended = writing.is_finished();
            let dataset = Dataset::open(folder.path()).unwrap();
            let [samples, files] = tables.map(|t| read_names(&dataset, &t, "host-1").len());
            assert_eq!(samples, files, "a mix of two seals");
            assert!(samples >= last, "went back from {last} to {samples}");
            assert!(
                !ended || samples == seals as usize,
                "the writer stopped early"
            );
            last = samples;
        }
    });
}
