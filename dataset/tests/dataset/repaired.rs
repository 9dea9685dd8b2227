//! Repair: all rows of sound record batches are kept, and the dataset verifies afterwards. Lost rows are
//! counted, and can be added again.

use crate::made_rows::{Name, batch, copy, read_names};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::ipc::reader::{FileReader, read_footer_length};
use arrow::ipc::root_as_footer;
use gleaner_dataset::{Compaction, Dataset, DatasetError, ProblemKind, Writer, repair};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{FileRow, SampleRow};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::io::Cursor;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

const HOSTS: u8 = 9;

/// Host and key of each row.
type Keys = BTreeSet<(String, i64)>;

/// Rows with sequence 5 of nine hosts. Host 4 has 1500 files and the others 300, which gives three record batches.
fn names() -> Vec<Name> {
    let keys = |host: u8| 0..if host == 4 { 1500 } else { 300 };
    let of_host = |host| keys(host).map(move |key| Name::new(host, 0, 5, key));
    (0..HOSTS).flat_map(of_host).collect()
}

/// A dataset with a single file, created once for all cases.
fn sealed() -> &'static Path {
    static SEALED: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = SEALED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        let table = FileRow::TABLE;
        writer.append(&table, batch(&table, &names())).unwrap();
        writer.seal().unwrap();
        folder
    });
    folder.path()
}

/// The record batches of a file: for each, its range of bytes, and the hosts and keys of its rows.
fn batches(file: &[u8]) -> Vec<(Range<usize>, Keys)> {
    let length = read_footer_length(*file.last_chunk::<10>().unwrap()).unwrap();
    let footer = &file[file.len() - 10 - length..file.len() - 10];
    let blocks = root_as_footer(footer).unwrap().recordBatches().unwrap();
    let blocks = blocks.iter().map(|block| {
        let start = block.offset() as usize;
        start..start + block.metaDataLength() as usize + block.bodyLength() as usize
    });
    let read = FileReader::try_new(Cursor::new(file), None).unwrap();
    let rows = read.map(|batch| {
        let batch = batch.unwrap();
        let hosts = batch["host_id"].as_string::<i32>().iter();
        let keys = batch["file_id"].as_primitive::<Int64Type>().values();
        let hosts = hosts.map(|host| host.unwrap().to_owned());
        hosts.zip(keys.iter().copied()).collect()
    });
    blocks.zip(rows).collect()
}

fn held(root: &Path) -> Keys {
    let dataset = Dataset::open(root).unwrap();
    let hosts = dataset.hosts().unwrap().into_iter();
    hosts
        .flat_map(|host| read_names(&dataset, &FileRow::TABLE, &host))
        .map(|name| (name.host, name.key))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_row_of_an_intact_batch_is_kept(
        place in any::<prop::sample::Index>(),
        near_the_end in prop::bool::weighted(0.4),
        is_cut in any::<bool>(),
        flip in 1..=255u8,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        copy(sealed(), root);
        let path = Dataset::open(root).unwrap().manifest().files[0].path.clone();
        let whole = fs::read(root.join(&path)).unwrap();
        let batches = batches(&whole);
        assert_eq!(batches.len(), 3);
        let footer = batches[2].0.end;
        let place = if near_the_end {
            footer + place.index(whole.len() - footer)
        } else {
            place.index(whole.len())
        };
        let mut altered = whole.clone();
        if is_cut {
            altered.truncate(place);
        } else {
            altered[place] ^= flip;
        }
        fs::write(root.join(&path), &altered).unwrap();
        let intact = batches.iter().filter(|(bytes, _)| {
            if is_cut { bytes.end <= place } else { !bytes.contains(&place) }
        });
        let intact: Keys = intact.flat_map(|(_, rows)| rows.clone()).collect();

        let problems = Dataset::open(root).unwrap().verify().problems;
        prop_assert_eq!(problems.len(), 1);
        prop_assert_eq!(&problems[0].path, &path);
        let repaired = repair(root).unwrap();
        prop_assert_eq!(&repaired.problems, &problems);
        prop_assert!(!repaired.manifest_rebuilt);
        prop_assert_eq!(Dataset::open(root).unwrap().verify().problems, []);
        prop_assert_eq!(&held(root), &intact);
        prop_assert_eq!(repaired.saved_rows, intact.len() as u64);
        let lost: u64 = repaired.lost.iter().map(|lost| lost.rows.unwrap()).sum();
        prop_assert_eq!(lost as usize, names().len() - intact.len());
        if let ProblemKind::Batches(_) = problems[0].kind {
            prop_assert_eq!(problems[0].rows, lost);
            let hosts: Vec<_> = repaired.lost.iter().map(|l| l.host_id.clone().unwrap()).collect();
            prop_assert_eq!(&problems[0].hosts, &hosts);
            prop_assert_eq!(repaired.unproven_rows, 0);
        }
        prop_assert_eq!(fs::read(root.join(".damaged").join(&path)).unwrap(), altered);

        // A sender sends all rows again; only the lost ones are added.
        let mut writer = Writer::open(root).unwrap();
        writer.append(&FileRow::TABLE, batch(&FileRow::TABLE, &names())).unwrap();
        prop_assert_eq!(writer.seal().unwrap().rows, lost);
        prop_assert_eq!(held(root).len(), names().len());
        prop_assert_eq!(Dataset::open(root).unwrap().rows(&FileRow::TABLE), names().len() as u64);
    }

    /// However bad the damage is, the repair ends, and the remaining dataset verifies.
    #[test]
    fn a_file_damaged_all_over_ends_in_a_sound_dataset(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..200),
        cut in prop::option::of(any::<prop::sample::Index>()),
        without_manifest in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        copy(sealed(), root);
        let path = root.join(&Dataset::open(root).unwrap().manifest().files[0].path);
        let mut altered = fs::read(&path).unwrap();
        for (place, flip) in flips {
            let place = place.index(altered.len());
            altered[place] ^= flip;
        }
        altered.truncate(cut.map_or(altered.len(), |cut| cut.index(altered.len())));
        fs::write(&path, &altered).unwrap();
        if without_manifest {
            fs::remove_file(root.join("manifest.json")).unwrap();
        }
        let repaired = repair(root).unwrap();
        prop_assert_eq!(repaired.manifest_rebuilt, without_manifest);
        let dataset = Dataset::open(root).unwrap();
        prop_assert_eq!(dataset.verify().problems, []);
        prop_assert_eq!(dataset.rows(&FileRow::TABLE), repaired.saved_rows);
        let scanned = dataset.scan(&FileRow::TABLE).map(|rows| rows.unwrap().num_rows() as u64);
        prop_assert_eq!(scanned.sum::<u64>(), repaired.saved_rows);
    }
}

#[test]
fn a_lost_or_damaged_manifest_is_made_anew() {
    for damage in [None, Some("{\"format_version\": 2"), Some("")] {
        for version in ["v1", "v2", "v3", "v4", "v5", "v6", "v7"] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            copy(
                &Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("golden")
                    .join(version),
                root,
            );
            let mut writer = Writer::open(root).unwrap();
            let rows = batch(
                &SampleRow::TABLE,
                &[Name::new(1, 0, 7, 0), Name::new(2, 1, 7, 0)],
            );
            writer.append(&SampleRow::TABLE, rows).unwrap();
            writer.seal().unwrap();
            drop(writer);
            let before = Dataset::open(root).unwrap().manifest().clone();
            let manifest = root.join("manifest.json");
            match damage {
                None => fs::remove_file(&manifest).unwrap(),
                Some(text) => fs::write(&manifest, text).unwrap(),
            }
            let repaired = repair(root).unwrap();
            assert!(repaired.manifest_rebuilt && repaired.problems.is_empty());
            let after = Dataset::open(root).unwrap();
            assert_eq!(after.manifest(), &before, "{version}");
            assert_eq!(after.verify().problems, []);
            let kept = fs::read_to_string(root.join(".damaged/manifest.json"));
            assert_eq!(kept.ok().as_deref(), damage);
        }
    }
}

/// A killed compaction leaves the old files and the merged one; the repair does not count their rows twice.
#[test]
fn no_row_is_there_twice_after_the_manifest_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let table = FileRow::TABLE;
    let mut writer = Writer::open(root).unwrap();
    for sequence in 5..9 {
        let names: Vec<Name> = (0..10).map(|key| Name::new(1, 0, sequence, key)).collect();
        writer.append(&table, batch(&table, &names)).unwrap();
        writer.seal().unwrap();
    }
    let compaction = Compaction {
        quiet: Duration::ZERO,
        ..Compaction::default()
    };
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(100 * 365 * 86_400);
    writer.compact_step(&compaction, later).unwrap().unwrap();
    drop(writer);
    copy(&root.join(".retired"), root);
    fs::remove_file(root.join("manifest.json")).unwrap();
    assert!(repair(root).unwrap().manifest_rebuilt);
    let dataset = Dataset::open(root).unwrap();
    assert_eq!(dataset.verify().problems, []);
    assert_eq!(dataset.rows(&table), 40);
    assert_eq!(read_names(&dataset, &table, "host-1").len(), 40);
}

#[test]
fn what_is_no_dataset_is_not_made_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let error = repair(folder.path()).unwrap_err();
    assert!(matches!(error, DatasetError::NotADataset { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A writer that has the dataset open can repair it and continue.
#[test]
fn a_writer_repairs_what_it_writes_to() {
    let folder = tempfile::tempdir().unwrap();
    copy(sealed(), folder.path());
    let mut writer = Writer::open(folder.path()).unwrap();
    let path = Dataset::open(folder.path()).unwrap().manifest().files[0]
        .path
        .clone();
    fs::remove_file(folder.path().join(&path)).unwrap();
    let table = FileRow::TABLE;
    writer.append(&table, batch(&table, &names())).unwrap();
    writer.seal().unwrap_err();
    let repaired = writer.repair().unwrap();
    assert_eq!(repaired.problems[0].kind, ProblemKind::Missing);
    assert_eq!(repaired.lost[0].rows, Some(names().len() as u64));
    assert_eq!(writer.seal().unwrap().rows, names().len() as u64);
    assert_eq!(held(folder.path()).len(), names().len());
}
