//! Retention: whole days are dropped, old samples are thinned, and the lowest values stay.

use crate::made_rows::{Name, START_MS, batch, read_names};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, TimestampMillisecondType};
use gleaner_dataset::{Dataset, Identity, Policy, RetentionStep, RowsBuilder, Writer, repair};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{
    ActivityRow, FileRow, GapRow, MissingValueRow, ProcessRow, SampleRow, table,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

const DAY_S: u64 = 86_400;
const MINUTE_MS: i64 = 60_000;
/// 2026-11-21 00:00:00 UTC.
const DAY_MS: i64 = START_MS + MINUTE_MS;

/// A time `days` days after the day of the rows.
fn days_later(days: u64) -> SystemTime {
    let day = SystemTime::UNIX_EPOCH + Duration::from_millis(DAY_MS as u64);
    day + Duration::from_secs(days * DAY_S + 3600)
}

fn all_steps(writer: &mut Writer, policy: &Policy, now: SystemTime) -> Vec<RetentionStep> {
    std::iter::from_fn(|| writer.retain_step(policy, now).unwrap()).collect()
}

#[test]
fn days_are_dropped_by_table_and_details_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(folder.path()).unwrap();
    // Two rows of each table: one at 23:59:20 on the 20th, one on the 21st.
    let names = [Name::new(1, 0, 1, 0), Name::new(1, 0, 9, 0)];
    for table in [SampleRow::TABLE, FileRow::TABLE] {
        writer.append(&table, batch(&table, &names)).unwrap();
    }
    writer.seal().unwrap();
    let open = || Dataset::open(folder.path()).unwrap();
    let before = open();
    let policy = Policy {
        keep_days: BTreeMap::from([("samples".to_owned(), 5)]),
        details_days: Some(2),
        ..Policy::default()
    };
    assert_eq!(
        all_steps(&mut writer, &Policy::default(), days_later(9999)),
        []
    );
    assert_eq!(all_steps(&mut writer, &policy, days_later(1)), []);
    let dates = |table: &Table| open().dates(table);

    let steps = all_steps(&mut writer, &policy, days_later(2));
    assert_eq!(steps.len(), 1);
    assert_eq!(
        (&*steps[0].date, steps[0].rows, steps[0].thinned),
        ("2026-11-20", 1, false)
    );
    assert_eq!(dates(&FileRow::TABLE), ["2026-11-21"]);
    assert_eq!(dates(&SampleRow::TABLE).len(), 2);
    assert_eq!(all_steps(&mut writer, &policy, days_later(5)).len(), 2);
    assert_eq!(dates(&FileRow::TABLE), Vec::<String>::new());
    assert_eq!(dates(&SampleRow::TABLE), ["2026-11-21"]);
    // A reader that opened the dataset before the steps can still read.
    assert_eq!(read_names(&before, &FileRow::TABLE, "host-1").len(), 2);
    assert_eq!(open().verify().problems, []);
}

#[test]
fn what_belongs_to_no_sample_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(folder.path()).unwrap();
    let names: Vec<Name> = (0..5).map(|key| Name::new(1, 0, 9, key)).collect();
    writer
        .append(&FileRow::TABLE, batch(&FileRow::TABLE, &names))
        .unwrap();
    writer.seal().unwrap();
    let policy = Policy {
        thin_after_days: Some(1),
        thin_to_ms: 15 * MINUTE_MS,
        ..Policy::default()
    };
    assert_eq!(all_steps(&mut writer, &policy, days_later(9)).len(), 1);
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(read_names(&dataset, &FileRow::TABLE, "host-1"), names);
}

/// Values of a host at one sample.
#[derive(Clone, Debug)]
struct Sight {
    available_bytes: i64,
    gap_before: bool,
    /// File, with its cached bytes; cached bytes of `None` mean that it is no longer in use.
    file: Option<(i64, Option<i64>)>,
    /// Idle time of a source of activity, if it changed.
    idle_ms: Option<i64>,
    absent: Option<(bool, i64)>,
}

fn sight() -> impl Strategy<Value = Sight> {
    let file = prop::option::of((0..4i64, prop::option::of(1..9i64)));
    let absent = prop::option::of((any::<bool>(), 0..3i64));
    let gap = prop::bool::weighted(0.1);
    (0..1000i64, gap, file, prop::option::of(0..99i64), absent).prop_map(
        |(available_bytes, gap_before, file, idle_ms, absent)| Sight {
            available_bytes,
            gap_before,
            file,
            idle_ms,
            absent,
        },
    )
}

/// Records a host's day with a sample per minute. Sequences count from 10; a gap takes one, too.
fn record(writer: &mut Writer, host_id: &str, day: &[Sight]) {
    let mut tables: BTreeMap<&str, RowsBuilder> = BTreeMap::new();
    fn add<R: Row>(tables: &mut BTreeMap<&str, RowsBuilder>, identity: Identity<'_>, row: R) {
        let rows = tables.entry(R::TABLE.name);
        let rows = rows.or_insert_with(|| RowsBuilder::new(&R::TABLE));
        rows.push(identity, row.to_values()).unwrap();
    }
    let (mut sequence, mut time_ms) = (10, DAY_MS);
    for (at, sight) in day.iter().enumerate() {
        let begins = at == 0 || sight.gap_before;
        let identity = |sequence, time_ms| Identity {
            host_id,
            database_id: "db",
            sequence,
            time_ms,
        };
        if begins && at > 0 {
            time_ms += 7 * MINUTE_MS;
            let gap = GapRow {
                cause: "sleep".into(),
                ..GapRow::default()
            };
            add(&mut tables, identity(sequence, time_ms), gap);
            sequence += 1;
        }
        let now = identity(sequence, time_ms);
        let sample = SampleRow {
            available_bytes: sight.available_bytes,
            mem_available_min_bytes: Some(sight.available_bytes - 5),
            interval_ms: (!begins).then_some(MINUTE_MS + 3),
            is_complete_state: begins,
            ..SampleRow::default()
        };
        add(&mut tables, now, sample);
        let process = ProcessRow {
            pid: sequence,
            ..ProcessRow::default()
        };
        add(&mut tables, now, process);
        if let Some((file_id, cached_bytes)) = sight.file {
            let file = FileRow {
                file_id,
                cached_bytes,
                open_processes_count: i64::from(cached_bytes.is_some()),
                opens_count: Some(1),
                ..FileRow::default()
            };
            add(&mut tables, now, file);
        }
        if let Some(idle_ms) = sight.idle_ms {
            let activity = ActivityRow {
                source: "input".into(),
                idle_ms: Some(idle_ms),
                state: "ok".into(),
                devices_count: 1,
            };
            add(&mut tables, now, activity);
        }
        if let Some((has_vanished, missing_count)) = sight.absent {
            let absence = MissingValueRow {
                item: "processes".into(),
                reason: if has_vanished { "vanished" } else { "denied" }.into(),
                detail: "x".into(),
                missing_count: missing_count + i64::from(has_vanished),
            };
            add(&mut tables, now, absence);
        }
        sequence += 1;
        time_ms += MINUTE_MS;
    }
    for (name, rows) in tables {
        writer
            .append(&table(name).unwrap(), rows.finish().unwrap())
            .unwrap();
    }
}

/// A host's rows, as texts: the sequence, the time, and then `columns`.
fn read(root: &Path, table: &Table, host: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let mut wanted = vec!["sequence", "time"];
    wanted.extend(columns);
    let rows = Dataset::open(root)
        .unwrap()
        .read_host(table, host, &wanted)
        .unwrap();
    (0..rows.num_rows())
        .map(|row| (0..wanted.len()).map(|at| text(&rows, at, row)).collect())
        .collect()
}

fn text(rows: &RecordBatch, column: usize, row: usize) -> String {
    let column = rows.column(column);
    if column.is_null(row) {
        String::new()
    } else if let Some(integers) = column.as_primitive_opt::<Int64Type>() {
        integers.value(row).to_string()
    } else if let Some(times) = column.as_primitive_opt::<TimestampMillisecondType>() {
        times.value(row).to_string()
    } else if let Some(flags) = column.as_boolean_opt() {
        flags.value(row).to_string()
    } else {
        column.as_string::<i32>().value(row).to_owned()
    }
}

fn number(text: &str) -> i64 {
    text.parse().unwrap()
}

/// Rows that are valid at each sample, as texts, by the sample's sequence; computed in the slow, obvious way.
fn standing(root: &Path, host: &str) -> BTreeMap<i64, BTreeSet<String>> {
    let samples = read(root, &SampleRow::TABLE, host, &["is_complete_state"]);
    let files = read(
        root,
        &FileRow::TABLE,
        host,
        &["file_id", "open_processes_count", "cached_bytes"],
    );
    let activity = read(root, &ActivityRow::TABLE, host, &["source", "idle_ms"]);
    let missing_values = read(
        root,
        &MissingValueRow::TABLE,
        host,
        &["item", "reason", "missing_count"],
    );
    let mut found = BTreeMap::new();
    let mut state: BTreeMap<String, String> = BTreeMap::new();
    for sample in &samples {
        if sample[2] == "true" {
            state.clear();
        }
        let now = |row: &&Vec<String>| row[0] == sample[0];
        state.retain(|key, _| !key.contains("vanished"));
        for row in files.iter().filter(now) {
            let is_over = row[3] == "0" && row[4].is_empty();
            let told = if is_over {
                String::new()
            } else {
                row[2..].join(" ")
            };
            state.insert(format!("file {}", row[2]), told);
        }
        for row in activity.iter().filter(now) {
            // The time of the last activity stays the same when a row is moved.
            let moment = number(&row[1]) - number(&row[3]);
            state.insert(row[2].clone(), format!("since {moment}"));
        }
        for row in missing_values.iter().filter(now) {
            let told = if row[4] == "0" {
                String::new()
            } else {
                row[4].clone()
            };
            state.insert(format!("{} {}", row[2], row[3]), told);
        }
        let told = state.iter().filter(|(_, told)| !told.is_empty());
        let told = told.map(|(key, told)| format!("{key}: {told}")).collect();
        found.insert(number(&sample[0]), told);
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_thinned_day_keeps_its_lows_its_time_and_what_stood(
        day in prop::collection::vec(sight(), 1..90),
        other in prop::collection::vec(sight(), 1..20),
        seals in 1..4usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut writer = Writer::open(root).unwrap();
        record(&mut writer, "a", &day);
        writer.seal().unwrap();
        for _ in 1..seals {
            record(&mut writer, "b", &other); // repeated, which changes nothing
            writer.seal().unwrap();
        }
        let columns = ["available_bytes", "interval_ms", "mem_available_min_bytes", "is_complete_state"];
        let samples = read(root, &SampleRow::TABLE, "a", &columns);
        let stood = standing(root, "a");
        let gaps = read(root, &GapRow::TABLE, "a", &["cause"]);

        let to_ms = 15 * MINUTE_MS;
        let policy = Policy { thin_after_days: Some(3), thin_to_ms: to_ms, ..Policy::default() };
        prop_assert_eq!(all_steps(&mut writer, &policy, days_later(3)), []);
        let steps = all_steps(&mut writer, &policy, days_later(4));
        prop_assert_eq!(steps.len(), 1);
        prop_assert!(steps[0].thinned);
        prop_assert_eq!(Dataset::open(root).unwrap().verify().problems, []);

        let kept = read(root, &SampleRow::TABLE, "a", &columns);
        let bucket = |row: &[String]| number(&row[1]).div_euclid(to_ms);
        let lows = |rows: &[Vec<String>]| {
            let mut lows: BTreeMap<i64, i64> = BTreeMap::new();
            for row in rows {
                let low = lows.entry(bucket(row)).or_insert(i64::MAX);
                *low = number(&row[2]).min(*low);
            }
            lows
        };
        prop_assert_eq!(lows(&kept), lows(&samples));
        let buckets: BTreeSet<i64> = samples.iter().map(|row| bucket(row)).collect();
        let runs = 1 + gaps.len();
        // Each run keeps its first and last sample, and one per bucket; a gap may divide a bucket between two runs.
        prop_assert!(kept.len() <= buckets.len() + 3 * runs, "{} of {}", kept.len(), samples.len());
        // A kept sample has the lowest value since the kept one before it, and the sum of the intervals is unchanged.
        let sum = |rows: &[Vec<String>]| -> i64 {
            rows.iter().filter(|row| !row[3].is_empty()).map(|row| number(&row[3])).sum()
        };
        prop_assert_eq!(sum(&kept), sum(&samples));
        let mut since = i64::MAX;
        let mut left = kept.iter();
        for row in &samples {
            since = since.min(number(&row[4]));
            let first = row[3].is_empty();
            if left.as_slice().first().is_some_and(|k| k[0] == row[0]) {
                let found = left.next().unwrap();
                prop_assert_eq!(number(&found[4]), since);
                prop_assert_eq!(found[3].is_empty(), first);
                since = i64::MAX;
            } else {
                prop_assert!(!first, "a run begins with a kept sample");
            }
        }
        prop_assert_eq!(left.len(), 0);
        prop_assert!(kept.iter().all(|row| row[5] == "true"));

        let sequences: BTreeSet<i64> = kept.iter().map(|row| number(&row[0])).collect();
        let still = standing(root, "a");
        prop_assert!(still.keys().eq(sequences.iter()));
        for (sequence, told) in &still {
            prop_assert_eq!(told, &stood[sequence]);
        }
        let opened = read(root, &FileRow::TABLE, "a", &["opens_count", "file_id"]);
        let opens = opened.iter().filter(|row| row[2] == "1").count();
        prop_assert!(opens <= kept.len(), "an open is told once");
        let processes = read(root, &ProcessRow::TABLE, "a", &["pid"]);
        let of: BTreeSet<i64> = processes.iter().map(|row| number(&row[2])).collect();
        prop_assert_eq!(of, sequences);
        prop_assert_eq!(read(root, &GapRow::TABLE, "a", &["cause"]), gaps);

        // A second thinning does nothing, even if only the files, and no manifest, state that they were thinned.
        prop_assert_eq!(all_steps(&mut writer, &policy, days_later(9)), []);
        drop(writer);
        fs::remove_file(root.join("manifest.json")).unwrap();
        repair(root).unwrap();
        let mut writer = Writer::open(root).unwrap();
        prop_assert_eq!(all_steps(&mut writer, &policy, days_later(9)), []);

        // If a sender repeats the day, its rows are thinned again, and the lowest values are the same.
        record(&mut writer, "a", &day);
        let added = writer.seal().unwrap().rows;
        let steps = all_steps(&mut writer, &policy, days_later(9)).len();
        prop_assert_eq!(steps, usize::from(added > 0));
        prop_assert_eq!(lows(&read(root, &SampleRow::TABLE, "a", &columns)), lows(&samples));
    }
}
