//! Processes, identified by id and start time, because the kernel may reuse an id.

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{Duration, Instant};

/// Time that processes get to end after a signal.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// A process that the lab started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Time from boot to the process's start, in the kernel's ticks.
    started_ticks: u64,
    /// Id of the boot: process ids and start times are unique only within one boot.
    boot_id: String,
}

impl Process {
    /// The process that has this id now; `None` if there is none.
    pub(super) fn find(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            started_ticks: started_ticks(pid)?,
            boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .ok()?
                .trim()
                .to_owned(),
        })
    }

    /// Returns true if the process still runs, and its id was not reused.
    pub(super) fn runs(&self) -> bool {
        Self::find(self.pid).as_ref() == Some(self)
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| self.runs()) {
            let _ = kill_process(pid, signal); // fails if the process has ended
        }
    }
}

/// Ends processes, with SIGKILL if SIGTERM is not enough. Returns those that still run.
pub(super) fn end(processes: &[Process]) -> Vec<Process> {
    for signal in [Signal::TERM, Signal::KILL] {
        processes.iter().for_each(|process| process.signal(signal));
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if !processes.iter().any(Process::runs) {
                return Vec::new();
            }
            std::thread::sleep(LOOK);
        }
    }
    processes.iter().filter(|p| p.runs()).cloned().collect()
}

/// Returns true if a process runs one of our programs.
pub(super) fn is_ours(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = program.as_ref().and_then(|path| path.file_name()?.to_str());
    name.is_some_and(|name| name.starts_with("gleaner-"))
}

/// Start time of a process in ticks; `None` if it does not run (`/proc/PID/stat`, see proc_pid_stat(5)).
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in parentheses, and may itself contain any character.
    let mut after_name = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = after_name.next()?;
    let is_over = matches!(state, "Z" | "X");
    after_name.nth(18)?.parse().ok().filter(|_| !is_over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_itself_until_it_ends() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::find(child.id()).unwrap();
        assert!(process.runs());
        let another = Process {
            started_ticks: process.started_ticks + 1,
            ..process.clone()
        };
        let of_another_boot = Process {
            boot_id: "x".to_owned(),
            ..process.clone()
        };
        assert_eq!(end(&[another, of_another_boot]), []);
        assert!(process.runs(), "ended another's process");
        assert_eq!(end(std::slice::from_ref(&process)), []);
        assert!(!process.runs(), "not even while nobody has waited for it");
        child.wait().unwrap();
        assert_eq!(Process::find(child.id()), None);
    }
}
