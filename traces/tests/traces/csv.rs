//! Plain CSV with its mapping: the example in the docs, units and formats, rejections, and arbitrary input.

use crate::import::{fills_no_others, read};
use gleaner_dataset::Dataset;
use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::rows::SampleRow;
use gleaner_traces::import::csv::{Csv, Mapping};
use gleaner_traces::import::{ImportError, ImportSummary, Importer, import};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with CSV files and a place for a dataset.
struct Place {
    folder: TempDir,
    files: Vec<PathBuf>,
}

impl Place {
    fn of(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |(name, text): &(&str, &[u8])| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let files = files.iter().map(write).collect();
        Self { folder, files }
    }

    fn dataset(&self) -> PathBuf {
        self.folder.path().join("dataset")
    }

    fn import(&self, mapping: &str) -> Result<ImportSummary, ImportError> {
        let mapping = parse(mapping)?;
        import(
            &mut Csv::new(&mapping, &self.files),
            &self.dataset(),
            |_| (),
        )
    }

    fn samples(&self, mapping: &str, machine: &str, columns: &[&str]) -> Vec<Vec<Option<i64>>> {
        let mapping = parse(mapping).unwrap();
        let csv = Csv::new(&mapping, &[]);
        read(
            &self.dataset(),
            &csv.source(),
            &SampleRow::TABLE,
            machine,
            columns,
        )
    }
}

fn parse(mapping: &str) -> Result<Mapping, ImportError> {
    Mapping::parse(Path::new("map.toml"), mapping)
}

/// The code block in docs/import.md that is marked with this language.
fn documented(language: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/import.md");
    let docs = fs::read_to_string(docs).unwrap();
    let (_, block) = docs.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

const KIB: i64 = 1024;

#[test]
fn the_example_of_the_docs() {
    let (file, mapping) = (documented("csv"), documented("toml"));
    let place = Place::of(&[("pc1.csv", file.as_bytes())]);
    let done = place.import(&mapping).unwrap();
    assert_eq!((done.total.rows_count, done.total.samples_count), (2, 2));
    assert_eq!(done.machines[0].host_name, "lab-pc1");
    assert_eq!(done.source, "Lab 2024");
    assert!(done.available_meaning.contains("free(1)"));
    let start = 1_709_294_400_000; // 12:00 UTC
    let samples = place.samples(
        &mapping,
        "pc1",
        &[
            "interval_ms",
            "physical_bytes",
            "available_bytes",
            "cached_bytes",
        ],
    );
    let physical = 16_384_000 * KIB;
    let expected = [
        vec![
            Some(start),
            None,
            Some(physical),
            Some(12_288_000 * KIB),
            Some(physical / 1000 * 255),
        ],
        vec![
            Some(start + 60_000),
            Some(60_000),
            Some(physical),
            Some(11_264_000 * KIB),
            None,
        ],
    ];
    assert_eq!(samples, expected);

    // The columns' origins, as the mapping describes them. The docs list none, since they depend on the mapping.
    let parsed = parse(&mapping).unwrap();
    let csv = Csv::new(&parsed, &place.files);
    let fills: Vec<_> = csv
        .source()
        .fills
        .iter()
        .map(|f| format!("{}.{}: {}", f.table, f.column, f.origin))
        .collect();
    for part in [
        "samples.physical_bytes: total kB [KiB]",
        "samples.available_bytes: physical_bytes less used kB [KiB]",
        "samples.cached_bytes: cache [%] of physical_bytes",
        "samples.load1: load",
        "hosts.host_name: the file's name",
        "hosts.kernel_release: kernel",
        "hosts.cpus_count: \"8\", by the mapping",
    ] {
        assert!(
            fills.iter().any(|f| f == part),
            "{part} is not in {fills:#?}"
        );
    }
    let first = csv.preview(1).unwrap();
    let row = first[0].row.as_ref().unwrap();
    assert_eq!((first.len(), first[0].line), (1, 2));
    assert_eq!(
        row.further,
        [
            ("cached_bytes", Value::Integer(physical / 1000 * 255)),
            ("load1", Value::Real(0.31)),
        ]
    );
    assert_eq!(
        row.facts,
        [("kernel_release", Value::Text("6.1.0-18".to_owned()))]
    );
    assert_eq!(row.reading.cpus_count, 8);

    // Every column that the mapping names is filled, and no other.
    fills_no_others(&csv.source(), "pc1", &place.dataset());
    let again = place.import(&mapping).unwrap();
    assert_eq!(
        (again.new_rows_count, again.existing_rows_count),
        (0, done.new_rows_count)
    );
}

const PLAIN: &str = r#"
name = "plain"
[time]
column = "t"
format = "unix_s"
[machine]
column = "host"
[samples.physical_bytes]
column = "total"
unit = "MiB"
[samples.available_bytes]
column = "free"
unit = "%"
of = "physical_bytes"
[samples.psi_memory_some_total_us]
column = "stalled"
unit = "ms"
"#;

#[test]
fn machines_in_a_column_over_several_files() {
    let one = b"host,t,total,free,stalled\nb,1700000000,100,50,1.5\n\"a, the first\",1700000000,200,25,\nb,1700000060,100,101,2\n,1700000000,1,1,1\n";
    let two = b"t,free,host,total,stalled\n1700000120,10,b,100,NA\n1700000120,10,b,0,3\n17e8,x,b,100,3\n1700000180,1,b,100\n1700000180,1,b,-1,4\n";
    let place = Place::of(&[("one.csv", one), ("two.csv", two)]);
    let done = place.import(PLAIN).unwrap();
    let mib = 1 << 20;
    let columns = ["available_bytes", "psi_memory_some_total_us"];
    let at = |s: i64| Some((1_700_000_000 + s) * 1000);
    assert_eq!(
        place.samples(PLAIN, "b", &columns),
        [
            vec![at(0), Some(50 * mib), Some(1500)],
            vec![at(120), Some(10 * mib), None],
        ]
    );
    assert_eq!(
        place.samples(PLAIN, "a, the first", &columns),
        [vec![at(0), Some(50 * mib), None]]
    );
    let b = &done.machines[1];
    assert_eq!((b.machine.as_str(), b.host_name.as_str()), ("b", "b"));
    assert_eq!(
        (
            b.repairs.rows_count,
            b.repairs.unreadable_count,
            b.repairs.contradicted_count
        ),
        (7, 4, 1)
    );
    let first = b.repairs.first_unreadable.as_deref().unwrap();
    let more = "one.csv line 4: free [%] of physical_bytes is more than there is";
    assert!(first.ends_with(more), "{first}");
    let lost = done.without_machine.first_unreadable.unwrap();
    assert!(
        lost.ends_with("one.csv line 5: host is \"\", which names no machine"),
        "{lost}"
    );
    assert_eq!(done.total.rows_count, 9);
}

#[test]
fn without_a_header_columns_have_numbers() {
    let mapping = r#"
        name = "numbers"
        header = false
        separator = "	"
        [time]
        column = 1
        format = "rfc3339"
        [samples.physical_bytes]
        value = 4
        unit = "GiB"
        [samples.available_bytes]
        column = 3
        unit = "pages"
    "#;
    let place = Place::of(&[(
        "m.tsv",
        b"\xef\xbb\xbf2024-03-01T12:00:00Z\tx\t1000\n2024-03-01T12:01:00Z\tx\n",
    )]);
    let done = place.import(mapping).unwrap();
    let samples = place.samples(mapping, "m", &["physical_bytes", "available_bytes"]);
    assert_eq!(
        samples,
        [[Some(1_709_294_400_000), Some(4 << 30), Some(4_096_000)]]
    );
    let first = done.machines[0].repairs.first_unreadable.as_deref();
    assert_eq!(first, Some("line 2: 2 columns, and no column 3"));
}

#[test]
fn a_decimal_comma_holds_for_counts_too() {
    let mapping = PLAIN.replace("name =", "decimal = \",\"\nseparator = \";\"\nname =");
    let mapping = format!("{mapping}[hosts.cpus_count]\ncolumn = \"cpus\"\n");
    let file = b"host;t;total;free;stalled;cpus\na;1700000000;100,5;50;1,5;2,0\na;1700000060;100,5;50;1,5;2.0\n";
    let place = Place::of(&[("one.csv", file)]);
    let parsed = parse(&mapping).unwrap();
    let rows = Csv::new(&parsed, &place.files).preview(2).unwrap();
    let row = rows[0].row.as_ref().unwrap();
    assert_eq!(row.reading.cpus_count, 2);
    assert_eq!(row.reading.physical_bytes, 201 << 19);
    let refused = rows[1].row.as_ref().unwrap_err().to_string();
    assert!(
        refused.contains("\"2.0\" is no number of CPUs"),
        "{refused}"
    );
}

#[test]
fn what_is_wrong_with_a_mapping_is_said_by_its_line() {
    let changed = |from: &str, to: &str| {
        assert!(PLAIN.contains(from));
        PLAIN.replacen(from, to, 1)
    };
    for (mapping, parts) in [
        (
            changed("column = \"t\"", "colum = \"t\""),
            ["line 4", "colum"],
        ),
        (changed("name", "speed = 1\nname"), ["line 2", "speed"]),
        (changed("name = \"plain\"", ""), ["map.toml", "name"]),
        (
            changed("name = \"plain\"", "name = \"\""),
            ["line 2", "host ids"],
        ),
        (changed("unix_s", "unix_us"), ["line 5", "unix_us"]),
        (
            changed("unix_s", "%Y-%m-%d %H:%M"),
            ["line 5", "name a zone"],
        ),
        (
            changed("\"unix_s\"", "\"%Y %H\"\nzone = \"Nowhere/At_all\""),
            ["line 6", "Nowhere"],
        ),
        (
            changed("[samples.physical_bytes]", "[samples.fysical_bytes]"),
            ["line 8", "no column fysical_bytes"],
        ),
        (
            changed(
                "[samples.psi_memory_some_total_us]",
                "[samples.interval_ms]",
            ),
            ["line 15", "interval_ms"],
        ),
        (
            changed(
                "[samples.psi_memory_some_total_us]",
                "[samples.is_complete_state]",
            ),
            ["line 15", "is_complete_state"],
        ),
        (
            changed("[samples.psi_memory_some_total_us]", "[samples.load1]"),
            ["line 15", "has no unit"],
        ),
        (
            changed("unit = \"MiB\"", "unit = \"Mib\""),
            ["line 8", "\"Mib\", not one of B, KB, KiB"],
        ),
        (changed("unit = \"MiB\"", ""), ["line 8", "unit is missing"]),
        (
            changed("of = \"physical_bytes\"", ""),
            ["line 11", "% of what"],
        ),
        (
            changed("of = \"physical_bytes\"", "of = \"swap_total_bytes\""),
            ["line 11", "not mapped"],
        ),
        (
            changed("column = \"total\"", "used = \"total\""),
            ["line 8", "only available_bytes"],
        ),
        (
            changed("column = \"total\"", "column = \"total\"\nvalue = 1"),
            ["line 8", "one of column, used and value"],
        ),
        (
            changed("column = \"total\"", "value = -1"),
            ["line 8", "value is -1"],
        ),
        (
            changed("name", "separator = \"\\n\"\nname"),
            ["line 2", "separate"],
        ),
        (
            changed("name", "decimal = \";\"\nname"),
            ["line 2", "decimal"],
        ),
        (
            format!("{PLAIN}[hosts.agent_version]\nvalue = \"1\""),
            ["line 18", "agent_version"],
        ),
        (
            format!("{PLAIN}[hosts.os_name]"),
            ["line 18", "either a column or a value"],
        ),
        (
            changed("name", "header = false\nname"),
            ["line 1", "no header, and so no column \"t\""],
        ),
        (
            changed("column = \"t\"", "column = 0"),
            ["line 1", "no column 0"],
        ),
        ("= 1".to_owned(), ["line 1", "docs/import.md"]),
    ] {
        let refused = parse(&mapping).unwrap_err().to_string();
        for part in parts {
            assert!(
                refused.contains(part),
                "{part} is not in: {refused}\n{mapping}"
            );
        }
    }
}

#[test]
fn hopeless_files_are_refused_by_line_and_nothing_is_written() {
    let good = b"host,t,total,free,stalled\nb,1700000000,100,50,1.5\n";
    for (second, part) in [
        (
            &b"host,t,total,stalled\n"[..],
            "two.csv line 1: there is no free in \"host,t,total,stalled\"; see the mapping in map.toml",
        ),
        (
            b"host,t,total,free,stal\xfe\n",
            "two.csv line 1: the line is not UTF-8",
        ),
    ] {
        let place = Place::of(&[("one.csv", good), ("two.csv", second)]);
        let refused = place.import(PLAIN).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
        assert!(!place.dataset().exists());
    }
    let place = Place::of(&[(
        "one.csv",
        b"host,t,total,free,stalled\nb,yesterday,100,50,1.5\n",
    )]);
    let refused = place.import(PLAIN).unwrap_err().to_string();
    assert!(
        refused.contains("none of the 1 machines in")
            && refused.contains("t: \"yesterday\" is no time"),
        "{refused}"
    );
    assert!(!place.dataset().exists());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// A documented mapping with arbitrary text inserted is read, or rejected with a line; it never causes a panic.
    #[test]
    fn no_mapping_panics(at in any::<prop::sample::Index>(), cut in 0..12usize, text in "[a-z\\[\\]=\"\\.%0-9\n ä]{0,12}") {
        let documented = documented("toml");
        let mut at = at.index(documented.len());
        while !documented.is_char_boundary(at) { at -= 1; }
        let mut end = (at + cut).min(documented.len());
        while !documented.is_char_boundary(end) { end += 1; }
        let changed = format!("{}{text}{}", &documented[..at], &documented[end..]);
        if let Err(refused) = parse(&changed) {
            let lines = changed.matches('\n').count() as u64 + 1;
            let is_within = matches!(refused, ImportError::Line { line, .. } if line <= lines);
            prop_assert!(is_within, "{refused}");
        }
    }

    /// Whatever the file contains, it is rejected or each of its rows is counted; the importer never panics.
    #[test]
    fn whatever_is_in_a_file_is_accounted_for(
        lines in proptest::collection::vec("(a|b|\"c|),(170000000[0-9]|.{0,4}),([0-9]{1,3}|1e400|.{0,3}),([0-9]{1,3}|-1|.{0,3}),[0-9\"]{0,2}", 1..30),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let text = [b"host,t,total,free,stalled\n", lines.join("\n").as_bytes(), &noise].concat();
        let place = Place::of(&[("x.csv", &text)]);
        match place.import(PLAIN) {
            Ok(done) => {
                let m = done.total;
                let left_out = m.unreadable_count + m.repeated_count + m.contradicted_count + m.merged_count + m.without_memory_count;
                prop_assert_eq!(m.rows_count, m.samples_count + left_out);
                prop_assert_eq!(Dataset::open(place.dataset()).unwrap().verify().problems, []);
            }
            Err(_) => prop_assert!(!place.dataset().exists()),
        }
    }
}
