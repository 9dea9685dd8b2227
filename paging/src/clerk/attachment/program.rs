//! Runs external programs.

use super::failure::AttachError;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Runs the program until it ends; returns its output.
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

/// Returns the last line of the error output that gives a reason. If there is none, returns `ended`, the way
/// in which the program ended.
pub(crate) fn last_words(said: &[u8], ended: &str) -> String {
    let said = String::from_utf8_lossy(said);
    let mut lines = said.lines().rev().map(str::trim);
    // nbd-client prints "Exiting." after every error.
    let last = lines.find(|line| !matches!(*line, "" | "Exiting."));
    last.unwrap_or(ended).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_repeated_not_that_it_ends() {
        let of_nbd_client = b"Error: Cannot open NBD: No such file or directory\nExiting.\n";
        let why = "Error: Cannot open NBD: No such file or directory";
        assert_eq!(last_words(of_nbd_client, "exit status: 1"), why);
        assert_eq!(last_words(b"\n", "exit status: 1"), "exit status: 1");
    }
}
