//! Runs the command `gleaner` until it ends.

use gleaner_tests::program;
use std::process::{Command, Output, Stdio};

/// Output of `gleaner` with these arguments.
pub(crate) fn gleaner(args: &[&str]) -> Output {
    let mut command = Command::new(program("gleaner").unwrap());
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

/// Standard output of a command that must succeed.
#[track_caller]
pub(crate) fn told(args: &[&str]) -> String {
    let output = gleaner(args);
    assert!(output.status.success(), "{args:?}: {}", complaint(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command.
pub(crate) fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
