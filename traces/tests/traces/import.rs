//! Faulty imported traces: what becomes of every row, and which traces are rejected.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int64Type, TimestampMillisecondType};
use gleaner_dataset::{Dataset, DatasetError, Writer};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{DATASET_TABLES, HostRow, SampleRow};
use gleaner_traces::import::bitbrains::{self, FAST_STORAGE, RND};
use gleaner_traces::import::{ImportError, ImportSummary, Machine, Outcome, Source, import};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) const HEADER: &str = "Timestamp [ms];\tCPU cores;\tCPU capacity provisioned [MHZ];\tCPU usage [MHZ];\t\
    CPU usage [%];\tMemory capacity provisioned [KB];\tMemory usage [KB];\tDisk read throughput [KB/s];\t\
    Disk write throughput [KB/s];\tNetwork received throughput [KB/s];\tNetwork transmitted throughput [KB/s]";
/// 2013-07-15 23:50:00 UTC; two samples later it is the next day.
pub(crate) const START_S: i64 = 1_373_932_200;
const MINUTE_MS: i64 = 60_000;

/// A row in the published format, `minutes` after the start.
pub(crate) fn row(minutes: i64, cpus: i64, capacity_kb: &str, usage_kb: &str) -> String {
    let time_s = START_S + minutes * 60;
    format!(
        "{time_s};\t{cpus};\t2599.999613;\t17.33;\t0.66;\t{capacity_kb};\t{usage_kb};\t0.0;\t7.2;\t0.0;\t0.0"
    )
}

/// A folder of machines' files, and a folder for a dataset.
struct Place {
    folder: TempDir,
}

impl Place {
    fn of(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { folder };
        fs::create_dir(place.source()).unwrap();
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.source().join(name), text).unwrap();
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    fn dataset(&self) -> PathBuf {
        self.folder.path().join("dataset")
    }

    fn import(&self) -> Result<ImportSummary, ImportError> {
        self.import_as(RND)
    }

    fn import_as(&self, source: Source<'static>) -> Result<ImportSummary, ImportError> {
        let mut bitbrains = bitbrains::importer(&self.source(), source);
        import(&mut bitbrains, &self.dataset(), |_| ())
    }

    #[track_caller]
    fn imported(&self) -> ImportSummary {
        self.import().unwrap()
    }

    #[track_caller]
    fn refused(&self) -> String {
        let text = self.import().unwrap_err().to_string();
        assert!(!self.dataset().exists(), "a dataset was begun");
        text
    }
}

fn file(rows: &[String]) -> String {
    format!("{HEADER}\n{}\n", rows.join("\n"))
}

/// Rows of a host: the time in ms, then the values of `columns`.
pub(crate) fn read(
    dataset: &Path,
    source: &Source<'_>,
    table: &Table,
    machine: &str,
    columns: &[&str],
) -> Vec<Vec<Option<i64>>> {
    let dataset = Dataset::open(dataset).unwrap();
    let columns = [&["time"], columns].concat();
    let rows = dataset.read_host(table, &source.host_id(machine), &columns);
    let rows = rows.unwrap();
    let times = rows.column(0).as_primitive::<TimestampMillisecondType>();
    let value = |column: &dyn Array, at: usize| {
        let integers = column.as_primitive::<Int64Type>();
        integers.is_valid(at).then(|| integers.value(at))
    };
    (0..rows.num_rows())
        .map(|at| {
            let others = rows.columns()[1..].iter().map(|c| value(c, at));
            std::iter::once(Some(times.value(at)))
                .chain(others)
                .collect()
        })
        .collect()
}

/// Rows of a host: the time in minutes after the start, then the values of `columns`.
fn since_start(
    place: &Place,
    table: &Table,
    machine: &str,
    columns: &[&str],
) -> Vec<Vec<Option<i64>>> {
    let mut rows = read(&place.dataset(), &RND, table, machine, columns);
    for row in &mut rows {
        row[0] = row[0].map(|time_ms| (time_ms - START_S * 1000) / MINUTE_MS);
    }
    rows
}

fn samples(place: &Place, machine: &str) -> Vec<Vec<Option<i64>>> {
    let columns = ["interval_ms", "physical_bytes", "available_bytes"];
    since_start(place, &SampleRow::TABLE, machine, &columns)
}

fn machine<'a>(imported: &'a ImportSummary, name: &str) -> &'a Machine {
    let mut machines = imported.machines.iter();
    machines.find(|m| m.machine == name).unwrap()
}

/// Each row has one kind of fault; the expected samples were computed by hand.
#[test]
fn rough_rows_worked_by_hand() {
    let rows = [
        row(0, 1, "4096.0", "1024.0"),
        row(5, 1, "4096.0", "1024.5"),
        row(5, 1, "4096.0", "1024.5"), // repeats the row above
        row(10, 1, "4096.0", "100.0"), // contradicted by the next row
        row(10, 1, "4096.0", "3072.0"),
        row(20, 1, "4096.0", "0.0"), // out of order; two intervals late is no gap
        row(15, 2, "2.0E3", "2048.0"), // above physical, and another machine than before
        "1373934000;\t1;\t2599.9".to_owned(), // cut off
        row(25, 0, "0.0", "0.0"),    // machine off
        row(30, 0, "0.0", "0.0"),
        String::new(),
        row(35, 0, "4096.0", "4096.0"), // 15 minutes later: a gap; CPUs unknown
        row(40, 1, "NaN", "1.0"),
        row(40, 1, "4096.0", "-1.0"),
        row(45, 1, "4096.0", "4095.0"),
    ];
    let place = Place::of(&[("7.csv", &file(&rows).replace('\n', "\r\n"))]);
    let imported = place.imported();
    let kib = |n: i64| Some(n * 1024);
    let (five, ten) = (Some(5 * MINUTE_MS), Some(10 * MINUTE_MS));
    assert_eq!(
        samples(&place, "7"),
        [
            vec![Some(0), None, kib(4096), kib(3072)],
            vec![Some(5), five, kib(4096), Some(3071 * 1024 + 512)],
            vec![Some(10), five, kib(4096), kib(1024)],
            vec![Some(15), five, kib(2000), Some(0)],
            vec![Some(20), five, kib(4096), kib(4096)],
            vec![Some(35), None, kib(4096), Some(0)],
            vec![Some(45), ten, kib(4096), kib(1)],
        ]
    );
    // Inventories are at the first sample, where a new day begins (10 minutes later), and at each change.
    let hosts = since_start(
        &place,
        &HostRow::TABLE,
        "7",
        &["physical_bytes", "cpus_count"],
    );
    assert_eq!(
        hosts,
        [
            vec![Some(0), kib(4096), Some(1)],
            vec![Some(10), kib(4096), Some(1)],
            vec![Some(15), kib(2000), Some(2)],
            vec![Some(20), kib(4096), Some(1)],
        ]
    );
    let m = &machine(&imported, "7").repairs;
    assert_eq!((m.rows_count, m.samples_count), (14, 7));
    assert_eq!((m.repeated_count, m.contradicted_count), (1, 1));
    assert_eq!((m.without_memory_count, m.unreadable_count), (2, 3));
    let first = m.first_unreadable.as_deref();
    assert_eq!(first, Some("line 9: 3 columns instead of 11"));
    assert_eq!((m.out_of_order_count, m.above_physical_count), (1, 1));
    assert_eq!((m.zero_use_count, m.times_in_seconds_count), (1, 11));
    assert_eq!((m.changes_count, m.gaps_count), (2, 1));
    assert_eq!(imported.new_rows_count, 7 + 4);
}

#[test]
fn seconds_and_milliseconds_are_told_apart() {
    let rows: Vec<String> = (0..4).map(|i| row(5 * i, 1, "4096.0", "1.0")).collect();
    let text = file(&rows);
    let in_ms = text.replace(";\t1;\t", "000;\t1;\t");
    assert!(in_ms.contains("\n1373932200000;"));
    let place = Place::of(&[("1.csv", &text), ("2.csv", &in_ms)]);
    let imported = place.imported();
    assert_eq!(samples(&place, "1"), samples(&place, "2"));
    assert_eq!(samples(&place, "1").len(), 4);
    let in_seconds = |name| machine(&imported, name).repairs.times_in_seconds_count;
    assert_eq!((in_seconds("1"), in_seconds("2")), (4, 0));
}

#[test]
fn machines_without_samples_are_dropped_and_named() {
    let place = Place::of(&[
        ("10.csv", ""),
        ("9.csv", &file(&[row(0, 1, "4096.0", "1.0")])),
        ("2.csv", &format!("\u{feff}{HEADER}")),
        ("x.csv", &file(&[row(0, 0, "0.0", "0.0"), "?".to_owned()])),
        ("y.csv", &file(&["no;row".to_owned()])),
        ("README", "of the archive"),
    ]);
    let imported = place.imported();
    let outcomes: Vec<_> = imported
        .machines
        .iter()
        .map(|m| (m.machine.as_str(), m.outcome))
        .collect();
    assert_eq!(
        outcomes,
        [
            ("2", Outcome::Empty),
            ("9", Outcome::Imported),
            ("10", Outcome::Empty),
            ("x", Outcome::WithoutMemory),
            ("y", Outcome::Unreadable),
        ]
    );
    assert_eq!(imported.skipped_entries, ["README"]);
    assert_eq!(
        machine(&imported, "y").reason(),
        "dropped: no row could be read (line 2: 2 columns instead of 11)"
    );
    let hosts = Dataset::open(place.dataset()).unwrap().hosts().unwrap();
    assert_eq!(hosts, [RND.host_id("9")]);
}

#[test]
fn hopeless_input_is_refused_and_nothing_is_written() {
    let good = file(&[row(0, 1, "4096.0", "1.0")]);
    let place = Place::of(&[("notes.txt", "")]);
    let text = place.refused();
    assert!(
        text.contains("no .csv file in") && text.contains("source"),
        "{text}"
    );

    place.write("1.csv", &good);
    place.write(
        "2.csv",
        &good.replace("Memory usage [KB]", "Memory usage [MB]"),
    );
    let text = place.refused();
    for part in [
        "2.csv line 1",
        "no column Memory usage [KB]",
        "expected",
        "CPU cores",
    ] {
        assert!(text.contains(part), "{text}");
    }
    place.write("2.csv", "1372629804;1;2599.99;4194304.0;131419.7\n");
    let text = place.refused();
    assert!(
        text.contains("2.csv line 1") && text.contains("is no header"),
        "{text}"
    );
    fs::write(place.source().join("2.csv"), [0xff, 0xfe, b'T']).unwrap();
    assert!(
        place
            .refused()
            .contains("2.csv line 1: the line is not UTF-8")
    );

    place.write("1.csv", "");
    place.write("2.csv", &file(&[]));
    let text = place.refused();
    assert!(
        text.contains("none of the 2 machines") && text.contains("no rows"),
        "{text}"
    );
    fs::remove_dir_all(place.source()).unwrap();
    assert!(place.refused().contains("cannot list folder"));
}

/// The rows already in the dataset stay when the same rows come in another order, the machine continues
/// later, or another trace has the same numbers.
#[test]
fn what_was_imported_before_is_left_as_it_is() {
    let mut rows: Vec<String> = (0..400)
        .map(|i| row(5 * i, 1 + i / 200, "4096.0", &format!("{i}.5")))
        .collect();
    let place = Place::of(&[("1.csv", &file(&rows))]);
    let first = place.imported();
    // Four inventories: at the first sample, after each of two midnights, and where the number of CPUs changes.
    assert_eq!(first.new_rows_count, 400 + 4);
    let before = samples(&place, "1");
    rows.reverse();
    place.write("1.csv", &file(&rows));
    let again = place.imported();
    assert_eq!((again.new_rows_count, again.existing_rows_count), (0, 404));
    assert_eq!(again.total.out_of_order_count, 399);
    assert_eq!(samples(&place, "1"), before);

    // The same machine continues a month later.
    place.write("1.csv", &file(&[row(43_200, 2, "8192.0", "1.0")]));
    assert_eq!(place.imported().new_rows_count, 2);
    assert_eq!(samples(&place, "1").len(), 401);

    let fast = place.import_as(FAST_STORAGE);
    assert_eq!(fast.unwrap().new_rows_count, 2);
    let dataset = Dataset::open(place.dataset()).unwrap();
    assert_eq!(dataset.hosts().unwrap().len(), 2);
    assert_eq!(dataset.verify().problems, []);
}

#[test]
fn a_dataset_of_hosts_with_agents_is_added_to_and_one_in_use_is_not() {
    let place = Place::of(&[("1.csv", &file(&[row(0, 1, "4096.0", "1.0")]))]);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/golden/v3");
    copy(&golden, &place.dataset());
    let rows = |table: &Table| Dataset::open(place.dataset()).unwrap().rows(table);
    let before = DATASET_TABLES.map(|t| rows(&t));
    {
        let _writer = Writer::open(place.dataset()).unwrap();
        let refused = place.import().unwrap_err();
        let is_locked = matches!(refused, ImportError::Dataset(DatasetError::Locked { .. }));
        assert!(is_locked, "{refused}");
    }
    place.imported();
    let is_filled = |t: &Table| [SampleRow::TABLE.name, HostRow::TABLE.name].contains(&t.name);
    let expected: Vec<u64> = DATASET_TABLES
        .iter()
        .zip(before)
        .map(|(t, rows)| rows + u64::from(is_filled(t)))
        .collect();
    assert_eq!(DATASET_TABLES.map(|t| rows(&t)).to_vec(), expected);
    let dataset = Dataset::open(place.dataset()).unwrap();
    assert_eq!(dataset.verify().problems, []);
    assert!(dataset.hosts().unwrap().contains(&"host-a".to_owned()));
}

#[test]
fn the_columns_that_a_source_names_are_filled_and_no_others() {
    let rows = [row(0, 1, "4096.0", "1.0"), row(5, 1, "4096.0", "1.0")];
    let place = Place::of(&[("1.csv", &file(&rows))]);
    place.imported();
    fills_what_it_names(&RND, "1", &place.dataset());
}

/// Asserts that the dataset has exactly the columns that the source and the docs name.
#[track_caller]
pub(crate) fn fills_what_it_names(source: &Source<'_>, machine: &str, dataset: &Path) {
    fills_no_others(source, machine, dataset);
    the_docs_name_what_it_fills(source);
}

#[track_caller]
pub(crate) fn the_docs_name_what_it_fills(source: &Source<'_>) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/import.md");
    let docs = fs::read_to_string(docs).unwrap();
    for f in source.fills {
        let line = format!("| `{}.{}` | {} |", f.table, f.column, f.origin);
        assert!(docs.contains(&line), "docs/import.md lacks {line}");
    }
}

/// Asserts that the dataset has exactly the columns that the source names; the docs are not compared.
#[track_caller]
pub(crate) fn fills_no_others(source: &Source<'_>, machine: &str, dataset: &Path) {
    let dataset = Dataset::open(dataset).unwrap();
    let mut filled = Vec::new();
    for table in DATASET_TABLES {
        let names: Vec<&str> = table.columns.iter().map(|c| c.name).collect();
        let rows = dataset.read_host(&table, &source.host_id(machine), &names);
        let rows = rows.unwrap();
        for (name, values) in names.iter().zip(rows.columns()) {
            if values.null_count() < rows.num_rows() {
                filled.push((table.name, *name));
            }
        }
    }
    filled.sort_unstable();
    let mut said: Vec<_> = source.fills.iter().map(|f| (f.table, f.column)).collect();
    said.sort_unstable();
    assert_eq!(filled, said);
    for column in source.columns {
        assert!(said.contains(&("samples", column)), "{column}");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

/// A trace that is downloaded later may have other values. These count as contradictions, not as repetitions.
#[test]
fn what_contradicts_an_earlier_import_is_told_apart_and_left_out() {
    let rows: Vec<String> = (0..10)
        .map(|i| row(5 * i, 4, "4194304.0", "131419.7"))
        .collect();
    let place = Place::of(&[("1.csv", &file(&rows))]);
    let first = place.imported();
    assert_eq!(first.contradicting_rows_count, 0);
    let again = place.imported();
    assert_eq!(
        (again.new_rows_count, again.contradicting_rows_count),
        (0, 0)
    );

    // If only part of the file is imported, the first sample has no interval, and there is a new inventory at
    // its time. That is no contradiction.
    place.write("1.csv", &file(&rows[4..]));
    let part = place.imported();
    assert_eq!((part.new_rows_count, part.contradicting_rows_count), (1, 0));

    let mut other = rows;
    other[3] = row(15, 4, "4194304.0", "500000.0");
    other[7] = row(35, 4, "4194304.0", "600000.0");
    place.write("1.csv", &file(&other));
    let later = place.imported();
    assert_eq!(
        (later.new_rows_count, later.contradicting_rows_count),
        (0, 2)
    );
    assert_eq!(later.existing_rows_count, first.new_rows_count);
}

/// Several seals write several files per day, and each reader of a host would have to open all of them: an
/// import therefore merges them in the end.
#[test]
fn an_import_ends_with_one_file_a_table_and_day() {
    let file_of = |machine: i64| {
        let rows: Vec<String> = (0..10)
            .map(|i| row(5 * i, 4, "4194304.0", &format!("{}.0", 1000 * machine + i)))
            .collect();
        file(&rows)
    };
    let place = Place::of(&[]);
    for machine in 1..=4 {
        // Each import seals for itself, just as one import does with more rows than fit in one seal.
        place.write(&format!("{machine}.csv"), &file_of(machine));
        place.imported();
    }
    let dataset = Dataset::open(place.dataset()).unwrap();
    let mut days: Vec<(&str, &str)> = Vec::new();
    for entry in &dataset.manifest().files {
        days.push((&entry.table, &entry.date));
    }
    let files = days.len();
    days.dedup();
    assert_eq!((files, days.len()), (4, 4)); // two tables, two days
    assert_eq!(dataset.hosts().unwrap().len(), 4);
    assert_eq!(dataset.rows(&SampleRow::TABLE), 40);
    assert_eq!(dataset.verify().problems, []);
}

#[test]
fn what_a_source_means_travels_with_the_dataset() {
    let rows: Vec<String> = (0..3)
        .map(|i| row(5 * i, 4, "4194304.0", "1000.0"))
        .collect();
    let place = Place::of(&[("1.csv", &file(&rows))]);
    place.imported();
    place.imported();
    let dataset = Dataset::open(place.dataset()).unwrap();
    let [source] = &dataset.manifest().sources[..] else {
        panic!("{:?}", dataset.manifest().sources);
    };
    assert_eq!(
        (source.name.as_str(), source.available_meaning.as_str()),
        (RND.name, RND.available_meaning)
    );
    let columns = source.columns.iter();
    let columns: Vec<_> = columns
        .map(|c| (&*c.table, &*c.column, &*c.origin))
        .collect();
    let fills: Vec<_> = RND
        .fills
        .iter()
        .map(|f| (f.table, f.column, f.origin))
        .collect();
    assert_eq!(columns, fills);
    // A second source is added. The manifest then describes both.
    place.import_as(FAST_STORAGE).unwrap();
    drop(Writer::open(place.dataset()).unwrap());
    let names = Dataset::open(place.dataset()).unwrap();
    let names: Vec<_> = names
        .manifest()
        .sources
        .iter()
        .map(|s| s.name.clone())
        .collect();
    assert_eq!(names, [RND.name, FAST_STORAGE.name]);
}
