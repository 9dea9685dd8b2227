//! Data that leave a host must contain no secrets. The test plants secrets, and then searches every byte of
//! the trace, the exported tables and the report for them.

use gleaner_tests::program;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ARGUMENT: &str = "correct-horse-battery";
const VARIABLE: &str = "hunter-of-the-snark";
const FOLDER: &str = "staple-of-the-diagnosis";
const CONTENT: &str = "dear-doctor-it-is-me";

/// A busy program with secrets in its arguments, its environment, and the name of an open file.
struct BusyProgram(Child);

impl BusyProgram {
    fn start(folder: &Path) -> Self {
        let file = folder.join(FOLDER);
        fs::write(&file, CONTENT).unwrap();
        let child = Command::new("sh")
            .args(["-c", "exec 3<\"$1\"; while :; do :; done", ARGUMENT])
            .arg(&file)
            .env("SECRET", VARIABLE)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for BusyProgram {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Output of a program. Exit code 3 is accepted: `status` ends with it if the last sample is old.
fn run(name: &str, args: &[&str]) -> String {
    let output = Command::new(program(name).unwrap())
        .args(args)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 3)), "{name} {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap() + &said
}

/// Paths of all files under `folder` whose bytes contain `text`.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else {
            let bytes = fs::read(&path).unwrap();
            if bytes.windows(text.len()).any(|w| w == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Records a trace, exports it and writes a report, all in `folder`. Returns the output of the programs.
fn everything(folder: &Path, config: &str) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    fs::write(folder.join("agent.toml"), config).unwrap();
    let (database, dataset) = (at("trace.db"), at("dataset"));
    let global = ["--config", &at("agent.toml"), "--database", &database];
    let agent = |args: &[&str]| run("gleaner-agent", &[&global, args].concat());
    let mut said = agent(&[
        "run",
        "--socket",
        "none",
        "--sample-interval",
        "300ms",
        "--samples",
        "3",
    ]);
    said += &agent(&["export", &dataset]);
    said += &agent(&["status"]);
    said += &agent(&["inspect", "--json"]);
    said += &run(
        "gleaner",
        &["export", &dataset, "--to", "csv", "-o", &at("csv")],
    );
    said + &run(
        "gleaner",
        &["report", &dataset, "--output", &at("report.html")],
    )
}

#[test]
fn planted_secrets_stay_where_they_are() {
    let secrets = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let _busy = BusyProgram::start(secrets.path());
    let (hashed, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());

    let said = everything(hashed.path(), "");
    let csv = fs::read_dir(hashed.path().join("csv/processes")).unwrap();
    assert!(
        csv.count() > 0 && said.contains("\"sh\""),
        "the program was seen"
    );
    for secret in [ARGUMENT, VARIABLE, FOLDER, CONTENT] {
        assert_eq!(holding(hashed.path(), secret), [""; 0], "{secret}");
        assert!(!said.contains(secret), "{secret}");
    }

    let said = everything(plain.path(), "privacy = \"plain\"\n");
    for secret in [ARGUMENT, VARIABLE, CONTENT] {
        assert_eq!(holding(plain.path(), secret), [""; 0], "{secret}");
        assert!(!said.contains(secret), "{secret}");
    }
    assert!(said.contains(FOLDER), "the owner sees what he allowed");
    assert!(
        holding(plain.path(), FOLDER)
            .iter()
            .any(|path| path.ends_with(".csv")),
        "the search finds what is there"
    );
}
