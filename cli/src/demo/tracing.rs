//! Agent and collector as in real use: `gleaner collect --local` in a separate process, so that its cost is
//! measured separately.

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running `gleaner collect --local`.
pub(crate) struct Collection {
    child: Child,
}

impl Collection {
    /// Starts `gleaner collect --local` with a one-second interval, into `folder`.
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        let program = std::env::current_exe()
            .context("cannot determine the folder of the program gleaner")?;
        let child = Command::new(&program)
            .args([
                "collect",
                "--local",
                "--sample-interval",
                "1s",
                "--status-listen",
                "none",
            ])
            .arg("--output")
            .arg(folder)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child })
    }

    /// Fails if the process has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("gleaner collect ended too early ({status}); its output is above");
        }
        Ok(())
    }

    /// Stops the process, which first writes the whole trace to the dataset.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_none() {
            kill_process(Pid::from_child(&self.child), Signal::TERM)
                .context("cannot end gleaner collect")?;
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!("gleaner collect failed ({status}); its output is above");
        }
        Ok(())
    }
}

impl Drop for Collection {
    /// Stops the process after an early error, so that it does not go on tracing unnoticed.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.child.wait();
        }
    }
}
