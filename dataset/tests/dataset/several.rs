//! Several writers, each with its own hosts, write into one dataset.

use crate::made_rows::{Name, batch, read_names};
use gleaner_dataset::{
    Compaction, Dataset, DatasetError, FileEntry, Writer, check_writer_name, manifest_paths, repair,
};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::SampleRow;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

const SEALS: i64 = 12;

fn open(root: &Path, host: u8) -> Writer {
    match host {
        0 => Writer::open(root),
        host => Writer::open_named(root, &format!("collector-{host}")),
    }
    .unwrap()
}

/// Opens the host's writer again for each seal, so that it cleans up while the other writers work.
fn write(root: &Path, host: u8) {
    let table = SampleRow::TABLE;
    let compaction = Compaction {
        quiet: Duration::ZERO,
        ..Compaction::default()
    };
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(100 * 365 * 86_400);
    for sequence in 1..=SEALS {
        let mut writer = open(root, host);
        let rows = batch(&table, &[Name::new(host, 0, sequence, 0)]);
        writer.append(&table, rows).unwrap();
        writer.seal().unwrap();
        writer.compact_step(&compaction, later).unwrap();
    }
}

fn holds_all(root: &Path) {
    let dataset = Dataset::open(root).unwrap();
    assert_eq!(dataset.verify().problems, []);
    assert_eq!(dataset.hosts().unwrap(), ["host-0", "host-1", "host-2"]);
    assert_eq!(dataset.rows(&SampleRow::TABLE), 3 * SEALS as u64);
    for host in 0..3 {
        let expected = (1..=SEALS).map(|sequence| Name::new(host, 0, sequence, 0));
        let found = read_names(&dataset, &SampleRow::TABLE, &format!("host-{host}"));
        assert!(found.into_iter().eq(expected), "host {host}");
    }
}

#[test]
fn they_do_not_disturb_each_other_and_readers_see_all() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::thread::scope(|scope| {
        for host in 0..3 {
            scope.spawn(move || write(root, host));
        }
    });
    holds_all(root);
    assert!(root.join("manifests/collector-1.json").exists());

    // A writer's lost manifest is rebuilt from the files of this writer only.
    let manifest = |host| fs::read(root.join(format!("manifests/collector-{host}.json"))).unwrap();
    let before = [manifest(1), manifest(2)];
    fs::remove_file(root.join("manifests/collector-1.json")).unwrap();
    assert!(repair(root).unwrap().manifest_rebuilt);
    assert_eq!([manifest(1), manifest(2)], before);
    holds_all(root);
}

#[test]
fn a_record_that_two_writers_have_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let table = SampleRow::TABLE;
    for (writer, sequences) in [(1, 1..=3), (2, 2..=4)] {
        let names: Vec<_> = sequences.map(|s| Name::new(7, 0, s, 0)).collect();
        let mut writer = open(folder.path(), writer);
        writer.append(&table, batch(&table, &names)).unwrap();
        assert_eq!(writer.seal().unwrap().rows, 3);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let expected = (1..=4).map(|sequence| Name::new(7, 0, sequence, 0));
    let found = read_names(&dataset, &table, "host-7");
    assert!(found.into_iter().eq(expected));
    let scanned = dataset.scan(&table).map(|rows| rows.unwrap().num_rows());
    assert_eq!(scanned.sum::<usize>(), 4);
    assert_eq!(dataset.rows(&table), 6); // the manifests' count
    let writers: BTreeSet<_> = dataset
        .manifest()
        .files
        .iter()
        .map(FileEntry::writer)
        .collect();
    assert_eq!(
        writers,
        BTreeSet::from([Some("collector-1"), Some("collector-2")])
    );
    let manifests = manifest_paths(folder.path()).unwrap();
    assert!(
        manifests[1].ends_with("manifests/collector-2.json"),
        "{manifests:?}"
    );
}

#[test]
fn each_name_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let north = Writer::open_named(folder.path(), "north").unwrap();
    let _south = Writer::open_named(folder.path(), "south").unwrap();
    let again = Writer::open_named(folder.path(), "north").unwrap_err();
    assert!(matches!(again, DatasetError::Locked { .. }), "{again}");
    drop(north);
    Writer::open_named(folder.path(), "north").unwrap();
    for name in ["", "../north", "North", "a.b"] {
        let error = Writer::open_named(folder.path(), name).unwrap_err();
        assert!(matches!(error, DatasetError::WriterName { .. }), "{error}");
        assert!(check_writer_name(name).is_err());
    }
    check_writer_name("north-2_b").unwrap();
    assert_eq!(
        Dataset::open(folder.path()).unwrap().hosts().unwrap().len(),
        0
    );
}
