//! A second process that removes the control group when the supervisor ends, however it ends.
//!
//! Its standard input is a pipe from the supervisor, whose end shows the supervisor's end. Its standard output is the
//! group's locked folder, so that the group counts as in use until it is removed.

use super::failure::LimitError;
use super::group::{self, Group};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Running remover. Dropping this value lets it remove the group, and waits for it.
pub(super) struct Remover(Child);

impl Remover {
    /// Starts the remover in a process group of its own, which the terminal's signals do not reach.
    pub(super) fn start(group: &Group) -> Result<Self, LimitError> {
        let lock = group.lock().try_clone().map_err(LimitError::Supervise)?;
        let started = Command::new("/proc/self/exe")
            .arg("remove-group")
            .arg(group.path())
            .stdin(Stdio::piped())
            .stdout(lock)
            .process_group(0)
            .spawn();
        match started {
            Ok(child) => Ok(Self(child)),
            Err(why) => {
                let _ = group::remove(group.path());
                Err(LimitError::Supervise(why))
            }
        }
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Waits for the end of standard input, then kills the group's processes and removes the group.
///
/// # Errors
/// A process of the group does not end.
pub(crate) fn run(group: &Path) -> Result<(), LimitError> {
    // A fault of the pipe means the supervisor's end, too.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    group::remove(group).map_err(LimitError::from)
}
