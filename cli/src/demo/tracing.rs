//! The agent, run as it runs for real: the program beside this one.

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running `gleaner-agent run`.
pub(crate) struct Agent {
    child: Child,
}

impl Agent {
    /// Starts it at a one-second interval.
    pub(crate) fn start(database: &Path) -> anyhow::Result<Self> {
        let program = program()?;
        let child = Command::new(&program)
            .args(["run", "--interval", "1s", "--socket", "none", "--database"])
            .arg(database)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child })
    }

    /// Fails if it has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("gleaner-agent ended too early ({status}); what it said stands above");
        }
        Ok(())
    }

    /// Asks it to finish the sample in hand, and waits for it.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_none() {
            kill_process(Pid::from_child(&self.child), Signal::TERM)
                .context("cannot end gleaner-agent")?;
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!("gleaner-agent failed ({status}); what it said stands above");
        }
        Ok(())
    }
}

impl Drop for Agent {
    /// On an early error: it must not go on tracing unseen.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

/// Runs `gleaner-agent export`.
pub(crate) fn export(database: &Path, dataset: &Path) -> anyhow::Result<()> {
    let output = Command::new(program()?)
        .args(["export", "--json", "--database"])
        .arg(database)
        .arg(dataset)
        .stdin(Stdio::null())
        .output()
        .context("cannot start gleaner-agent export")?;
    if !output.status.success() {
        bail!(
            "gleaner-agent export failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot tell where gleaner lies")?;
    let beside = own.with_file_name("gleaner-agent");
    if !beside.exists() {
        bail!(
            "{} is missing: gleaner and gleaner-agent are installed side by side",
            beside.display()
        );
    }
    Ok(beside)
}
