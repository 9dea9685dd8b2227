//! A dataset in a store has the same rows as in a folder, within the limits of fetching, and reports the same faults.

use crate::store::Limits;
use crate::store::memory::{MemoryStore, URL};
use crate::{Dataset, DatasetError, FileEntry, Identity, RowsBuilder, Selection, Writer};
use arrow::record_batch::RecordBatch;
use gleaner_schemas::column::{Row as _, Table};
use gleaner_schemas::rows::{FileRow, HostRow};
use proptest::collection::{btree_set, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TABLE: Table = FileRow::TABLE;
const START_MS: i64 = 1_795_219_200_000;
const DAY_MS: i64 = 86_400_000;

/// Adds `rows` rows of one host and day, with values that cannot be compressed well.
fn append(writer: &mut Writer, host: u8, day: i64, rows: i64) {
    let mut builder = RowsBuilder::new(&TABLE);
    let host_id = format!("host-{host}");
    for key in 0..rows {
        let identity = Identity {
            host_id: &host_id,
            database_id: "database",
            sequence: day + 1,
            time_ms: START_MS + day * DAY_MS,
        };
        let hash = blake3::hash(format!("{host} {day} {key}").as_bytes());
        let row = FileRow {
            file_id: key,
            path: Some(hash.to_string()),
            ..FileRow::default()
        };
        builder.push(identity, row.to_values()).unwrap();
    }
    writer.append(&TABLE, builder.finish().unwrap()).unwrap();
}

/// Writes a dataset in which each of `hosts` has 1,100 rows, thus a record batch of its own, on each of `days`.
fn write(root: &Path, hosts: u8, days: i64) {
    let mut writer = Writer::open(root).unwrap();
    for host in 0..hosts {
        for day in 0..days {
            append(&mut writer, host, day, 1100);
        }
    }
    writer.seal().unwrap();
}

/// Limits by which every file is read by ranges.
fn narrow() -> Limits {
    Limits {
        requests: 4,
        held_bytes: 1 << 20,
        piece_bytes: 200_000,
        end_bytes: 16_000,
    }
}

fn open(store: &Arc<MemoryStore>, limits: Limits) -> Dataset {
    let store: Arc<MemoryStore> = Arc::clone(store);
    Dataset::open_within(store, limits).unwrap()
}

fn read(dataset: &Dataset, host: &str) -> Result<RecordBatch, DatasetError> {
    dataset.read_host(
        &TABLE,
        host,
        &["host_id", "database_id", "sequence", "time", "path"],
    )
}

/// Waits until a condition holds; returns false if it does not hold within a minute.
fn holds_soon(condition: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > Duration::from_secs(60) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

fn selected(dataset: &Dataset, selection: &Selection) -> Vec<RecordBatch> {
    let batches = dataset.select(&TABLE, selection).unwrap();
    batches.collect::<Result<_, _>>().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_has_the_rows_of_the_folder_whatever_the_limits(
        seals in vec(vec((0..5_u8, 0..3_i64, select(vec![1_i64, 40, 1100, 2500])), 1..6), 1..3),
        chosen in of(btree_set(0..6_u8, 0..4)),
        from in of(0..3_i64),
        requests in 1..4_usize,
        held_bytes in select(vec![0_u64, 30_000, 400_000, 1 << 28]),
        piece_bytes in select(vec![0_u64, 50_000, 1 << 23]),
        end_bytes in select(vec![0_u64, 1000, 20_000, 1 << 20]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        for hosts in &seals {
            for (host, day, rows) in hosts {
                append(&mut writer, *host, *day, *rows);
            }
            writer.seal().unwrap();
        }
        let here = Dataset::open(folder.path()).unwrap();
        let store = Arc::new(MemoryStore::of(folder.path()));
        let there = open(&store, Limits { requests, held_bytes, piece_bytes, end_bytes });
        prop_assert_eq!(there.manifest(), here.manifest());
        prop_assert_eq!(there.hosts().unwrap(), here.hosts().unwrap());
        let selection = Selection {
            hosts: chosen.map(|hosts| hosts.iter().map(|host| format!("host-{host}")).collect()),
            from_ms: from.map(|day| START_MS + day * DAY_MS),
            ..Selection::default()
        };
        prop_assert_eq!(selected(&there, &selection), selected(&here, &selection));
        let scan = |dataset: &Dataset| dataset.scan(&TABLE).map(Result::unwrap).collect::<Vec<_>>();
        prop_assert_eq!(scan(&there), scan(&here));
        for entry in &here.manifest().files {
            let rows = |dataset: &Dataset| {
                let rows = dataset.scan_file(&TABLE, entry).unwrap();
                rows.map(Result::unwrap).collect::<Vec<_>>()
            };
            prop_assert_eq!(rows(&there), rows(&here));
        }
        let ahead = there.read_ahead(&there.hosts().unwrap());
        for host in (0..6).map(|host| format!("host-{host}")) {
            let expected = read(&here, &host).unwrap();
            prop_assert_eq!(&read(&there, &host).unwrap(), &expected);
            prop_assert_eq!(&read(&ahead, &host).unwrap(), &expected);
        }
    }
}

#[test]
fn threads_that_read_hosts_in_order_get_the_rows_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 12, 3);
    let here = Dataset::open(folder.path()).unwrap();
    let store = Arc::new(MemoryStore::of(folder.path()));
    let there = open(&store, narrow());
    let hosts = there.hosts().unwrap();
    let ahead = there.read_ahead(&hosts);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (hosts, ahead, here) = (&hosts, &ahead, &here);
            scope.spawn(move || {
                for host in hosts.iter().skip(thread).step_by(3) {
                    assert_eq!(read(ahead, host).unwrap(), read(here, host).unwrap());
                }
            });
        }
    });
}

#[test]
fn small_files_take_one_request_and_large_ones_few() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 12, 1);
    let store = Arc::new(MemoryStore::of(folder.path()));
    let here = Dataset::open(folder.path()).unwrap();
    let [file] = &here.manifest().files[..] else {
        panic!("there is one file");
    };
    let end_bytes = file.bytes;
    let whole = open(
        &store,
        Limits {
            end_bytes,
            ..narrow()
        },
    );
    store.take_answers();
    for host in whole.hosts().unwrap() {
        assert_eq!(read(&whole, &host).unwrap().num_rows(), 1100);
    }
    assert_eq!(store.take_answers(), [(file.path.clone(), file.bytes)]);

    let there = open(&store, narrow());
    store.take_answers();
    let hosts = there.hosts().unwrap();
    let answers = store.take_answers();
    assert_eq!(answers.len(), 1, "only the footer is needed to list hosts");
    assert!(answers[0].1 < file.bytes / 10, "{answers:?}");
    // One host alone: nothing else is fetched.
    read(&there, "host-3").unwrap();
    let answers = store.take_answers();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(answers[0].1 < file.bytes / 8, "{answers:?}");
    let ahead = there.read_ahead(&hosts);
    for host in &hosts {
        read(&ahead, host).unwrap();
    }
    let answers = store.take_answers();
    assert!(answers.len() < hosts.len() / 2, "{answers:?}");
    let longest = answers.iter().map(|(_, bytes)| *bytes).max().unwrap();
    assert!(longest <= narrow().piece_bytes, "{answers:?}");
    let fetched: u64 = answers.iter().map(|(_, bytes)| bytes).sum();
    assert!(fetched <= file.bytes, "{fetched}");
}

#[test]
fn of_a_part_of_the_hosts_nothing_else_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 12, 1);
    let store = Arc::new(MemoryStore::of(folder.path()));
    let there = open(&store, narrow());
    let hosts = there.hosts().unwrap();
    let file = &there.manifest().files[0];
    let part = &hosts[4..7];
    let ahead = there.read_ahead(part);
    store.take_answers();
    for host in part {
        read(&ahead, host).unwrap();
    }
    let fetched: u64 = store.take_answers().iter().map(|(_, bytes)| bytes).sum();
    assert!(fetched < file.bytes * 4 / 12, "{fetched} of {}", file.bytes);
}

#[test]
fn a_host_of_many_days_is_fetched_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 3, 4);
    let store = Arc::new(MemoryStore::of(folder.path()));
    let there = open(&store, narrow());
    there.hosts().unwrap();
    store.hold_back(true);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(&there, "host-1").unwrap());
        let are_at_once = holds_soon(|| store.waiting() == 4);
        store.hold_back(false);
        assert_eq!(reader.join().unwrap().num_rows(), 4400);
        assert!(are_at_once);
    });
}

/// A dataset of one file in a store, and the file's entry.
fn one_file() -> (Arc<MemoryStore>, FileEntry) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 3, 1);
    let entry = Dataset::open(folder.path()).unwrap().manifest().files[0].clone();
    (Arc::new(MemoryStore::of(folder.path())), entry)
}

#[track_caller]
fn names_the_file(error: &DatasetError, entry: &FileEntry) {
    let url = format!("{URL}/{}", entry.path);
    assert!(error.to_string().contains(&url), "{error}");
}

#[test]
fn faults_of_files_are_those_of_a_folder_with_the_url() {
    for limits in [Limits::default(), narrow()] {
        let (store, entry) = one_file();
        let whole = store.content(&entry.path);
        let fault = || {
            let error = read(&open(&store, limits), "host-1").unwrap_err();
            names_the_file(&error, &entry);
            error
        };
        for length in [0, 5, whole.len() / 2, whole.len() - 1] {
            store.put(&entry.path, whole.slice(..length));
            let error = fault();
            let DatasetError::Torn {
                expected, found, ..
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!((expected, found), (entry.bytes, length as u64));
        }
        for position in [whole.len() / 2, whole.len() - 40] {
            let mut flipped = whole.to_vec();
            flipped[position] ^= 1;
            store.put(&entry.path, flipped);
            let error = fault();
            assert!(matches!(error, DatasetError::Altered { .. }), "{error}");
        }
        store.remove(&entry.path);
        let error = fault();
        assert!(matches!(error, DatasetError::Missing { .. }), "{error}");
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_an_error() {
    let (store, entry) = one_file();
    let whole = store.content(&entry.path);
    let there = open(&store, narrow());
    there.hosts().unwrap();
    store.put(&entry.path, whole.slice(..whole.len() / 2));
    let error = read(&there, "host-2").unwrap_err();
    assert!(matches!(error, DatasetError::Altered { .. }), "{error}");
    store.remove(&entry.path);
    let error = read(&there, "host-1").unwrap_err();
    assert!(matches!(error, DatasetError::Missing { .. }), "{error}");
    names_the_file(&error, &entry);
}

#[test]
fn failures_of_the_store_are_reported_and_not_remembered() {
    let (store, entry) = one_file();
    let there = open(&store, narrow());
    store.fail(true);
    let error = there.hosts().unwrap_err();
    assert!(matches!(error, DatasetError::Io { .. }), "{error}");
    assert!(error.to_string().contains("connection refused"), "{error}");
    names_the_file(&error, &entry);
    let open_failed = Dataset::open_within(Arc::<MemoryStore>::clone(&store), narrow());
    let said = open_failed.unwrap_err().to_string();
    assert!(
        said.contains(URL) && said.contains("connection refused"),
        "{said}"
    );
    store.fail(false);
    assert_eq!(there.hosts().unwrap().len(), 3);
    store.fail(true);
    assert!(read(&there, "host-1").is_err());
    store.fail(false);
    assert_eq!(read(&there, "host-1").unwrap().num_rows(), 1100);
}

#[test]
fn manifests_of_all_writers_are_read_and_their_absence_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (name, host) in [("east", 1), ("west", 2)] {
        let mut writer = Writer::open_named(folder.path(), name).unwrap();
        append(&mut writer, host, 0, 10);
        writer.seal().unwrap();
    }
    let here = Dataset::open(folder.path()).unwrap();
    let store = Arc::new(MemoryStore::of(folder.path()));
    let there = open(&store, Limits::default());
    assert_eq!(there.manifest(), here.manifest());
    assert_eq!(there.hosts().unwrap(), ["host-1", "host-2"]);
    assert_eq!(there.root(), Path::new(URL));
    let empty = Arc::new(MemoryStore::default());
    let error = Dataset::open_in(empty).unwrap_err();
    assert!(matches!(error, DatasetError::NotADataset { .. }), "{error}");
    assert!(error.to_string().contains(URL), "{error}");
}

#[test]
fn a_url_is_no_folder() {
    let url = "s3://bucket/dataset";
    for error in [
        Dataset::open(url).unwrap_err(),
        Writer::open(url).unwrap_err(),
        crate::repair(url).unwrap_err(),
    ] {
        assert!(matches!(error, DatasetError::NotAFolder { .. }), "{error}");
        assert!(error.to_string().contains(url), "{error}");
    }
    assert!(!Path::new("s3:").exists());
}

#[test]
fn the_threads_end_with_the_dataset() {
    let (store, _) = one_file();
    let there = open(&store, narrow());
    there.hosts().unwrap();
    assert_eq!(Arc::strong_count(&store), 1 + narrow().requests);
    drop(there);
    assert!(holds_soon(|| Arc::strong_count(&store) == 1));
}

#[test]
fn tables_without_rows_of_the_host_need_no_request() {
    let (store, _) = one_file();
    let there = open(&store, narrow());
    store.take_answers();
    let columns = ["host_id", "database_id", "sequence", "time"];
    let rows = there
        .read_host(&HostRow::TABLE, "host-1", &columns)
        .unwrap();
    assert_eq!(rows.num_rows(), 0);
    assert_eq!(read(&there, "nobody").unwrap().num_rows(), 0);
    assert!(store.take_answers().is_empty());
}
