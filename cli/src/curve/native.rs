//! Runs a command until it ends, and measures it.

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A command that has ended.
pub(super) struct RunUsage {
    pub(super) status: ExitStatus,
    /// CPU time of the process and of those children for which it waited, in seconds.
    pub(super) cpu_s: f64,
    pub(super) wall_s: f64,
    /// Largest resident memory of one of these processes.
    pub(super) peak_bytes: u64,
    /// Page faults of these processes that waited for a device.
    pub(super) major_faults: u64,
}

/// Interval between checks whether the command has ended.
const CHECK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// Flag that is set by Ctrl-C or a signal to end: the command then writes the results so far, and ends.
pub(super) fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Runs a command. `tick` is called repeatedly with the time since the begin. Ends the command if `interrupted` is
/// set.
pub(super) fn run(
    command: &mut Command,
    interrupted: &AtomicBool,
    mut tick: impl FnMut(Duration),
) -> anyhow::Result<RunUsage> {
    let name = command.get_program().to_os_string();
    let begin = Instant::now();
    let child = command.spawn();
    let mut child = child.with_context(|| format!("cannot start {}", name.display()))?;
    // With it, the duration ends with the process, and not with the next check.
    let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
    loop {
        if let Some((status, usage)) = ended(&child).context("cannot wait for the program")? {
            return Ok(RunUsage {
                status,
                cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
                wall_s: begin.elapsed().as_secs_f64(),
                peak_bytes: u64::try_from(usage.ru_maxrss)
                    .unwrap_or(0)
                    .saturating_mul(1024),
                major_faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
            });
        }
        if interrupted.load(Ordering::Relaxed) {
            // A process that has just ended cannot be killed.
            let _ = child.kill();
        }
        tick(begin.elapsed());
        wait(handle.as_ref());
    }
}

/// Waits for the end of a process, at most until the next check. Without a handle (kernels before Linux 5.3), always
/// until then.
fn wait(handle: Option<&OwnedFd>) {
    let end = handle.map(|handle| PollFd::new(handle, PollFlags::IN));
    let mut watched: Vec<PollFd<'_>> = end.into_iter().collect();
    // A signal only makes the next check earlier.
    let _ = poll(&mut watched, Some(&CHECK));
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 * 1e-6
}

/// Status and resources of a child that has ended; `None` while it runs. After an answer, the child must not be waited
/// for.
#[allow(unsafe_code)] // std and rustix have no wait4
fn ended(child: &Child) -> io::Result<Option<(ExitStatus, libc::rusage)>> {
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: rusage consists of integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the types that wait4 fills.
    match unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) } {
        0 => Ok(None),
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            error => Err(error),
        },
        _ => Ok(Some((ExitStatus::from_raw(status), usage))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_measured_and_can_be_ended() {
        let mut ticks = 0;
        let never = AtomicBool::new(false);
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; exit 3",
        ]);
        let done = run(&mut shell, &never, |_| ticks += 1).unwrap();
        assert_eq!(done.status.code(), Some(3));
        assert!(done.cpu_s > 0.0 && done.wall_s > 0.0 && done.peak_bytes > 100_000);
        let already = AtomicBool::new(true);
        let killed = run(Command::new("sleep").arg("600"), &already, |_| ()).unwrap();
        assert_eq!(killed.status.signal(), Some(9));
        let missing = run(&mut Command::new("/missing"), &never, |_| ());
        assert!(missing.is_err_and(|error| error.to_string().contains("/missing")));
        assert!(ticks > 0);
    }
}
