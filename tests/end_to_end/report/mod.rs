//! `gleaner report` in its weekly use: requested time, comparison, companion files, mail.

mod asked;
mod beside;
mod folder;
mod mail;
mod own;
mod sites;

use gleaner_tests::program;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

fn gleaner() -> Command {
    let mut command = Command::new(program("gleaner").unwrap());
    command.stdin(Stdio::null());
    command
}

#[track_caller]
fn made(output: Output) -> Output {
    assert!(output.status.success(), "{}", said(&output));
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Dataset of four synthetic hosts from Monday of week 46 to Monday of week 48. It is generated once for all
/// tests.
fn fortnight() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fortnight");
        let _ = fs::remove_dir_all(&folder);
        synth(
            &folder,
            &["--hosts", "4", "--start", "2026-11-09", "--interval", "20m"],
        );
        folder
    })
}

/// Generates a dataset of fifteen days.
fn synth(folder: &Path, args: &[&str]) {
    let mut command = gleaner();
    command
        .args(["synth", "--preset", "modern", "--days", "15", "-o"])
        .arg(folder);
    made(command.args(args).output().unwrap());
}

/// Command `gleaner report` for `dataset`, with few bootstrap resamples to save time.
fn report(dataset: &Path, args: &[&str]) -> Command {
    let mut command = gleaner();
    command
        .arg("report")
        .arg(dataset)
        .args(["--bootstrap", "20"])
        .args(args);
    command
}

fn text(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn json(path: impl AsRef<Path>) -> Value {
    serde_json::from_str(&text(path)).unwrap()
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
