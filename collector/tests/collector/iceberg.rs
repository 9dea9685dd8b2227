//! Tests the collector's Iceberg tables: they have the dataset's files and rows. `tests/readers/test_iceberg.py` reads
//! such tables with other engines, also after kill -9 of a collector that publishes.

use crate::made::{START_MS, id, sample, tables_from};
use crate::running::{Collector, wait_for};
use gleaner_dataset::{Batch, Dataset};
use gleaner_harness::now_ms;
use gleaner_schemas::rows::SampleRow;
use gleaner_tables::{Options, publish};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Files by table, day and hash of the rows, like `samples/date=2026-11-21/3f9c…`; and numbers of rows by table.
type Contents = (BTreeSet<String>, BTreeMap<String, u64>);

fn contents_of_dataset(root: &Path) -> Contents {
    let (mut files, mut rows) = Contents::default();
    for file in &Dataset::open(root).unwrap().manifest().files {
        files.insert(file.path.trim_end_matches(".arrow").to_owned());
        *rows.entry(file.table.clone()).or_default() += file.rows;
    }
    (files, rows)
}

/// Contents of the published tables, or `None` if a publication has not ended.
fn contents_of_tables(root: &Path) -> Option<Contents> {
    let (mut files, mut rows) = Contents::default();
    let json = |path: &str| -> Option<Value> {
        serde_json::from_slice(&fs::read(root.join(path)).ok()?).ok()
    };
    for (table, metadata) in json("gleaner-tables.json")?["tables"].as_object()? {
        let metadata = json(metadata.as_str()?)?;
        let snapshot = metadata["snapshots"].as_array()?.last()?;
        let total = snapshot["summary"]["total-records"].as_str()?;
        let total = total.parse::<u64>().ok()?;
        if total > 0 {
            rows.insert(table.clone(), total);
        }
        for day in fs::read_dir(root.join(table).join("data")).ok()? {
            let day = day.ok()?;
            for file in fs::read_dir(day.path()).ok()? {
                let name = file.ok()?.file_name().into_string().ok()?;
                let (hash, _) = name.strip_suffix(".parquet")?.rsplit_once('-')?;
                let day = day.file_name().into_string().ok()?;
                files.insert(format!("{table}/{day}/{hash}"));
            }
        }
    }
    Some((files, rows))
}

fn config(tables: &Path) -> String {
    format!(
        "disk_reserve = \"1MiB\"\n[tables]\nfolder = {tables:?}\nevery = \"1s\"\ngrace = \"0s\"\n"
    )
}

fn progress(collector: &Collector) -> Value {
    collector.get("/v1/status").1["tables"].clone()
}

/// Sends a record of a day long ago, and seals it.
fn add(collector: &Collector, sequence: i64) {
    let start_ms = START_MS - 400 * 86_400_000 - 3_600_000;
    let rows = tables_from(start_ms, &id(1), &id(2), [sequence]);
    assert_eq!(collector.send(&Batch::encode(&rows).unwrap()).0, 200);
    collector.seal();
}

#[track_caller]
fn wait_until_equal(collector: &Collector, tables: &Path) {
    let expected = contents_of_dataset(&collector.dataset());
    wait_for("the tables to equal the dataset", || {
        contents_of_tables(tables).as_ref() == Some(&expected)
    });
}

#[test]
fn tables_follow_a_dataset_that_is_sealed_merged_and_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    let collector = Collector::start(folder.path(), &config(&tables));
    for sequence in 1..=12 {
        add(&collector, sequence);
        if sequence % 3 == 0 {
            wait_until_equal(&collector, &tables);
        }
    }
    let merged = &collector.get("/v1/status").1["seal"]["merged_files_count"];
    assert!(merged.as_u64().unwrap() > 0, "{merged}");
    let body = sample(&id(3), &id(4), 1, now_ms(), SampleRow::default());
    assert_eq!(collector.send(&body).0, 200);
    collector.seal();
    wait_until_equal(&collector, &tables);

    let more = format!("{}[retention]\ndays = 2\n", config(&tables));
    collector.reload(folder.path(), &more, "was reloaded");
    collector.seal();
    let (_, rows) = contents_of_dataset(&collector.dataset());
    assert_eq!(rows, BTreeMap::from([("samples".to_owned(), 1)]));
    wait_until_equal(&collector, &tables);

    let told = progress(&collector);
    assert_eq!(told["folder"], json!(tables));
    assert_eq!(
        (&told["failure"], &told["failures_count"]),
        (&Value::Null, &json!(0))
    );
    assert!(told["last_duration_ms"].is_u64(), "{told}");
    let metrics = collector.get("/metrics").1;
    for line in [
        "tables_last_published_timestamp_seconds 1",
        "tables_duration_seconds ",
        "tables_written_files_total ",
        "tables_versions_total ",
        "tables_failures_total 0\n",
    ] {
        let line = format!("\ngleaner_collector_{line}");
        assert!(metrics.as_str().unwrap().contains(&line), "{line}");
    }

    // Another publication of the same dataset finds nothing to change.
    let dataset = collector.dataset();
    assert_eq!(collector.end(), Some(0));
    let options = Options {
        grace: Duration::ZERO,
        ..Options::default()
    };
    let summary = publish(&dataset, &tables, &options, SystemTime::now(), |_| ()).unwrap();
    assert_eq!((summary.changed_tables, summary.written_files), (0, 0));
    assert_eq!((summary.files, summary.rows), (1, 1));
}

/// Makes the link `from` lead to `to`, in one step.
fn lead(from: &Path, to: &Path) {
    let next = from.with_extension("next");
    symlink(to, &next).unwrap();
    fs::rename(next, from).unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_until_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    let [file, foreign, empty] = ["file", "foreign", "empty"].map(|name| folder.path().join(name));
    fs::write(&file, "in the way").unwrap();
    for folder in [&foreign, &empty] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(foreign.join("letter.txt"), "somebody's").unwrap();
    lead(&tables, &empty);
    let collector = Collector::start(folder.path(), &config(&tables));
    add(&collector, 1);
    wait_until_equal(&collector, &tables);

    lead(&tables, &file);
    let said = collector.hear("cannot publish the tables: ");
    assert!(said.contains("Not a directory"), "{said}");
    add(&collector, 2);
    let failures = || progress(&collector)["failures_count"].as_u64().unwrap();
    wait_for("more failures", || failures() >= 3);
    assert_eq!(collector.said(), [""; 0], "it is said once");
    let status = collector.get("/v1/status").1;
    let problem = &status["problems"][0];
    assert_eq!(problem["kind"], "cannot_publish_tables", "{status}");
    assert_eq!(status["is_well"], true, "{status}");
    let page = collector.get("/").1;
    let text = "The Iceberg tables cannot be published: ";
    assert!(page.as_str().unwrap().contains(text), "{page}");

    lead(&tables, &foreign);
    collector.hear("cannot publish the tables: ");
    let found = fs::read_dir(&foreign).unwrap().count();
    assert_eq!(found, 1, "a folder of somebody else stays as it is");
    lead(&tables, &empty);
    collector.hear("the tables are published again");
    wait_until_equal(&collector, &tables);
    assert_eq!(progress(&collector)["failure"], Value::Null);
    assert_eq!(collector.get("/v1/status").1["problems"], json!([]));
}
