//! Other people's programs.

use super::failure::AttachError;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Runs it to its end; what it printed.
pub(crate) fn run<A: AsRef<OsStr>>(
    program: &'static str,
    package: &'static str,
    args: &[A],
) -> Result<String, AttachError> {
    let ended = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .env("LC_ALL", "C")
        .output()
        .map_err(|why| AttachError::Missing {
            program,
            package,
            why,
        })?;
    if !ended.status.success() {
        let said = last_words(&ended.stderr, &ended.status.to_string());
        return Err(AttachError::Program { program, said });
    }
    Ok(String::from_utf8_lossy(&ended.stdout).trim().to_owned())
}

/// The last line of what it said, or how it ended.
pub(crate) fn last_words(said: &[u8], ended: &str) -> String {
    let said = String::from_utf8_lossy(said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or(ended).trim().to_owned()
}
