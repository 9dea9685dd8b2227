//! `gleaner curve watch`: the working set of a running process, second by second.
//!
//! Writing 1 to /proc/PID/clear_refs clears the marks of used pages; a second later, `Referenced` of
//! /proc/PID/smaps_rollup has the size of the pages that were used since (proc_pid_clear_refs(5)).

use super::args::WatchArgs;
use super::native::interrupted;
use crate::tables::plain;
use anyhow::{Context, bail};
use gleaner_agent::read::process::RecentUse;
use gleaner_schemas::curve::WatchedWindow;
use gleaner_schemas::units::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Length of a window.
const WINDOW: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// Value for clear_refs: all pages of the process.
const ALL_PAGES: &str = "1";

pub(super) fn run(args: &WatchArgs, output: &mut dyn Write) -> anyhow::Result<()> {
    let process = WatchedProcess::open(args.pid)?;
    let interrupted = interrupted()?;
    if !args.json {
        writeln!(
            output,
            "{}",
            row(["seconds", "used in 1 s", "resident", "swapped"])
        )?;
    }
    let begin = Instant::now();
    let mut used_bytes = Vec::new();
    while process.clear()? {
        let cleared = Instant::now();
        if process.has_ended_within(&WINDOW)? || interrupted.load(Ordering::Relaxed) {
            break;
        }
        let window_s = cleared.elapsed().as_secs_f64();
        let Some(sizes) = process.sizes()? else {
            break;
        };
        let window = WatchedWindow {
            time_s: begin.elapsed().as_secs_f64(),
            window_s,
            referenced_bytes: sizes.referenced_bytes,
            resident_bytes: sizes.resident_bytes,
            swap_bytes: sizes.swap_bytes,
        };
        used_bytes.push(window.referenced_bytes);
        let line = match args.json {
            true => serde_json::to_string(&window)?,
            false => text(&window),
        };
        writeln!(output, "{line}")?;
        output.flush()?;
    }
    if let Some(summary) = summary(used_bytes).filter(|_| !args.json) {
        output.write_all(plain(&summary).as_bytes())?;
    }
    Ok(())
}

fn text(window: &WatchedWindow) -> String {
    let bytes = |bytes: u64| Bytes::from(bytes).to_string();
    let [used, resident, swapped] = [
        window.referenced_bytes,
        window.resident_bytes,
        window.swap_bytes,
    ]
    .map(bytes);
    row([&format!("{:.0}", window.time_s), &used, &resident, &swapped])
}

fn row([seconds, used, resident, swapped]: [&str; 4]) -> String {
    format!("{seconds:>8}  {used:>11}  {resident:>10}  {swapped:>10}")
}

fn summary(mut used_bytes: Vec<u64>) -> Option<String> {
    used_bytes.sort_unstable();
    let median = *used_bytes.get(used_bytes.len() / 2)?;
    let largest = *used_bytes.last()?;
    Some(format!(
        "Working set in 1 s: median {}, largest {} of {} windows.\n",
        Bytes::from(median),
        Bytes::from(largest),
        used_bytes.len()
    ))
}

/// A process, which stays the same although ids are used again.
struct WatchedProcess {
    pid: i32,
    handle: OwnedFd,
}

impl WatchedProcess {
    fn open(pid: i32) -> anyhow::Result<Self> {
        let id = Pid::from_raw(pid).context("0 is no process id")?;
        let handle = match pidfd_open(id, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => bail!("there is no process {pid}"),
            Err(Errno::INVAL) => bail!("{pid} is a thread: give the id of its process"),
            Err(error) => return Err(error).with_context(|| format!("cannot open process {pid}")),
        };
        let process = Self { pid, handle };
        if process.sizes()?.is_none() {
            bail!("process {pid} has no memory: it is a kernel thread, or has ended");
        }
        Ok(process)
    }

    fn path(&self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.pid).into()
    }

    /// Clears the marks of used pages; returns false if the process has ended.
    fn clear(&self) -> anyhow::Result<bool> {
        let written = fs::write(self.path("clear_refs"), ALL_PAGES);
        Ok(self.unless_ended(written)?.is_some())
    }

    /// Sizes of the process's memory; `None` if it has ended.
    fn sizes(&self) -> anyhow::Result<Option<RecentUse>> {
        let read = fs::read(self.path("smaps_rollup"));
        let Some(text) = self.unless_ended(read)? else {
            return Ok(None);
        };
        let sizes = RecentUse::from_smaps_rollup(&text);
        let sizes = sizes
            .with_context(|| format!("{} lacks sizes", self.path("smaps_rollup").display()))?;
        // The id may be another process's since the end of this one.
        let now = Timespec::default();
        Ok((!self.has_ended_within(&now)?).then_some(sizes))
    }

    /// Waits for the end of the process; returns true if it has ended. A signal ends the wait early.
    fn has_ended_within(&self, timeout: &Timespec) -> anyhow::Result<bool> {
        let mut watched = [PollFd::new(&self.handle, PollFlags::IN)];
        match poll(&mut watched, Some(timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error).context("cannot wait for the process"),
        }
    }

    /// Result of an access to the process's files; `None` if the process has ended.
    fn unless_ended<T>(&self, result: io::Result<T>) -> anyhow::Result<Option<T>> {
        let pid = self.pid;
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => bail!(
                "process {pid} is another user's, or protects its memory: run this command as its user, or as root"
            ),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match self.has_ended_within(&Timespec::default())? {
                    true => Ok(None),
                    false => bail!(
                        "the kernel has no clear_refs or smaps_rollup: it needs Linux 4.14 and CONFIG_PROC_PAGE_MONITOR"
                    ),
                }
            }
            Err(error) => {
                Err(error).with_context(|| format!("cannot read the memory of process {pid}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned() {
        let window = WatchedWindow {
            time_s: 12.04,
            window_s: 1.0,
            referenced_bytes: 33_256 << 10,
            resident_bytes: 144_612 << 10,
            swap_bytes: 0,
        };
        let header = row(["seconds", "used in 1 s", "resident", "swapped"]);
        let line = text(&window);
        assert_eq!(line, "      12     32.5 MiB   141.2 MiB         0 B");
        assert_eq!(line.len(), header.len());
        let summary = summary(vec![3 << 20, 1 << 20, 2 << 20]).unwrap();
        assert_eq!(
            summary,
            "Working set in 1 s: median 2.0 MiB, largest 3.0 MiB of 3 windows.\n"
        );
        assert_eq!(super::summary(Vec::new()), None);
    }

    #[test]
    fn this_process_is_watched_and_others_are_named() {
        let own = WatchedProcess::open(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(own.clear().unwrap());
        let sizes = own.sizes().unwrap().unwrap();
        assert!(sizes.referenced_bytes <= sizes.resident_bytes && sizes.resident_bytes > 0);
        let denied = own.unless_ended::<()>(Err(io::ErrorKind::PermissionDenied.into()));
        assert!(denied.unwrap_err().to_string().contains("as root"));
        let gone = own.unless_ended::<()>(Err(Errno::SRCH.into()));
        assert_eq!(gone.unwrap(), None);
        let missing = WatchedProcess::open(i32::MAX).err().unwrap().to_string();
        assert!(missing.contains("there is no process"), "{missing}");
        let kernel_thread = WatchedProcess::open(2).err().map(|error| error.to_string());
        assert!(kernel_thread.is_none_or(|said| said.contains('2')));
    }
}
