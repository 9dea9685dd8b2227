//! Files that `gleaner-commons verify` finds.

use super::stage::{BLOCK, Stage, commons};
use gleaner_harness::Random;
use std::fs;
use std::process::Output;

fn verify(stage: &Stage, more: &[&str]) -> Output {
    let mut command = commons();
    command
        .arg("verify")
        .arg(stage.catalog())
        .arg("--source")
        .arg(stage.input());
    command.args(more).output().unwrap()
}

#[test]
fn every_file_that_differs_is_listed_with_its_first_block() {
    let stage = Stage::new(&mut Random::new());
    let done = verify(&stage, &[]);
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(
        said.contains("508 files") && said.contains("all equal the catalog"),
        "{said}"
    );
    let at = |name: &str| stage.input().join(name);
    let mut large = fs::read(at("lib/deep/er/large")).unwrap();
    large[3 * BLOCK] ^= 0x80;
    large[9 * BLOCK + 5] ^= 0x80;
    fs::write(at("lib/deep/er/large"), large).unwrap();
    fs::write(at("none"), "more").unwrap();
    fs::write(at("lib/block"), [1; 10]).unwrap();
    fs::remove_file(at("many/file-7")).unwrap();
    let done = verify(&stage, &["--json"]);
    assert_eq!(done.status.code(), Some(3));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        format!("#{}", report["catalog"].as_str().unwrap()),
        stage.pin
    );
    let faults: Vec<_> = report["faults"].as_array().unwrap().iter().collect();
    let paths: Vec<_> = faults.iter().map(|f| f["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        ["lib/block", "lib/deep/er/large", "many/file-7", "none"]
    );
    let places: Vec<_> = faults
        .iter()
        .map(|f| {
            (
                f["block"].as_u64(),
                f["offset_bytes"].as_u64(),
                f["blocks_count"].as_u64(),
            )
        })
        .collect();
    let large = (Some(3), Some(3 * BLOCK as u64), Some(2));
    assert_eq!(
        places,
        [
            (Some(0), Some(0), Some(1)),
            large,
            (Some(0), Some(0), Some(1)),
            (None, None, Some(0))
        ]
    );
    let said = String::from_utf8(verify(&stage, &[]).stdout).unwrap();
    assert!(
        said.contains("lib/deep/er/large: block 3 at byte 196608: differs"),
        "{said}"
    );
    assert!(said.contains("4 differ or cannot be read"), "{said}");
}

#[test]
fn a_source_that_is_not_there_is_a_failure() {
    let stage = Stage::new(&mut Random::new());
    fs::remove_dir_all(stage.input()).unwrap();
    let done = verify(&stage, &[]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        done.status.code() == Some(1) && said.contains("source "),
        "{said}"
    );
}
