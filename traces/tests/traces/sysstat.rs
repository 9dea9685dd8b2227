//! `gleaner import sysstat`: outputs of three versions for one machine, and the dataset made of them.

use crate::import::fills_what_it_names;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, TimestampMillisecondType};
use gleaner_dataset::Dataset;
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{GapRow, HostRow, SampleRow};
use gleaner_traces::import::sysstat::{SOURCE, Sysstat};
use gleaner_traces::import::{ImportError, ImportSummary, import};
use jiff::tz::TimeZone;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

const DATE: &str = "2026-11-21";
/// 2026-11-21 23:21:43 UTC, the first sample.
const FIRST_MS: i64 = 1_795_303_303_000;

fn printed(version: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/sysstat");
    fs::read_to_string(folder.join(format!("{version}.json"))).unwrap()
}

/// Writes files with these names and texts into a new folder.
fn files(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn take(
    source: &TempDir,
    dataset: &TempDir,
    zone: Option<&str>,
) -> Result<ImportSummary, ImportError> {
    let zone = zone.map(|name| TimeZone::get(name).unwrap());
    let mut importer = Sysstat::new(&[source.path().to_owned()], zone);
    import(&mut importer, &dataset.path().join("dataset"), |_| ())
}

fn refused(name: &str, text: &str) -> String {
    let dataset = tempfile::tempdir().unwrap();
    let error = take(&files(&[(name, text)]), &dataset, None).unwrap_err();
    assert!(!dataset.path().join("dataset").exists());
    error.to_string()
}

fn rows(dataset: &TempDir, table: &Table) -> RecordBatch {
    let dataset = Dataset::open(dataset.path().join("dataset")).unwrap();
    let mut batches = dataset.scan_date(table, DATE).map(Result::unwrap);
    let batch = batches.next().unwrap();
    assert!(batches.next().is_none());
    batch
}

fn integers(rows: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    let column = rows.column_by_name(column).unwrap();
    column.as_primitive::<Int64Type>().iter().collect()
}

fn times(rows: &RecordBatch) -> Vec<i64> {
    let column = rows.column_by_name("time").unwrap();
    let times = column.as_primitive::<TimestampMillisecondType>();
    times.values().iter().map(|ms| ms - FIRST_MS).collect()
}

#[test]
fn three_versions_of_one_machine_are_one_trace() {
    let texts = ["12.7.9", "11.5.7", "12.6.1"].map(printed);
    // The order of the files' names is not the order of their times.
    let source = files(&[
        ("a.json", &texts[0]),
        ("b.json", &texts[1]),
        ("c.json", &texts[2]),
        ("note.txt", "mine"),
    ]);
    let dataset = tempfile::tempdir().unwrap();
    let done = take(&source, &dataset, None).unwrap();
    assert_eq!((done.machines.len(), done.total.samples_count), (1, 9));
    assert!(!done.total.has_any(), "{:?}", done.total);
    assert_eq!(done.skipped_entries, ["note.txt"]);
    assert_eq!(done.machines[0].host_name, "desk");

    let samples = rows(&dataset, &SampleRow::TABLE);
    assert_eq!(
        times(&samples),
        [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|s| 1000 * s)
    );
    for column in ["physical_bytes", "mem_total_bytes"] {
        assert_eq!(integers(&samples, column), [Some(24_684_096 << 10); 9]);
    }
    let available = integers(&samples, "available_bytes");
    assert_eq!(available, integers(&samples, "mem_available_bytes"));
    assert_eq!(available[3], Some(22_619_316 << 10));
    let left = |i: usize| available[i].map(|bytes| bytes - (24_684_096 << 10) * 15 / 100);
    let harvestable = integers(&samples, "harvestable_bytes");
    assert!((harvestable[3].unwrap() - left(3).unwrap()).abs() <= 1);
    let shmem = integers(&samples, "shmem_bytes");
    assert_eq!(shmem[..6], [None; 6]);
    assert_eq!(shmem[6], Some(9064 << 10));
    let load = samples.column_by_name("load1").unwrap();
    assert_eq!(load.as_primitive::<Float64Type>().value(8), 7.59);
    // The restart has the same second as the first sample, and may have been before or after it. Only the
    // time after it has samples, and it counts as interrupted.
    let intervals = integers(&samples, "interval_ms");
    assert_eq!(intervals[..2], [None; 2]);
    assert_eq!(intervals[2..], [Some(1000); 7]);

    let gaps = rows(&dataset, &GapRow::TABLE);
    assert_eq!(times(&gaps), [1000]);
    assert_eq!(integers(&gaps, "from_time_ms"), [Some(FIRST_MS)]);
    let cause = gaps.column_by_name("cause").unwrap();
    assert_eq!(cause.as_string::<i32>().value(0), "boot");
    let hosts = rows(&dataset, &HostRow::TABLE);
    assert_eq!(integers(&hosts, "cpus_count"), [Some(2)]);

    // A second import adds nothing; an import of a single file adds only the inventory at that file's start.
    let again = take(&source, &dataset, None).unwrap();
    assert_eq!((again.new_rows_count, again.existing_rows_count), (0, 11));
    let alone = take(&files(&[("x.json", &texts[1])]), &dataset, None).unwrap();
    assert_eq!(alone.new_rows_count, 1);
}

#[test]
fn the_columns_that_sysstat_names_are_filled_and_no_others() {
    let texts = ["12.7.9", "12.6.1"].map(printed);
    let source = files(&[("a.json", &texts[0]), ("b.json", &texts[1])]);
    let dataset = tempfile::tempdir().unwrap();
    take(&source, &dataset, None).unwrap();
    fills_what_it_names(&SOURCE, "desk", &dataset.path().join("dataset"));
}

#[test]
fn a_file_cut_short_is_taken_as_far_as_it_goes_and_bad_entries_are_named() {
    let text = printed("11.5.7").replace("\"avail\": 22619316", "\"avail\": 0");
    let (cut, _) = text.rsplit_once("\"memory\"").unwrap();
    let source = files(&[("cut.json", cut)]);
    let dataset = tempfile::tempdir().unwrap();
    let done = take(&source, &dataset, None).unwrap();
    let repairs = &done.machines[0].repairs;
    let counts = (
        repairs.rows_count,
        repairs.samples_count,
        repairs.unreadable_count,
    );
    assert_eq!(counts, (3, 1, 2));
    let first = repairs.first_unreadable.as_deref().unwrap();
    assert!(
        first.starts_with("cut.json, entry 1: no memory is said to be available"),
        "{first}"
    );
}

#[test]
fn a_second_machine_in_a_file_is_not_skipped_in_silence() {
    let other = printed("12.6.1").replace("\"desk\"", "\"lamp\"");
    let both = printed("11.5.7") + &other;
    let dataset = tempfile::tempdir().unwrap();
    let done = take(&files(&[("both.json", &both)]), &dataset, None).unwrap();
    assert_eq!((done.machines.len(), done.total.samples_count), (1, 3));
    let first = done.machines[0].repairs.first_unreadable.as_deref();
    assert_eq!(
        first,
        Some("both.json: it holds \"lamp\" as well; a machine a file")
    );
}

#[test]
fn local_times_need_a_time_zone() {
    let text = printed("12.7.9").replace("\"tz\": \"UTC\"", "\"tz\": \"CET\"");
    let said = refused("a.json", &text);
    assert!(
        said.contains("a.json: its times are local") && said.contains("--time-zone"),
        "{said}"
    );
    let old = printed("11.5.7").replace("\"utc\": 1", "\"utc\": 0");
    assert!(refused("a.json", &old).contains("its times are local"));

    let dataset = tempfile::tempdir().unwrap();
    let source = files(&[("a.json", &text)]);
    take(&source, &dataset, Some("Europe/Paris")).unwrap();
    let samples = rows(&dataset, &SampleRow::TABLE);
    assert_eq!(times(&samples)[0], 6000 - 3_600_000);

    // 02:30 in the night in which that hour occurs twice: the time is ambiguous.
    let twice = text.replace(DATE, "2026-10-25").replace("23:21", "02:30");
    let error = take(
        &files(&[("a.json", &twice)]),
        &dataset,
        Some("Europe/Paris"),
    );
    let said = error.unwrap_err().to_string();
    assert!(
        said.contains("entry 1: it has no time, or one that local clocks show twice"),
        "{said}"
    );
}

#[test]
fn what_is_nothing_of_sysstats_is_refused_by_file_and_line() {
    for (name, text, part) in [
        (
            "a.json",
            "{\n  \"a\": ]",
            "a.json: expected value at line 2 column 8; print it with `sadf -j FILE -- -A`",
        ),
        ("a.json", "{}", "a.json: there is no host in it"),
        (
            "a.json",
            "[1]",
            "invalid type: sequence, expected what `sadf -j` prints at line 1 column 1",
        ),
        ("a.json", "", "EOF while parsing a value at line 1 column 0"),
        ("a.csv", "a,b", "there is no file of sysstat's in it"),
    ] {
        let said = refused(name, text);
        assert!(said.contains(part), "{said}");
    }
    let no_memory = printed("11.5.7")
        .replace("memfree", "free")
        .replace("avail", "free2");
    assert!(refused("a.json", &no_memory).contains("none of the 1 machines"));
}
