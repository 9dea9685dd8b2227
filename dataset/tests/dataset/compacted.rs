//! Compaction: there are fewer files with the same rows, and concurrent readers are not disturbed.

use crate::made_rows::{Name, batch, read_names};
use gleaner_dataset::{Compaction, CompactionStep, Dataset, DatasetError, Writer};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{FileRow, SampleRow};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// A time at which all days of the rows have long been over.
fn later() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(100 * 365 * 86_400)
}

/// Rules without a quiet time: the files of a past day are merged immediately.
fn at_once() -> Compaction {
    Compaction {
        quiet: Duration::ZERO,
        ..Compaction::default()
    }
}

fn all_steps(writer: &mut Writer, compaction: &Compaction) -> Vec<CompactionStep> {
    std::iter::from_fn(|| writer.compact_step(compaction, later()).unwrap()).collect()
}

fn seal(writer: &mut Writer, table: &Table, names: &[Name]) {
    writer.append(table, batch(table, names)).unwrap();
    writer.seal().unwrap();
}

fn all_names(root: &Path, table: &Table) -> Vec<Name> {
    let dataset = Dataset::open(root).unwrap();
    let hosts = dataset.hosts().unwrap().into_iter();
    hosts
        .flat_map(|host| read_names(&dataset, table, &host))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_rows_in_fewer_files(
        seals in vec(vec((0..4u8, 0..2u8, 0..12i64, 0..40i64), 1..60), 1..12),
        file_bytes in prop_oneof![Just(1), Just(10_000), Just(1 << 30)],
    ) {
        let table = FileRow::TABLE;
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        let mut expected = BTreeSet::new();
        for names in seals {
            let names: Vec<_> = names.into_iter().map(|(h, d, s, k)| Name::new(h, d, s, k)).collect();
            seal(&mut writer, &table, &names);
            expected.extend(names);
        }
        let before = Dataset::open(folder.path()).unwrap().manifest().files.len();
        let compaction = Compaction { file_bytes, ..at_once() };
        let steps = all_steps(&mut writer, &compaction);
        for step in &steps {
            prop_assert!(step.merged_files > 1);
            prop_assert_eq!(step.repeated_rows, 0);
        }
        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!(dataset.verify().problems, []);
        let after = dataset.manifest().files.len();
        prop_assert_eq!(before - after, steps.iter().map(|s| s.merged_files - s.files).sum::<usize>());
        if file_bytes == 1 << 30 {
            for date in dataset.dates(&table) {
                let files = dataset.manifest().files.iter().filter(|f| f.date == date);
                let mut rows: Vec<u64> = files.map(|f| f.rows).collect();
                rows.sort();
                let far_larger = |at: usize| rows[at] > 8 * rows[..at].iter().sum::<u64>();
                prop_assert!((1..rows.len()).all(far_larger), "{:?}", rows);
            }
        }
        prop_assert_eq!(dataset.rows(&table), expected.len() as u64);
        let found = all_names(folder.path(), &table);
        prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn large_files_are_split_at_a_host_and_then_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let table = FileRow::TABLE;
    let mut writer = Writer::open(folder.path()).unwrap();
    for sequence in 5..13 {
        let names: Vec<Name> = (0..20)
            .flat_map(|host| (0..100).map(move |key| Name::new(host, 0, sequence, key)))
            .collect();
        seal(&mut writer, &table, &names);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let whole: u64 = dataset.manifest().files.iter().map(|f| f.bytes).sum();
    let compaction = Compaction {
        file_bytes: whole / 4,
        ..at_once()
    };
    let steps = all_steps(&mut writer, &compaction);
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert!(steps[0].files > 1, "{steps:?}");
    assert_eq!(steps[0].rows, 16_000);
    let dataset = Dataset::open(folder.path()).unwrap();
    let files = &dataset.manifest().files;
    let mut bounds: Vec<_> = files
        .iter()
        .map(|f| (f.first_host_id.clone(), f.last_host_id.clone()))
        .collect();
    bounds.sort();
    assert!(bounds.windows(2).all(|w| w[0].1 < w[1].0), "{bounds:?}");
    let hosts: u64 = files.iter().map(|f| f.hosts_count).sum();
    assert_eq!(hosts, 20);
}

#[test]
fn files_of_a_size_are_merged_while_their_day_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let table = FileRow::TABLE;
    let mut writer = Writer::open(folder.path()).unwrap();
    let never_quiet = Compaction {
        fan: 4,
        quiet: Duration::from_secs(200 * 365 * 86_400),
        ..Compaction::default()
    };
    let mut written = 0;
    let seals = 4 * 4 * 4;
    for sequence in 0..seals {
        let names: Vec<Name> = (0..50)
            .map(|key| Name::new(1, 0, 10 + sequence, key))
            .collect();
        seal(&mut writer, &table, &names);
        written += all_steps(&mut writer, &never_quiet)
            .iter()
            .map(|s| s.rows)
            .sum::<u64>();
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert!(
        dataset.manifest().files.len() < 3 * 4,
        "{:?}",
        dataset.manifest().files.len()
    );
    assert_eq!(dataset.rows(&table), 50 * seals as u64);
    // On average, a row was rewritten at most four times, not once per seal.
    assert!(written <= 4 * 50 * seals as u64, "{written}");
}

#[test]
fn a_large_file_is_not_written_anew_for_a_few_late_rows() {
    let folder = tempfile::tempdir().unwrap();
    let table = FileRow::TABLE;
    let mut writer = Writer::open(folder.path()).unwrap();
    let many: Vec<Name> = (0..20_000).map(|key| Name::new(1, 0, 10, key)).collect();
    seal(&mut writer, &table, &many);
    seal(&mut writer, &table, &[Name::new(2, 0, 10, 0)]);
    assert_eq!(all_steps(&mut writer, &at_once()), []);
}

#[test]
fn a_damaged_file_is_told_once_and_the_others_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let table = FileRow::TABLE;
    let mut writer = Writer::open(folder.path()).unwrap();
    for sequence in 5..9 {
        seal(&mut writer, &table, &[Name::new(1, 0, sequence, 0)]);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let bad = folder.path().join(&dataset.manifest().files[1].path);
    drop(writer);
    let whole = fs::read(&bad).unwrap();
    for altered in [&whole[..100], &[b"x", &whole[..]].concat()] {
        fs::write(&bad, altered).unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        let error = writer.compact_step(&at_once(), later()).unwrap_err();
        assert!(matches!(error, DatasetError::Torn { .. }), "{error}");
        if altered.len() > 100 {
            let step = writer.compact_step(&at_once(), later()).unwrap().unwrap();
            assert_eq!((step.merged_files, step.files), (3, 1));
        }
    }
    fs::write(&bad, whole).unwrap();
    assert_eq!(all_names(folder.path(), &table).len(), 4);
}

#[test]
fn retired_files_are_deleted_after_their_grace() {
    let folder = tempfile::tempdir().unwrap();
    let table = SampleRow::TABLE;
    let mut writer = Writer::open(folder.path()).unwrap();
    for sequence in 5..13 {
        seal(&mut writer, &table, &[Name::new(1, 0, sequence, 0)]);
    }
    let before = Dataset::open(folder.path()).unwrap();
    assert_eq!(all_steps(&mut writer, &at_once()).len(), 1);
    let unread = before.clone();
    assert_eq!(read_names(&before, &table, "host-1").len(), 8);

    // The age of a retired file counts from its modification time. If that is in the future because the clock
    // was set back, the grace period starts again.
    let retired = folder
        .path()
        .join(".retired")
        .join(&before.manifest().files[0].path);
    let file = fs::File::options().write(true).open(&retired).unwrap();
    let later = SystemTime::now() + Duration::from_secs(5000);
    file.set_modified(later).unwrap();
    seal(&mut writer, &table, &[Name::new(1, 0, 13, 0)]);
    assert!(fs::metadata(&retired).unwrap().modified().unwrap() < later);

    writer.keep_retired_for(Duration::ZERO);
    seal(&mut writer, &table, &[Name::new(1, 0, 14, 0)]);
    assert!(!retired.exists());
    assert_eq!(
        read_names(&unread, &table, "host-1").len(),
        8,
        "mapped already"
    );
    let fresh = Dataset::open(folder.path()).unwrap();
    assert_eq!(read_names(&fresh, &table, "host-1").len(), 10);
}

/// Readers open the dataset at various moments. They read it only after a later seal or compaction.
#[test]
fn readers_see_what_was_sealed_when_they_opened() {
    let folder = tempfile::tempdir().unwrap();
    let tables = [SampleRow::TABLE, FileRow::TABLE];
    let mut writer = Writer::open(folder.path()).unwrap();
    let stop = AtomicBool::new(false);
    let manifest = || fs::read(folder.path().join("manifest.json")).unwrap();
    let reads = || {
        let mut late_reads = 0;
        while !stop.load(Ordering::Relaxed) {
            let dataset = Dataset::open(folder.path()).unwrap();
            let sealed = dataset.rows(&tables[0]) as i64;
            if sealed == 0 {
                continue;
            }
            let text = manifest();
            while manifest() == text && !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            late_reads += 1;
            for table in &tables {
                let found = read_names(&dataset, table, "host-1");
                let expected = (1..=sealed).map(|sequence| Name::new(1, 0, sequence, 0));
                assert!(found.into_iter().eq(expected), "{sealed} seals");
            }
            assert_eq!(dataset.verify().problems, []);
        }
        late_reads
    };
    let (late_reads, steps) = std::thread::scope(|scope| {
        let reading = [scope.spawn(reads), scope.spawn(reads)];
        let mut steps = 0;
        for sequence in 1..=60 {
            for table in &tables {
                let rows = batch(table, &[Name::new(1, 0, sequence, 0)]);
                writer.append(table, rows).unwrap();
            }
            writer.seal().unwrap();
            steps += usize::from(writer.compact_step(&at_once(), later()).unwrap().is_some());
        }
        stop.store(true, Ordering::Relaxed);
        let late: i32 = reading.map(|r| r.join().unwrap()).into_iter().sum();
        (late, steps)
    });
    assert!(late_reads > 10 && steps > 10, "{late_reads} {steps}");
}
