//! `gleaner analyze --part` and `gleaner merge` as users run them: parts by several processes, some of them
//! killed and repeated, give the document of one analysis to the byte.

use crate::gleaner::{complaint, gleaner, told};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PARTS: usize = 3;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn parts_of_several_processes_are_one_analysis_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let dataset = at("dataset");
    let dataset = text(&dataset);
    told(&["synth", "-o", dataset, "--hosts", "5", "--days", "3"]);
    let whole = told(&["analyze", dataset, "--json"]);

    // The plan is made once, and every part follows it.
    let plan = at("plan.json");
    fs::write(&plan, told(&["analyze", dataset, "--print-plan"])).unwrap();
    let parts: Vec<_> = (1..=PARTS).map(|i| at(&format!("part-{i}"))).collect();
    let analyze = |i: usize, output: &Path| {
        let part = format!("{i}/{PARTS}");
        let mut command = Command::new(gleaner_tests::program("gleaner").unwrap());
        command.args(["analyze", dataset, "--plan", text(&plan)]);
        command.args(["--part", &part, "-o", text(output)]);
        command.stdout(Stdio::null());
        command
    };
    // A process that is killed leaves a whole part or none; it is then repeated.
    for (i, output) in (1..).zip(&parts) {
        let mut killed = analyze(i, output).spawn().unwrap();
        killed.kill().unwrap();
        killed.wait().unwrap();
        let mut running: Vec<_> = (0..2)
            .map(|_| analyze(i, output).spawn().unwrap())
            .collect();
        for process in &mut running {
            assert!(process.wait().unwrap().success());
        }
    }
    let left = fs::read_dir(folder.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    let temporary = |name: &&std::ffi::OsString| name.to_string_lossy().starts_with(".tmp");
    assert!(left.iter().filter(temporary).count() <= PARTS, "{left:?}");

    let [first, second, third] = [&parts[0], &parts[1], &parts[2]].map(|part| text(part));
    let merged = told(&["merge", third, first, second, first, "--json"]);
    assert!(merged == whole, "the merged parts give another document");
    let outer = at("outer");
    told(&["merge", third, first, "-o", text(&outer)]);
    let merged = told(&["merge", text(&outer), second, "--json"]);
    assert!(merged == whole, "a tree of merges gives another document");
    let tables = told(&["merge", first, second, third]);
    assert!(
        tables.contains("AVAILABLE") || tables.contains("vailable"),
        "{tables}"
    );

    // The parameters of findings can be used again, like those of a plan.
    let findings = at("findings.json");
    fs::write(&findings, &whole).unwrap();
    let again = told(&[
        "analyze",
        dataset,
        "--json",
        "--parameters",
        text(&findings),
    ]);
    assert!(again == whole);

    let incomplete = gleaner(&["merge", text(&outer)]);
    assert_eq!(incomplete.status.code(), Some(1));
    let said = complaint(&incomplete);
    assert!(said.contains("hosts 1..3 of 5 are in no part"), "{said}");
    told(&[
        "analyze",
        dataset,
        "--hosts",
        "1..3",
        "-o",
        text(second.as_ref()),
    ]);
    let merged = told(&["merge", text(&outer), second, "--json"]);
    assert!(
        merged == whole,
        "the command of the message gives another part"
    );
}

#[test]
fn files_of_records_are_the_same_whatever_the_parts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let dataset = at("dataset");
    told(&["synth", "-o", text(&dataset), "--hosts", "4", "--days", "3"]);
    // The document names the folder as it is given, so both commands give the same name.
    let run = |inside: &str, args: &[&str]| {
        std::fs::create_dir_all(at(inside)).unwrap();
        let mut command = Command::new(gleaner_tests::program("gleaner").unwrap());
        let command = command.current_dir(at(inside)).args(args);
        command
            .args(["--json", "--records", "records"])
            .output()
            .unwrap()
    };
    let whole = run("whole", &["analyze", text(&dataset)]);
    assert!(whole.status.success(), "{}", complaint(&whole));
    let parts: Vec<_> = (1..=PARTS).map(|i| at(&format!("part-{i}"))).collect();
    for (i, output) in (1..).zip(&parts) {
        let part = format!("{i}/{PARTS}");
        told(&[
            "analyze",
            text(&dataset),
            "--part",
            &part,
            "-o",
            text(output),
        ]);
    }
    let [first, second, third] = [&parts[0], &parts[1], &parts[2]].map(|part| text(part));
    let merged = run("merged", &["merge", third, first, second]);
    assert!(merged.status.success(), "{}", complaint(&merged));
    assert!(merged.stdout == whole.stdout, "another document");

    let files = |folder: &str| -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(at(folder))
            .unwrap()
            .map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|e| {
                (
                    e.file_name().into_string().unwrap(),
                    fs::read(e.path()).unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    };
    let written = files("whole/records");
    assert!(written == files("merged/records"), "other files");
    let document: serde_json::Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(document["records"]["folder"], "records");
    let named = document["records"]["files"].as_array().unwrap();
    assert_eq!(named.len(), written.len());
    let all = told(&["analyze", text(&dataset), "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    for file in named {
        let measure = file["measure"].as_str().unwrap();
        assert_eq!(file["file"], format!("{measure}.parquet"));
        let count = |document: &serde_json::Value| document[measure].as_array().unwrap().len();
        let in_file = file["rows_count"].as_u64().unwrap() as usize;
        assert_eq!(count(&document) + in_file, count(&all), "{measure}");
    }
    assert_eq!(
        document["availability_periods"],
        all["availability_periods"]
    );

    let again = run("whole", &["analyze", text(&dataset)]);
    assert_eq!(again.status.code(), Some(1));
    let complaint = complaint(&again);
    assert!(
        complaint.contains("records already has files"),
        "{complaint}"
    );
    assert!(files("whole/records") == written);
    let tables = gleaner(&["analyze", text(&dataset), "--records", "x"]);
    assert_eq!(tables.status.code(), Some(2), "files go with a document");
}

#[test]
fn wrong_parts_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (dataset, part, other, damaged) = (at("dataset"), at("a"), at("b"), at("c"));
    told(&["synth", "-o", text(&dataset), "--hosts", "2", "--days", "1"]);
    told(&[
        "analyze",
        text(&dataset),
        "--part",
        "1/2",
        "-o",
        text(&part),
    ]);
    let others = ["--load-limit", "0.5", "--part", "2/2"];
    told(
        &[
            &["analyze", text(&dataset), "-o", text(&other)],
            &others[..],
        ]
        .concat(),
    );
    let refused = |args: &[&str], code: i32, reason: &str| {
        let output = gleaner(args);
        assert_eq!(output.status.code(), Some(code), "{}", complaint(&output));
        let said = complaint(&output);
        assert!(said.contains(reason), "{said}");
        assert!(output.stdout.is_empty());
    };
    let both = ["merge", text(&part), text(&other)];
    refused(&both, 1, "another analysis");
    refused(
        &["merge", text(&dataset.join("manifest.json"))],
        1,
        "no part of an analysis",
    );
    refused(&["merge", text(&at("absent"))], 1, "absent");
    let bytes = fs::read(&part).unwrap();
    fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
    refused(&["merge", text(&damaged)], 1, "damaged");
    refused(
        &["analyze", text(&dataset), "--part", "3/2", "-o", "x"],
        2,
        "such as 2/7",
    );
    refused(
        &["analyze", text(&dataset), "--hosts", "5..9", "-o", "x"],
        1,
        "hosts",
    );
    refused(&["analyze", text(&dataset), "--part", "1/2"], 2, "--output");
    fs::write(&damaged, "[]").unwrap();
    let wrong = [
        "analyze",
        text(&dataset),
        "--json",
        "--parameters",
        text(&damaged),
    ];
    refused(&wrong, 1, "no parameters");
}
