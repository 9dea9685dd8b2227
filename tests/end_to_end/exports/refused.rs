//! Faults of an export are reported before anything is written. A correct export replaces an earlier one in
//! the same folder.

use super::{Fleet, REGION, text};
use crate::gleaner::{gleaner, told};
use std::fs;

#[test]
fn nonsense_is_refused_before_a_folder_is_touched() {
    let fleet = Fleet::new();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let refused = |more: &[&str], code: i32, word: &str| {
        let args = ["export", fleet.dataset(), "-o", text(&out)];
        let output = gleaner(&[&args[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {said}");
        assert!(said.contains(word), "{more:?}: {said}");
        assert!(!out.exists());
    };
    for to in ["availability", "fta", "simgrid"] {
        refused(&["--to", to], 2, "--region");
        let region = ["--to", to, "--region", REGION];
        let with = |more: &[&'static str]| [&region[..], more].concat();
        refused(&with(&["--table", "samples"]), 1, "--table");
        refused(&with(&["--headroom", "150"]), 1, "headroom");
        refused(&with(&["--load-limit", "0"]), 1, "load_limit");
        refused(&with(&["--minimum-period", "soon"]), 2, "soon");
        refused(&with(&["--idle-after", "300"]), 2, "like 90s");
        refused(&with(&["--host", "nobody"]), 1, "nobody");
    }
    refused(&["--to", "csv", "--region", REGION], 1, "--region");
    refused(&["--to", "parquet", "--scope", "idle"], 1, "--scope");
    refused(&["--to", "arrow", "--as", "csv"], 1, "--as");
    let fta = ["--to", "fta", "--region", REGION, "--as", "csv"];
    refused(&fta, 1, "--as");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("thesis.txt"), "years of work").unwrap();
    let args = ["export", fleet.dataset(), "-o", text(&out)];
    let output = gleaner(&[&args[..], &["--to", "fta", "--region", REGION]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn an_export_is_replaced_by_one_of_another_kind() {
    let fleet = Fleet::new();
    let folder = tempfile::tempdir().unwrap();
    let files = |to: &str, more: &[&str]| {
        let args = ["export", fleet.dataset(), "-o", text(folder.path())];
        let kind = ["--to", to, "--host", "synthetic-00001"];
        told(&[&args[..], &kind, more].concat());
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "gleaner-export.json")
            .collect();
        names.sort();
        names
    };
    let region = ["--region", REGION];
    let fta = [
        "component.tab",
        "event_trace.tab",
        "node.tab",
        "platform.tab",
    ];
    assert_eq!(files("fta", &region), fta);
    assert_eq!(files("simgrid", &region), ["platform.xml", "profiles"]);
    let profiles = fs::read_dir(folder.path().join("profiles")).unwrap();
    assert_eq!(profiles.count(), 2);
    assert_eq!(files("parquet", &["--table", "hosts"]), ["hosts"]);
    for format in ["csv", "arrow", "parquet"] {
        let expected = ["periods", "samples"].map(|name| format!("{name}.{format}"));
        let columns = [&region[..], &["--as", format]].concat();
        assert_eq!(files("availability", &columns), expected);
    }
    assert_eq!(files("fta", &region), fta);
}
