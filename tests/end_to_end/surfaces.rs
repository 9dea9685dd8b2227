//! Tests of help, man pages, completions and errors, which are what a user sees first.

use gleaner_tests::program;
use std::process::{Command, Output, Stdio};

fn run(name: &str, args: &[&str]) -> Output {
    Command::new(program(name).unwrap())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

const COMMANDS: [(&str, &[&str]); 2] = [
    (
        "gleaner",
        &[
            "demo",
            "doctor",
            "analyze",
            "report",
            "export",
            "import",
            "synth",
            "simulate",
            "cache",
            "curve",
            "fidelity",
            "lab",
            "top",
            "schema",
            "pki",
            "completions",
            "man",
        ],
    ),
    (
        "gleaner-agent",
        &["run", "sample", "watch", "status", "export"],
    ),
];

#[test]
fn help_has_examples_and_exit_codes() {
    for (name, subcommands) in COMMANDS {
        let help = stdout(&run(name, &["--help"]));
        assert!(
            help.contains("Examples") && help.contains("Exit codes"),
            "{name} --help:\n{help}"
        );
        for subcommand in subcommands {
            let help = stdout(&run(name, &[subcommand, "--help"]));
            assert!(
                help.contains("Examples"),
                "{name} {subcommand} --help:\n{help}"
            );
        }
    }
}

#[test]
fn man_pages_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        run("gleaner", &["man", folder.path().to_str().unwrap()])
            .status
            .success()
    );
    for (name, subcommands) in COMMANDS {
        for page in std::iter::once(name.to_owned())
            .chain(subcommands.iter().map(|s| format!("{name}-{s}")))
        {
            let text = std::fs::read_to_string(folder.path().join(format!("{page}.1")))
                .unwrap_or_else(|e| panic!("{page}.1: {e}"));
            assert!(text.contains(".SH SYNOPSIS"), "{page}.1");
        }
    }
}

#[test]
fn completions_are_sound_bash() {
    for (name, _) in COMMANDS {
        let script = run("gleaner", &["completions", "bash", "--of", name]);
        assert!(script.status.success());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("completion");
        std::fs::write(&path, &script.stdout).unwrap();
        assert!(
            Command::new("bash")
                .arg("-n")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        assert!(stdout(&script).contains(name));
    }
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    for (args, words) in [
        (
            vec!["analyze", nowhere],
            vec![nowhere, "gleaner-agent export"],
        ),
        (
            vec!["report", nowhere, "-o", "x.html"],
            vec![nowhere, "gleaner-agent export"],
        ),
        (
            vec!["export", nowhere, "--to", "csv", "-o", "x"],
            vec![nowhere, "gleaner-agent export"],
        ),
    ] {
        let output = run("gleaner", &args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.starts_with("gleaner: ") && said.lines().count() == 1,
            "{said}"
        );
        for word in words {
            assert!(said.contains(word), "{args:?}: {said}");
        }
    }
    assert_eq!(run("gleaner", &["analyze"]).status.code(), Some(2));
    assert_eq!(
        run("gleaner", &["analyze", "x", "--region", "1MB"])
            .status
            .code(),
        Some(2)
    );
}

/// Many errors contain the system's message and have the same message as their cause. It must be printed only
/// once.
#[test]
fn an_error_says_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    let output = ["-o", nowhere];
    let import =
        |source, more: &[&'static str]| [&["import", source, nowhere], &output[..], more].concat();
    let stream = [
        "cache",
        "--size",
        "1",
        "--stream",
        nowhere,
        "--stream-format",
        "csv",
    ];
    for args in [
        import("bitbrains", &[]),
        import("materna", &[]),
        import("alibaba", &[]),
        import("sysstat", &[]),
        import("prometheus", &[]),
        import("csv", &["--mapping", "no-such.toml"]),
        stream.to_vec(),
        vec!["simulate", nowhere],
        vec!["synth", "--fleet", nowhere, "-o", nowhere],
        vec!["pki", "list", "--pki", nowhere],
    ] {
        let output = run("gleaner", &args);
        assert!(!output.status.success(), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut parts: Vec<&str> = said.trim().split(": ").collect();
        let count = parts.len();
        parts.sort_unstable();
        parts.dedup();
        assert_eq!(parts.len(), count, "{args:?}: {said}");
    }
}
