//! Errors of running a program with little local memory.

use crate::attachment::failure::AttachError;
use std::io;
use std::path::PathBuf;

/// Exit code if this command fails before the program runs, as of env(1).
const OWN_FAILURE: u8 = 125;
/// Exit code if the program cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// Exit code if the program does not exist.
const NOT_FOUND: u8 = 127;

/// Reason why a program could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LimitError {
    /// The kernel has no swap area.
    #[error(
        "no swap is attached, so the program would have no memory beyond --local: attach some with `gleaner-clerk attach --swap`"
    )]
    NoSwap,
    /// The kernel cannot limit memory.
    #[error(
        "the kernel has no memory controller for control groups: start it without cgroup_disable=memory, or mount cgroup2 at /sys/fs/cgroup"
    )]
    NoController,
    /// Only root may make control groups of version 1.
    #[error(
        "control groups of version 1 need root: run it as root, or have root run `mkdir {} && chown -R $USER {}` and add `--cgroup {}`",
        .0.display(),
        .0.display(),
        .0.display()
    )]
    NeedsRoot(PathBuf),
    /// The user's control group is not delegated to the user alone.
    #[error(
        "{}: {why}: no control group of yours; run it as root, or as `systemd-run --user --scope -p Delegate=yes gleaner-clerk run …`",
        path.display()
    )]
    NotDelegated {
        /// Path of the group or of its file.
        path: PathBuf,
        /// Error of the kernel.
        why: io::Error,
    },
    /// The given folder is no control group with a memory controller.
    #[error("{}: no control group whose memory can be limited; --cgroup needs a folder below a memory controller's", .0.display())]
    NoGroup(PathBuf),
    /// A setting of the group was rejected.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The program did not start.
    #[error("cannot run {program}: {why}")]
    Start {
        /// Name of the program.
        program: String,
        /// Error of the kernel.
        why: io::Error,
    },
    /// The kernel refused a service of supervision.
    #[error("cannot supervise the program: {0}")]
    Supervise(#[source] io::Error),
}

impl LimitError {
    /// Exit code of the command, as of env(1).
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Start { why, .. } if why.kind() == io::ErrorKind::NotFound => NOT_FOUND,
            Self::Start { why, .. } if why.kind() == io::ErrorKind::PermissionDenied => {
                NOT_EXECUTABLE
            }
            _ => OWN_FAILURE,
        }
    }
}
