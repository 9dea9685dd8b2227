//! Starts the program in its control group.

use super::failure::LimitError;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

/// Added to the number of the signal that ended a program, as shells do.
const SIGNALLED: i32 = 128;

/// Starts the program with this process's terminal, folder and environment. `door` is the group's file
/// `cgroup.procs`. Call this from the main thread: the kernel ends the program with the thread that started it.
pub(super) fn start(program: &[OsString], door: &File) -> Result<Child, LimitError> {
    let (path, args) = program.split_first().unzip();
    let path = path.cloned().unwrap_or_default();
    let mut command = Command::new(&path);
    command.args(args.unwrap_or_default());
    call::join_before_exec(&mut command, door.as_raw_fd());
    command.spawn().map_err(|why| LimitError::Start {
        program: path.to_string_lossy().into_owned(),
        why,
    })
}

/// Name of the program for people: the last part of its path.
pub(super) fn name(program: &[OsString]) -> String {
    let path = program.first().map(Path::new);
    let name = path.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Exit code to pass on: the program's, or 128 and the number of the signal that ended it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let by_signal = || status.signal().map(|signal| SIGNALLED + signal);
    let code = status.code().or_else(by_signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[allow(unsafe_code)]
mod call {
    use rustix::process::{Signal, set_parent_process_death_signal};
    use std::io;
    use std::os::fd::RawFd;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// Makes the child join the group before it becomes the program, so that all its pages count there. The
    /// kernel kills the program if its supervisor is killed.
    pub(super) fn join_before_exec(command: &mut Command, door: RawFd) {
        let join = move || {
            // SAFETY: writes one byte of a constant to a descriptor that the parent keeps open until the child
            // runs.
            if unsafe { libc::write(door, c"0".as_ptr().cast(), 1) } != 1 {
                return Err(io::Error::last_os_error());
            }
            set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        };
        // SAFETY: the closure only makes system calls, which are allowed between fork and exec, and allocates
        // nothing.
        unsafe { command.pre_exec(join) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_passed_on_and_signals_counted_from_128() {
        let exited = |code: i32| exit_code(ExitStatus::from_raw(code << 8));
        assert_eq!([0, 1, 7, 255].map(exited), [0, 1, 7, 255]);
        let signalled = |signal: i32| exit_code(ExitStatus::from_raw(signal));
        assert_eq!([2, 9, 15].map(signalled), [130, 137, 143]);
    }

    #[test]
    fn a_program_is_named_without_its_folder_and_arguments() {
        let program = ["/usr/bin/sort", "-S", "1G"].map(OsString::from);
        assert_eq!(name(&program), "sort");
        assert_eq!(name(&[]), "");
    }
}
