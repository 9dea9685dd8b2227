//! Programs that a test kills and starts again.

use gleaner_harness::Running;
use std::process::Command;

/// A program with its arguments.
pub(super) struct Daemon {
    command: Command,
    pub(super) running: Running,
}

impl Daemon {
    pub(super) fn start(mut command: Command) -> Self {
        let running = Running::start(&mut command);
        Self { command, running }
    }

    /// Kills the program, if it runs, and starts it again with the same arguments.
    pub(super) fn restart(&mut self) {
        self.running.kill();
        self.running = Running::start(&mut self.command);
    }
}
