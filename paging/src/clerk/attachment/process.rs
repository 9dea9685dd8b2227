//! Programs that serve an attachment: started detached from their parent, identified by id and start time.

use super::failure::AttachError;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Timeout of ending a process, which normally takes milliseconds. After this time the process is killed: it
/// may wait for a missing server.
const TO_END: Duration = Duration::from_secs(5);
/// The kernel's flag PF_MEMALLOC_NOIO: the kernel does not swap to get memory for this thread.
const IO_FLUSHER: u64 = 0x0008_0000;

/// A process, distinguished by its start time from later ones with the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Name of the program, for people.
    pub(crate) program: String,
    /// Id of the process.
    pub(crate) pid: u32,
    /// Start time, in ticks since boot.
    pub(crate) start_ticks: u64,
}

impl Process {
    /// Process of an id; `None` if it does not exist.
    pub(crate) fn of(program: &str, pid: u32) -> Option<Self> {
        let stat = stat(pid).filter(Stat::is_alive)?;
        Some(Self {
            program: program.to_owned(),
            pid,
            start_ticks: stat.start_ticks,
        })
    }

    /// Returns true while the process lives.
    pub(crate) fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.is_alive() && stat.start_ticks == self.start_ticks)
    }

    /// Ends the process: by SIGTERM, and after a timeout by SIGKILL.
    pub(crate) fn end(&self) -> Result<(), AttachError> {
        for signal in [Signal::TERM, Signal::KILL] {
            let Some(handle) = self.handle() else {
                return Ok(());
            };
            // The process may have ended in the meantime.
            let _ = pidfd_send_signal(&handle, signal);
            if ends(&handle, TO_END) {
                return Ok(());
            }
        }
        Err(AttachError::Undying {
            program: self.program.clone(),
            pid: self.pid,
        })
    }

    /// Waits briefly for the process to end by itself.
    pub(crate) fn await_end(&self) {
        if let Some(handle) = self.handle() {
            ends(&handle, TO_END);
        }
    }

    /// Kills the process, without waiting.
    pub(crate) fn kill(&self) {
        if let Some(handle) = self.handle() {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }

    /// Opens a handle of the process. The check of the start time after opening ensures that the id was not reused.
    fn handle(&self) -> Option<OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        self.is_alive().then_some(handle)
    }
}

fn ends(handle: &OwnedFd, limit: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec {
        tv_sec: limit.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    let mut one = [PollFd::new(handle, PollFlags::IN)];
    poll(&mut one, Some(&limit)).is_ok_and(|ended| ended > 0)
}

/// Program to run.
pub(crate) struct Launch {
    /// Name of the program, for people.
    pub(crate) program: &'static str,
    /// Path or name of the program.
    pub(crate) path: &'static str,
    /// Debian's package with the program.
    pub(crate) package: &'static str,
    /// Destination of its standard error.
    pub(crate) says: Stdio,
}

/// Starts a program that the kernel swaps through, in its own control group, session and folder.
///
/// The program is protected from the OOM killer, and from swapping when it needs memory itself. For each
/// protection that is not available, a message is added to `notes`.
pub(crate) fn start<A: AsRef<OsStr>>(
    Launch {
        program,
        path,
        package,
        says,
    }: Launch,
    args: &[A],
    group: Option<&File>,
    notes: &mut Vec<String>,
) -> Result<(Child, Process), AttachError> {
    let mut command = Command::new(path);
    command
        .args(args)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(says);
    call::apart(&mut command, group.map(AsRawFd::as_raw_fd));
    let missing = |why| AttachError::Missing {
        program,
        package,
        why,
    };
    let mut child = command.spawn().map_err(missing)?;
    let pid = child.id();
    let Some(process) = Process::of(program, pid) else {
        let _ = child.kill();
        let said = "ended at once".to_owned();
        return Err(AttachError::Program { program, said });
    };
    let spared = format!("/proc/{pid}/oom_score_adj");
    if let Err(e) = fs::write(&spared, "-1000") {
        notes.push(format!(
            "the OOM killer may take {program}: {spared}: {e}; CAP_SYS_RESOURCE is needed"
        ));
    }
    if stat(pid).is_some_and(|stat| stat.flags & IO_FLUSHER == 0) {
        notes.push(format!(
            "{program} may wait for itself when the whole host is short of memory: no PR_SET_IO_FLUSHER without CAP_SYS_RESOURCE"
        ));
    }
    Ok((child, process))
}

/// Locks this process in memory, since it may have to remove a swap area whose server does not answer.
pub(crate) fn lock_memory() {
    // Locking needs a privilege. Without it, detaching works as long as the server answers.
    let _ = call::lock_own();
}

/// Locks the memory of this process as soon as it is used: what was needed once is never read from a disk again.
pub(crate) fn lock_used_memory() {
    // Without the privilege, the process works as long as the kernel leaves its memory.
    let _ = call::lock_used();
}

/// Fields of /proc/PID/stat.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    flags: u64,
    start_ticks: u64,
}

impl Stat {
    /// Returns true if the process runs or will run again.
    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses the fields. The program's name may contain spaces and brackets.
fn parse(stat: &str) -> Option<Stat> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?.chars().next()?;
    let flags = words.nth(5)?.parse().ok()?;
    let start_ticks = words.nth(12)?.parse().ok()?;
    Some(Stat {
        state,
        flags,
        start_ticks,
    })
}

#[allow(unsafe_code)]
mod call {
    use std::io;
    use std::os::fd::RawFd;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    // linux/prctl.h; the C library's header has no name for it.
    const SET_IO_FLUSHER: libc::c_int = 57;
    const ON: libc::c_ulong = 1;

    /// Sets up the child before it becomes the program.
    pub(super) fn apart(command: &mut Command, group: Option<RawFd>) {
        let settle = move || {
            if let Some(door) = group {
                // SAFETY: writes one byte of a constant to a descriptor that the parent keeps open until the
                // child runs.
                if unsafe { libc::write(door, c"0".as_ptr().cast(), 1) } != 1 {
                    return Err(io::Error::last_os_error());
                }
            }
            // SAFETY: these three calls take only numbers. setsid keeps the terminal's signals from the
            // program. SIGPIPE is ignored, so that the program survives the end of its pipe's reader. prctl
            // needs a privilege; the parent checks later whether the call succeeded.
            unsafe {
                libc::setsid();
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
                libc::prctl(SET_IO_FLUSHER, ON, 0, 0, 0);
            }
            Ok(())
        };
        // SAFETY: the closure only makes system calls, which are allowed between fork and exec, and allocates
        // nothing.
        unsafe { command.pre_exec(settle) };
    }

    pub(super) fn lock_own() -> io::Result<()> {
        lock(libc::MCL_CURRENT | libc::MCL_FUTURE)
    }

    pub(super) fn lock_used() -> io::Result<()> {
        lock(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT)
    }

    fn lock(flags: libc::c_int) -> io::Result<()> {
        // SAFETY: locking changes nothing that is in memory.
        let failed = unsafe { libc::mlockall(flags) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_the_next_of_its_number() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::of("sleep", child.id()).unwrap();
        assert!(process.is_alive());
        let later = Process {
            start_ticks: process.start_ticks + 1,
            ..process.clone()
        };
        later.end().unwrap();
        later.kill();
        assert!(process.is_alive() && !later.is_alive());
        process.end().unwrap();
        // The process has ended, but its parent has not waited for it yet.
        assert!(!process.is_alive());
        child.wait().unwrap();
        process.end().unwrap();
        assert_eq!(Process::of("sleep", child.id()), None);
    }

    #[test]
    fn a_name_with_brackets_is_no_hindrance() {
        let line = "77 (a) R) S 1 2 3 4 5 524288 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        let stat = parse(line).unwrap();
        assert_eq!((stat.state, stat.start_ticks), ('S', 4242));
        assert_eq!(stat.flags & IO_FLUSHER, IO_FLUSHER);
    }
}
