//! `gleaner simulate --part` and `gleaner merge` as users run them: parts by several processes, some of them
//! killed and repeated, give the files of one process to the byte.

use crate::simulate::{SCENARIO, gleaner, refused, succeeded, synth};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PARTS: usize = 3;

/// A case without a forecast and one with a forecast, which every part learns itself; two seeds each.
const SWEEP: [&str; 8] = [
    "simulate",
    "short.toml",
    "--sweep",
    "headroom_share=0.15",
    "--sweep",
    "placement=random",
    "--sweep",
    "expected_for_s=0,600",
];

/// Folder with a dataset and the scenario.
fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    synth(folder.path());
    fs::write(folder.path().join("short.toml"), SCENARIO).unwrap();
    folder
}

fn started(folder: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(gleaner_tests::program("gleaner").unwrap());
    command.args(args).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn parts_of_several_processes_are_one_sweep_to_the_byte() {
    let folder = prepared();
    let folder = folder.path();
    let run = |args: &[&str]| succeeded(gleaner(folder, args));
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let files = ["--csv", "whole.csv", "--page", "whole.html"];
    let json = ["--json", "whole.json"];
    let table = run(&[&SWEEP[..], &files, &json].concat());
    let whole = [table, read("whole.csv"), read("whole.html")];

    // A process that is killed leaves a whole part or none; it is then repeated.
    for number in 1..=PARTS {
        let (part, output) = (format!("{number}/{PARTS}"), format!("part-{number}"));
        let args = [&SWEEP[..], &["--part", &part, "-o", &output]].concat();
        let mut killed = started(folder, &args);
        killed.kill().unwrap();
        killed.wait().unwrap();
        let mut running = [started(folder, &args), started(folder, &args)];
        for process in &mut running {
            assert!(process.wait().unwrap().success());
        }
    }
    let repeated = run(&[&SWEEP[..], &["--part", "2/3", "-o", "-"]].concat());
    assert!(repeated == read("part-2"), "a repeated part differs");

    for parts in [
        ["part-1", "part-2", "part-3", "part-1"],
        ["part-3", "part-1", "part-2", "part-2"],
    ] {
        let files = ["--csv", "merged.csv", "--page", "merged.html"];
        let table = run(&[&["merge"][..], &parts, &files].concat());
        let merged = [table, read("merged.csv"), read("merged.html")];
        assert!(merged == whole, "{parts:?} give other files");
        let json = run(&[&["merge", "--json"][..], &parts].concat());
        assert!(
            json == read("whole.json"),
            "{parts:?} give another document"
        );
    }

    run(&["merge", "part-3", "part-1", "-o", "outer"]);
    let json = run(&["merge", "outer", "part-2", "--json"]);
    assert!(
        json == read("whole.json"),
        "a tree of merges gives another document"
    );
    let incomplete = gleaner(folder, &["merge", "outer"]);
    assert_eq!(incomplete.status.code(), Some(1));
    let said = String::from_utf8_lossy(&incomplete.stderr);
    assert!(said.contains("of 4 runs are in no part"), "{said}");
    assert!(said.contains("with --part 2/3 and merge again"), "{said}");
}

#[test]
fn wrong_parts_are_refused_with_the_reason() {
    let folder = prepared();
    let folder = folder.path();
    let simulate = |output: &str, number: &str, more: &[&str]| {
        let args = [
            "--sweep",
            "headroom_share=0.15",
            "--part",
            number,
            "-o",
            output,
        ];
        let scenario = ["simulate", more[0], "--sweep", "placement=random"];
        succeeded(gleaner(
            folder,
            &[&scenario[..], &args, &more[1..]].concat(),
        ));
    };
    fs::write(folder.join("other.toml"), SCENARIO).unwrap();
    let other = [
        "synth", "-o", "lab-2", "--hosts", "4", "--days", "2", "--seed", "2",
    ];
    let other = [&other[..], &["--start", "2026-11-16", "--interval", "5m"]].concat();
    assert!(gleaner(folder, &other).status.success());
    simulate("first", "1/2", &["short.toml"]);
    simulate("seeds", "2/2", &["short.toml", "--seed", "1,3"]);
    simulate("named", "2/2", &["other.toml"]);
    simulate("hosts", "2/2", &["short.toml", "--dataset", "office=lab-2"]);
    simulate("days", "2/2", &["short.toml", "--from", "2026-11-16"]);
    succeeded(gleaner(
        folder,
        &["analyze", "lab", "--part", "1/1", "-o", "analysis"],
    ));
    let bytes = fs::read(folder.join("first")).unwrap();
    fs::write(folder.join("cut"), &bytes[..bytes.len() / 2]).unwrap();

    for (args, code, words) in [
        (
            &["merge", "first", "seeds"][..],
            1,
            &["seeds: ", "another sweep", "seeds"][..],
        ),
        (
            &["merge", "first", "named"],
            1,
            &["its scenario is other, and theirs is short"],
        ),
        (
            &["merge", "first", "hosts"],
            1,
            &["its dataset office has other contents"],
        ),
        (
            &["merge", "first", "days"],
            1,
            &["its simulated time differs"],
        ),
        (&["merge", "first", "analysis"], 1, &["no part of a sweep"]),
        (
            &["merge", "analysis", "first"],
            1,
            &["no part of an analysis"],
        ),
        (&["merge", "first", "cut"], 1, &["cut: ", "damaged"]),
        (
            &["merge", "first", "absent"],
            1,
            &["absent", "No such file"],
        ),
        (
            &["merge", "analysis", "--csv", "a.csv"],
            1,
            &["for parts of a sweep"],
        ),
        (
            &["merge", "first", "-o", "a", "--page", "a.html"],
            2,
            &["--page"],
        ),
        (
            &["simulate", "short.toml", "--part", "1/2"],
            2,
            &["--output"],
        ),
        (&["simulate", "short.toml", "-o", "a"], 2, &["--part"]),
        (
            &["simulate", "short.toml", "--part", "3/2", "-o", "a"],
            2,
            &["such as 2/7"],
        ),
        (
            &[
                "simulate",
                "short.toml",
                "--part",
                "1/2",
                "-o",
                "a",
                "--json",
                "-",
            ],
            2,
            &["--json"],
        ),
        (
            &["simulate", "short.toml", "--part", "1/2", "-o", "nowhere/a"],
            1,
            &["nowhere", "no such folder"],
        ),
    ] {
        refused(folder, args, code, words);
    }
}

#[test]
fn a_sweep_in_which_nothing_ended_is_the_same_error_in_parts() {
    let folder = prepared();
    let folder = folder.path();
    let short = ["simulate", "short.toml", "--days", "0.01"];
    let whole = gleaner(folder, &short);
    assert_eq!(whole.status.code(), Some(1));
    for (number, output) in [("1/2", "a"), ("2/2", "b")] {
        succeeded(gleaner(
            folder,
            &[&short[..], &["--part", number, "-o", output]].concat(),
        ));
    }
    let merged = gleaner(folder, &["merge", "b", "a"]);
    assert_eq!(merged.status.code(), Some(1));
    let said = |stderr: &[u8]| String::from_utf8_lossy(stderr).into_owned();
    assert_eq!(said(&merged.stderr), said(&whole.stderr));
}
