//! Tests of the built `gleaner-agent`, on captured trees of other machines and on this host.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod activity;
mod collector;
mod copies;
mod damaged;
mod disk;
mod export;
mod host;
mod hostile;
mod inspect;
mod killed;
mod live;
mod logind;
mod many;
mod missing;
mod namespaces;
mod opens;
mod oracle;
mod retention;
mod running;
mod service;
mod session;
mod ship;
mod stalled;
mod trace;
mod trees;
mod versions;

use gleaner_harness::succeed;
use serde_json::Value as Json;
use std::process::Command;

/// The built binary.
fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gleaner-agent"))
}

/// The built binary without its socket, since a host has only one.
fn agent() -> Command {
    let mut command = program();
    command.args(["--socket", "none"]);
    command
}

/// Error message and exit code of a failing command.
fn fail(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{command:?} succeeded");
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// The command `sample --json`.
fn sample_command() -> Command {
    let mut command = agent();
    command.args(["sample", "--json"]);
    command
}

/// Parsed output of the command.
fn sample(command: &mut Command) -> Json {
    serde_json::from_str(&succeed(command)).unwrap()
}

/// The value of a field, whose unit must be `unit`.
fn value(row: &Json, name: &str, unit: Option<&str>) -> Option<i64> {
    let field = row.get(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(field["unit"].as_str(), unit, "{name}");
    field["value"].as_i64()
}

/// A field in bytes.
fn bytes(row: &Json, name: &str) -> Option<i64> {
    value(row, name, Some("bytes"))
}

/// Sum of the categories and the category correction, less physical memory; it must be 0.
fn categories_less_physical(sample: &Json) -> i64 {
    let columns = gleaner_schemas::findings::Category::ALL.map(|c| c.column());
    let sum: i64 = columns.iter().filter_map(|c| bytes(sample, c)).sum();
    sum + bytes(sample, "category_correction_bytes").unwrap()
        - bytes(sample, "physical_bytes").unwrap()
}
