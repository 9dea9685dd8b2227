//! Tests files of the dataset that the disk altered: the collector names them, sets them aside, and serves
//! the others.

use crate::made::{body, id, sequences};
use crate::running::{Collector, program};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn upkeep(command: &str, dataset: &Path) -> (i32, Value) {
    let output = Command::new(program())
        .args([command, "--json"])
        .arg(dataset)
        .output()
        .unwrap();
    let said = serde_json::from_slice(&output.stdout);
    let said = said.unwrap_or_else(|_| Value::from(String::from_utf8(output.stderr).unwrap()));
    (output.status.code().unwrap(), said)
}

/// Path of a table's only file; the table has rows of one day.
fn file(dataset: &Path, table: &str) -> PathBuf {
    let only = |folder: &Path| {
        fs::read_dir(folder)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    };
    only(&only(&dataset.join(table)))
}

#[test]
fn verify_names_what_is_damaged_and_repair_serves_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    // A collector seals by itself soon after its start; after that, one seal writes both hosts to one file.
    collector.seal();
    for host in [1, 2] {
        assert_eq!(collector.send(&body(&id(host), &id(9), 3..=2000)).0, 200);
    }
    collector.seal();
    let dataset = collector.dataset();
    let (code, found) = upkeep("verify", &dataset);
    assert_eq!(
        (code, found["problems"].as_array().unwrap().len()),
        (0, 0),
        "{found}"
    );

    let damaged = file(&dataset, "processes");
    let mut content = fs::read(&damaged).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(&damaged, content).unwrap();
    let (code, found) = upkeep("verify", &dataset);
    assert_eq!(code, 4);
    let problems = found["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{found}");
    assert!(
        damaged.ends_with(problems[0]["path"].as_str().unwrap()),
        "{found}"
    );

    let (code, done) = upkeep("repair", &dataset);
    assert_eq!(code, 4, "{done}");
    let lost: u64 = done["lost_rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["rows_count"].as_u64().unwrap())
        .sum();
    assert_eq!(
        lost + done["saved_rows_count"].as_u64().unwrap(),
        2 * 1998 * 3,
        "{done}"
    );
    assert!(lost > 0);
    assert_eq!(upkeep("verify", &dataset).0, 0);
    let status = collector.get("/v1/status").1;
    let rows = status["dataset_rows_count"].as_u64().unwrap();
    assert_eq!(rows + lost, 2 * 1998 * 4, "{status}");
    // The collector still accepts and seals batches.
    assert_eq!(collector.send(&body(&id(3), &id(9), 3..=5)).0, 200);
    collector.seal();
    assert_eq!(sequences(&dataset, &id(3)), [3, 4, 5]);
}

#[test]
fn damage_does_not_keep_a_running_collector_from_sealing() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let (host, database) = (id(1), id(2));
    assert_eq!(collector.send(&body(&host, &database, 3..=9)).0, 200);
    collector.seal();
    let torn = file(&collector.dataset(), "samples");
    fs::File::options()
        .write(true)
        .open(&torn)
        .unwrap()
        .set_len(100)
        .unwrap();
    // When the collector looks for repeated rows, it reads the truncated file.
    assert_eq!(collector.send(&body(&host, &database, 3..=12)).0, 200);
    collector.seal();
    collector.hear("set aside");
    assert_eq!(
        sequences(&collector.dataset(), &host),
        (3..=12).collect::<Vec<_>>()
    );
    assert_eq!(upkeep("verify", &collector.dataset()).0, 0);
}

#[test]
fn what_is_no_dataset_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["verify", "repair"] {
        let (code, said) = upkeep(command, folder.path());
        assert_eq!(code, 1);
        assert!(said.as_str().unwrap().contains("not a dataset"), "{said}");
    }
}
