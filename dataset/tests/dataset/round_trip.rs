//! Rows that were written are read back by host, sorted and once, whatever the order of rows and the number of seals.

use crate::made_rows::{Name, batch, read_names};
use arrow::array::AsArray;
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use arrow::ipc::reader::FileReader;
use gleaner_dataset::{Dataset, DatasetError, Summary, Writer};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{FileRow, SampleRow};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
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
    assert_eq!(dataset.verify().problems, []);

    let expected: BTreeSet<Name> = seals.iter().flatten().cloned().collect();
    let hosts: BTreeSet<String> = expected.iter().map(|n| n.host.clone()).collect();
    assert_eq!(
        dataset.hosts().unwrap(),
        hosts.iter().cloned().collect::<Vec<_>>()
    );
    let mut found = Vec::new();
    for host in &hosts {
        found.extend(read_names(&dataset, table, host));
    }
    assert_eq!(found, expected.iter().cloned().collect::<Vec<_>>());

    // The files themselves have no repetitions, so that readers that ignore the manifest see none.
    assert_eq!(dataset.rows(table), expected.len() as u64);
    let scanned: usize = dataset.scan(table).map(|b| b.unwrap().num_rows()).sum();
    assert_eq!(scanned, expected.len());
    let mut writer = Writer::open(folder.path()).unwrap();
    for name in &expected {
        let last = writer.last_sequence(&name.host, &name.database).unwrap();
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
fn batches_end_with_a_host_and_large_hosts_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let table = FileRow::TABLE;
    let mut rows: Vec<Name> = (0..70_000).map(|key| Name::new(1, 0, 5, key)).collect();
    rows.push(Name::new(0, 0, 5, 0));
    rows.push(Name::new(2, 0, 6, 0));
    seal(folder.path(), &table, &rows);
    let dataset = Dataset::open(folder.path()).unwrap();
    let entry = &dataset.manifest().files[0];
    assert_eq!(entry.hosts_count, 3);
    assert_eq!(
        (&*entry.first_host_id, &*entry.last_host_id),
        ("host-0", "host-2")
    );
    let file = fs::File::open(folder.path().join(&entry.path)).unwrap();
    let file = FileReader::try_new(file, None).unwrap();
    let batches: Vec<usize> = file.map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!(batches, [1, 65_536, 4_464, 1]);
    let read = dataset.read_host(&table, "host-1", &["file_id"]).unwrap();
    let ids = read.column(0).as_primitive::<Int64Type>();
    assert!(ids.values().iter().copied().eq(0..70_000));
}

#[test]
fn hosts_with_few_rows_share_a_batch_and_are_read_apart() {
    let folder = tempfile::tempdir().unwrap();
    let table = FileRow::TABLE;
    let rows = |host: u8| 3 + i64::from(host) % 11;
    let name = |host: u8| (0..rows(host)).map(move |key| Name::new(host, 0, 5, key));
    let names: Vec<Name> = (0..=255).flat_map(name).collect();
    seal(folder.path(), &table, &names);
    let dataset = Dataset::open(folder.path()).unwrap();
    let entry = &dataset.manifest().files[0];
    let file = fs::File::open(folder.path().join(&entry.path)).unwrap();
    let file = FileReader::try_new(file, None).unwrap();
    let batches: Vec<_> = file.map(Result::unwrap).collect();
    let most_rows = 1024 + 13;
    let [whole @ .., _last] = &batches[..] else {
        panic!("no batch")
    };
    assert!(
        whole
            .iter()
            .all(|b| (1024..most_rows).contains(&b.num_rows()))
    );
    assert_eq!(batches.len(), 2);

    for host in (0..=255).rev().chain(0..=255) {
        let expected: Vec<Name> = name(host).collect();
        let host = &expected[0].host;
        assert_eq!(&read_names(&dataset, &table, host), &expected);
    }
    // Rows in the file are ordered by day and then by host.
    let scanned: Vec<_> = dataset.scan(&table).map(Result::unwrap).collect();
    let schema = scanned[0].schema();
    assert_eq!(
        concat_batches(&schema, &scanned).unwrap(),
        concat_batches(&batches[0].schema(), &batches)
            .unwrap()
            .with_schema(schema.clone())
            .unwrap()
    );
}

/// A collector appends few rows at a time, as agents send them. These must not take more memory than their rows.
#[test]
fn thousands_of_tiny_batches_cost_what_their_rows_cost() {
    let folder = tempfile::tempdir().unwrap();
    let table = SampleRow::TABLE;
    let mut writer = Writer::open(folder.path()).unwrap();
    let names = (0..5000).map(|i| Name::new((i % 100) as u8, 0, i / 100, 0));
    for name in names.clone() {
        writer.append(&table, batch(&table, &[name])).unwrap();
    }
    assert_eq!(writer.pending_rows(), 5000);
    let whole = batch(&table, &names.collect::<Vec<_>>());
    let bytes = writer.pending_bytes();
    assert!(bytes < 3 * whole.get_array_memory_size(), "{bytes} bytes");
    assert_eq!(writer.seal().unwrap().rows, 5000);
    assert_eq!((writer.pending_rows(), writer.pending_bytes()), (0, 0));
    // A writer that stays open knows which rows it has already sealed.
    writer.append(&table, whole).unwrap();
    let again = writer.seal().unwrap();
    assert_eq!((again.rows, again.repeated_rows), (0, 5000));
    assert_eq!(
        writer.last_sequence("host-7", "database-0").unwrap(),
        Some(49)
    );
    writer
        .append(&table, batch(&table, &[Name::new(7, 0, 50, 0)]))
        .unwrap();
    writer.seal().unwrap();
    assert_eq!(
        writer.last_sequence("host-7", "database-0").unwrap(),
        Some(50)
    );
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
