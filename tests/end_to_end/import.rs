//! `gleaner import bitbrains` on machines of the archive, as published (tests/data/bitbrains).

use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{HostRow, SampleRow};
use gleaner_tests::{program, repository};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The machines' files, unpacked.
fn archive() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let packed = repository().join("tests/data/bitbrains");
    for entry in fs::read_dir(packed).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if let Some(name) = name.strip_suffix(".zst") {
            let bytes = zstd::decode_all(fs::File::open(entry.path()).unwrap()).unwrap();
            fs::write(folder.path().join(name), bytes).unwrap();
        }
    }
    folder
}

fn import(folder: &Path, dataset: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(program("gleaner").unwrap());
    command.args(["import", "bitbrains"]).arg(folder);
    command.arg("-o").arg(dataset).args(more);
    command.stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn told(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn machines_of_the_archive_with_all_their_roughness() {
    let (source, folder) = (archive(), tempfile::tempdir().unwrap());
    let dataset = folder.path().join("dataset");
    let json = told(&import(source.path(), &dataset, &["--json"]));
    let told_json: serde_json::Value = serde_json::from_str(&json).unwrap();
    // Counted in the files by other means.
    let counted: Vec<_> = told_json["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| {
            let count = |name: &str| m[name].as_u64().unwrap();
            let machine = m["machine"].as_str().unwrap().to_owned();
            let lost = [
                "repeated_count",
                "contradicted_count",
                "without_memory_count",
            ];
            let lost = lost.map(count);
            (
                machine,
                count("rows_count"),
                count("samples_count"),
                lost,
                count("overused_count"),
            )
        })
        .collect();
    let expected = [
        ("20", 2218, 432, [724, 2, 1060], 0),
        ("24", 775, 775, [0, 0, 0], 0),
        ("149", 549, 384, [0, 0, 165], 3),
        ("166", 119, 119, [0, 0, 0], 4),
        ("203", 372, 362, [0, 0, 10], 2),
        ("286", 785, 785, [0, 0, 0], 0),
        ("440", 775, 775, [0, 0, 0], 0),
    ];
    let expected =
        expected.map(|(m, rows, samples, lost, over)| (m.to_owned(), rows, samples, lost, over));
    assert_eq!(counted, expected);
    assert_eq!(told_json["source"], "GWA-T-12 Bitbrains rnd");

    let opened = Dataset::open(&dataset).unwrap();
    assert_eq!(opened.verify().problems, []);
    assert_eq!(opened.hosts().unwrap().len(), 7);
    assert_eq!(opened.hosts_named("bitbrains-rnd-440").unwrap().len(), 1);
    let rows = opened.rows(&SampleRow::TABLE) + opened.rows(&HostRow::TABLE);
    assert_eq!(told_json["new_rows_count"], rows);

    // Again, for people: nothing is new.
    let text = told(&import(source.path(), &dataset, &[]));
    for part in [
        "bitbrains-rnd-20",
        "all 7",
        "overused",
        "read as seconds",
        &format!(
            "\n0 rows of 7 machines in 0 files (0 B) new in {}; {rows} were there already",
            dataset.display()
        ),
        "an upper bound",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    // A machine with nothing to report has no row.
    assert!(!text.contains("bitbrains-rnd-440"), "{text}");
}

#[test]
fn what_is_no_trace_is_refused_by_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let (source, dataset) = (folder.path().join("source"), folder.path().join("dataset"));
    fs::create_dir(&source).unwrap();
    let refused = |part: &str| {
        let output = import(&source, &dataset, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(part), "{said}");
        assert!(!dataset.exists());
    };
    refused("no .csv file in");
    fs::write(source.join("1.csv"), "a,b,c\n1,2,3\n").unwrap();
    refused("1.csv line 1: \"a,b,c\" is no header; expected a header of columns with ';' between");
    let wrong = import(&source, &dataset, &["--trace", "materna"]);
    assert_eq!(wrong.status.code(), Some(2));
}
