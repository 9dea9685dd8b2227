//! Programs that a test runs until they end.
#![allow(clippy::panic)]

use std::path::PathBuf;
use std::process::Command;

/// Path of the built program `name`, in the profile of the running test.
///
/// # Errors
/// The program does not exist: `cargo test --workspace` builds it, `cargo test -p gleaner-tests`
/// does not.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let test =
        std::env::current_exe().map_err(|e| format!("cannot tell where the test lies: {e}"))?;
    let folder = test
        .ancestors()
        .nth(2)
        .ok_or("the test lies in no target folder")?;
    let program = folder.join(name);
    if program.exists() {
        Ok(program)
    } else {
        Err(format!(
            "{} is missing: run `cargo build --workspace` first",
            program.display()
        ))
    }
}

/// Runs a command and returns its standard output.
///
/// # Panics
/// If the program is missing or fails; the message contains its standard error.
#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let done = command.output();
    let done = done.unwrap_or_else(|e| panic!("{command:?}: {e}; `make setup` installs it"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{command:?}: {}\n{said}",
        done.status
    );
    String::from_utf8(done.stdout).unwrap_or_else(|e| panic!("{command:?}: {e}"))
}
