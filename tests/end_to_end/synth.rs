//! `gleaner synth`, and the analysis of its dataset.

use crate::gleaner::{complaint, gleaner, told};
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::Findings;
use gleaner_schemas::rows::TABLES;
use std::fs;
use std::path::Path;

fn synth<'a>(folder: &'a Path, args: &[&'a str]) -> Vec<&'a str> {
    [&["synth", "-o", folder.to_str().unwrap()], args].concat()
}

#[test]
fn a_synthetic_week_is_analysed_from_end_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("dataset");
    let args = ["--hosts", "3", "--days", "7", "--interval", "5m", "--json"];
    let summary: serde_json::Value = serde_json::from_str(&told(&synth(&dataset, &args))).unwrap();
    let opened = Dataset::open(&dataset).unwrap();
    for table in &TABLES {
        assert!(opened.rows(table) > 0, "nothing in {}", table.name);
    }
    let rows: u64 = TABLES.iter().map(|table| opened.rows(table)).sum();
    assert_eq!(summary["rows_count"].as_u64(), Some(rows));

    let analyze = ["analyze", dataset.to_str().unwrap()];
    let said = told(&analyze);
    assert!(
        said.contains("synthetic-00000") && said.contains("available"),
        "{said}"
    );
    let json = told(&[&analyze[..], &["--json"]].concat());
    let found: Findings = serde_json::from_str(&json).unwrap();
    assert_eq!(found.hosts.len(), 3);
    for host in &found.hosts {
        let idle_share = host.idle_share.unwrap();
        assert!((0.2..1.0).contains(&idle_share), "{host:?}");
        assert!(host.samples_count > 300, "{host:?}");
    }
    // Every gap that the analysis finds was also recorded, with one of the causes that an agent records.
    for gap in &found.gaps {
        let causes = ["sleep", "boot", "stopped"];
        assert!(causes.contains(&gap.cause.as_str()), "{gap:?}");
    }
    assert!(!found.gaps.is_empty() && !found.top_processes.is_empty());
    assert!(!found.top_files.is_empty() && !found.idle_periods.is_empty());
    // The two ways to count available memory differ a little, as on real hosts.
    for residual in &found.residuals {
        assert!(residual.max_abs_share < 0.005, "{residual:?}");
        assert!(residual.max_abs_share > 0.0, "{residual:?}");
    }
    assert_eq!(found.residuals.len(), 3);
}

#[test]
fn a_folder_in_use_is_left_alone_and_nonsense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let refused = gleaner(&synth(folder.path(), &["--hosts", "1", "--days", "1"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        complaint(&refused).contains("not empty"),
        "{}",
        complaint(&refused)
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    let new = folder.path().join("new");
    let none = gleaner(&synth(&new, &["--hosts", "0"]));
    assert_eq!(none.status.code(), Some(1));
    assert!(
        complaint(&none).contains("hosts is 0"),
        "{}",
        complaint(&none)
    );
    for wrong in [["--start", "2026-13-01"], ["--interval", "90"]] {
        let refused = gleaner(&synth(&new, &wrong));
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
    assert!(!new.exists());
}
