//! `gleaner fidelity` prints every figure of the paper beside ours. One figure is computed again with the
//! commands on which it is based.

mod remote_access;

use crate::gleaner::{complaint, gleaner, told};
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Notion, Scope};
use gleaner_tests::repository;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Mean memory, in MiB, that is available on all hosts of cluster B together by the paper's notion. It is
/// computed from a synthetic dataset and its findings.
fn available_on_b_mib(seed: &str, folder: &Path) -> f64 {
    let dataset = folder.join(format!("b-{seed}"));
    let output = dataset.to_str().unwrap();
    let preset = ["--preset", "acharya-setia-b", "--days", "1"];
    told(&[&["synth", "-o", output, "--seed", seed][..], &preset].concat());
    assert_eq!(Dataset::open(&dataset).unwrap().hosts().unwrap().len(), 23);
    let found = told(&["analyze", output, "--json", "--measure", "notions"]);
    let found: Findings = serde_json::from_str(&found).unwrap();
    let of = |n: &&gleaner_schemas::findings::NotionSizes| {
        (n.size_class.as_str(), n.scope, n.notion) == ("all", Scope::All, Notion::Paper)
    };
    found.notions.iter().find(of).unwrap().mean_bytes * 23.0 / f64::from(1 << 20)
}

#[test]
fn every_figure_is_printed_beside_ours() {
    let folder = tempfile::tempdir().unwrap();
    let (work, page) = (folder.path().join("work"), folder.path().join("page.md"));
    fs::create_dir(&work).unwrap();
    let seeds = [
        "fidelity",
        "--json",
        "--seeds",
        "2",
        "--first-seed",
        "5",
        "--days",
        "1",
    ];
    let files = [
        "--work",
        work.to_str().unwrap(),
        "--markdown",
        page.to_str().unwrap(),
    ];
    let records: Value = serde_json::from_str(&told(&[&seeds[..], &files].concat())).unwrap();
    let records = records.as_array().unwrap();
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "nothing is left");

    // Each figure that the paper published occurs once among the records.
    let published = repository().join("traces/published/acharya_setia.csv");
    let published = fs::read_to_string(published).unwrap();
    let place =
        |r: &Value| ["item", "row", "column"].map(|key| r[key].as_str().unwrap().to_owned());
    let places: BTreeSet<[String; 3]> = records.iter().map(place).collect();
    assert_eq!(places.len(), published.lines().skip(1).count());
    assert_eq!(records.len(), places.len());
    let keys = "source item row column unit paper low high ours spread seeds_low seeds_high seeds_count relative_error kind \
                possible holds note";
    let keys: BTreeSet<&str> = keys.split_whitespace().collect();
    for r in records {
        let found: BTreeSet<&str> = r.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(found, keys);
        assert_eq!(r["source"], "Acharya & Setia 1999");
        assert!(r["paper"].is_f64());
        let (has_ours, note) = (r["ours"].is_f64(), r["note"].as_str().unwrap());
        assert!(has_ours || !note.is_empty(), "{r}");
        assert_eq!(has_ours, r["holds"].is_boolean());
    }
    let kinds: BTreeSet<&str> = records
        .iter()
        .map(|r| r["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        BTreeSet::from(["calibrated", "derived", "predicted"])
    );

    let hosts = records
        .iter()
        .filter(|r| r["item"] == "Table 1" && r["kind"] == "calibrated");
    for r in hosts {
        assert_eq!(
            r["ours"], r["paper"],
            "the presets have the paper's hosts: {r}"
        );
    }

    // One cell is computed again, from two synthetic clusters: mean, deviation, interval and error.
    let both = ["5", "6"].map(|seed| available_on_b_mib(seed, folder.path()));
    let expected = ["Figure 6", "cluster B", "available, all hosts"].map(str::to_owned);
    let cell = records.iter().find(|r| place(r) == expected).unwrap();
    let is = |key: &str, value: f64| {
        let found = cell[key].as_f64().unwrap();
        assert!(
            (found - value).abs() <= 1e-9 * value.abs(),
            "{key}: {found}, {value}"
        );
    };
    let (mean, paper) = (
        f64::midpoint(both[0], both[1]),
        cell["paper"].as_f64().unwrap(),
    );
    is("ours", mean);
    let apart = (both[0] - both[1]).abs();
    assert!(apart > 0.0, "another seed is another cluster");
    is("spread", apart / 2f64.sqrt());
    is("seeds_low", both[0].min(both[1]) + 0.025 * apart);
    is("seeds_high", both[0].max(both[1]) - 0.025 * apart);
    is("relative_error", (mean - paper) / paper);

    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(
        "<!-- Written by `gleaner fidelity --seeds 2 --first-seed 5 --days 1 --markdown"
    ));
    for item in ["Table 1", "Table 4", "Figure 7", "Text"] {
        assert!(page.contains(&format!("## {item}\n")), "{item}");
    }
}

#[test]
fn what_takes_a_simulation_is_simulated_where_that_is_said() {
    let asked = ["fidelity", "--item", "Figure 10", "--days", "1"];
    let short = [
        "--first-seed",
        "5",
        "--simulate=1",
        "--simulated-hours",
        "1",
    ];
    let said = told(&[&asked[..], &short].concat());
    assert!(said.contains("db2, a day between runs") && said.contains("much less than dmine"));
    assert!(said.contains("what the text says is so in every seed") && !said.contains("Table"));
    let records = told(&[&asked[..], &short, &["--json"]].concat());
    let records: Value = serde_json::from_str(&records).unwrap();
    assert_eq!(records.as_array().unwrap().len(), 1);
    let lost = &records[0];
    assert_eq!(
        (&lost["row"], &lost["seeds_count"]),
        (&"dmine".into(), &1.into())
    );
    assert!(
        lost["ours"].is_f64() && lost["ours"] == lost["seeds_low"] && lost["kind"] == "predicted"
    );

    let refused = gleaner(&asked);
    assert_eq!(refused.status.code(), Some(1));
    let said = complaint(&refused);
    assert!(
        said.contains("Figure 10 takes a simulation: add --simulate"),
        "{said}"
    );
}

#[test]
fn what_the_paper_does_not_have_is_refused_before_anything_is_made() {
    let refused = gleaner(&["fidelity", "--item", "Table 7"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = complaint(&refused);
    assert!(
        said.contains("Table 7") && said.contains("Table 6"),
        "{said}"
    );
    let nowhere = [
        "fidelity",
        "--seeds",
        "1",
        "--days",
        "1",
        "--work",
        "/nonexistent",
    ];
    let refused = gleaner(&nowhere);
    assert_eq!(refused.status.code(), Some(1));
    assert!(complaint(&refused).contains("/nonexistent"));
}

#[test]
fn the_queueing_model_is_printed_beside_its_paper() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    let asked = ["fidelity", "--paper", "felten-zahorjan"];
    let files = ["--json", "--markdown", page.to_str().unwrap()];
    let records: Value = serde_json::from_str(&told(&[&asked[..], &files].concat())).unwrap();
    let records = records.as_array().unwrap();
    let published = repository().join("traces/published/felten_zahorjan.csv");
    let published = fs::read_to_string(published).unwrap();
    assert_eq!(records.len(), published.lines().skip(1).count());
    let keys =
        "source item row column unit paper low high ours relative_error kind possible holds note";
    let keys: BTreeSet<&str> = keys.split_whitespace().collect();
    for r in records {
        let found: BTreeSet<&str> = r.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(found, keys);
        assert_eq!(r["source"], "Felten & Zahorjan 1991");
        assert!(r["ours"].is_f64(), "{r}");
        assert_eq!(r["holds"].is_null(), r["kind"] == "not_comparable", "{r}");
    }
    // The words about the balance of page-ins and page-outs contradict Table 1, and the use of DECstations' Ethernet is
    // not low.
    let missed = records.iter().filter(|r| r["holds"] == false);
    let missed: Vec<(&str, &str)> = missed
        .map(|r| (r["row"].as_str().unwrap(), r["column"].as_str().unwrap()))
        .collect();
    let expected = [
        (
            "11 page-ins and 11 page-outs",
            "throughput gained over 2 and 20, as printed",
        ),
        (
            "DECstation 5000 on Ethernet, 40 clients and servers",
            "network use",
        ),
    ];
    assert_eq!(missed, expected);
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("### Contradictions, by each reading\n") && page.contains("### Figure 3\n")
    );

    let said = told(&asked);
    assert!(
        said.contains("r_in 20, r_out 2 (fits the text)") && said.contains("12 of 12"),
        "{said}"
    );
    let one = told(&[&asked[..], &["--item", "Text 4.1"]].concat());
    assert!(
        one.contains("not comparable") && !one.contains("Table 1\n"),
        "{one}"
    );
}

#[test]
fn a_paper_without_clusters_takes_no_option_of_clusters() {
    let asked = ["fidelity", "--paper", "felten-zahorjan"];
    for (option, value) in [
        ("--seeds", "3"),
        ("--simulate=1", "--json"),
        ("--work", "/tmp"),
    ] {
        let refused = gleaner(&[&asked[..], &[option, value]].concat());
        assert_eq!(refused.status.code(), Some(1));
        let said = complaint(&refused);
        let name = option.split('=').next().unwrap();
        assert!(
            said.contains(name) && said.contains("synthetic clusters"),
            "{said}"
        );
    }
    let refused = gleaner(&[&asked[..], &["--item", "Table 4"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(complaint(&refused).contains("Text 4.2.1"));
    assert_eq!(
        gleaner(&["fidelity", "--paper", "nobody"]).status.code(),
        Some(2)
    );
}

#[test]
fn tables_of_global_memory_follow_from_its_costs() {
    let asked = ["fidelity", "--paper", "gms", "--json"];
    let tables = ["--item", "Table 1", "--item", "Table 4"];
    let records: Value = serde_json::from_str(&told(&[&asked[..], &tables].concat())).unwrap();
    let records = records.as_array().unwrap();
    assert_eq!(records.len(), 20 + 5);
    for r in records {
        assert_eq!(r["source"], "Feeley et al. 1995");
        assert_eq!(r["holds"], r["possible"], "{r}");
    }
    let refused = gleaner(&["fidelity", "--paper", "gms", "--days", "3"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(complaint(&refused).contains("--days"));
}

#[test]
fn anemones_figures_are_printed_beside_results_of_benches() {
    let asked = ["fidelity", "--paper", "anemone"];
    let control = ["--item", "Text, control traffic", "--json"];
    let without: Value = serde_json::from_str(&told(&[&asked[..], &control].concat())).unwrap();
    for r in without.as_array().unwrap() {
        assert!(r["ours"].is_null() && r["holds"].is_null(), "{r}");
        let note = r["note"].as_str().unwrap();
        assert!(note.ends_with("not measured: run bench/control.py"), "{r}");
    }

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("control.json");
    let row = r#"{"page_in_percent": 9.14, "heads_percent": 1.074}"#;
    let result =
        format!(r#"{{"control": {{"arithmetic_bytes": {{"page_in": 374}}, "rows": [{row}]}}}}"#);
    fs::write(&file, result).unwrap();
    let measured = ["--measured", file.to_str().unwrap()];
    let with = told(&[&asked[..], &control, &measured].concat());
    let with: Value = serde_json::from_str(&with).unwrap();
    assert_eq!(
        (&with[0]["ours"], &with[0]["holds"]),
        (&1.074.into(), &true.into())
    );
    assert_eq!(
        (&with[1]["ours"], &with[1]["holds"]),
        (&9.14.into(), &Value::Null)
    );

    let refused = gleaner(&[&["fidelity", "--paper", "gms"][..], &measured].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(complaint(&refused).contains("--paper anemone"));
}
