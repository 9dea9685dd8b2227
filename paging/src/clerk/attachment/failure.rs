//! Errors of attaching and detaching.

use gleaner_schemas::units::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reason why a device could not be attached or detached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AttachError {
    /// A file, folder or device cannot be used.
    #[error("{}: {why}", path.display())]
    Path {
        /// Path of the file.
        path: PathBuf,
        /// Error of the kernel.
        why: io::Error,
    },
    /// Other users could have put files there, which root would trust.
    #[error("{} belongs to somebody else, or others may write there: remove it", .0.display())]
    Foreign(PathBuf),
    /// The record has an unknown form.
    #[error("{}: {why}", path.display())]
    Record {
        /// Path of the record.
        path: PathBuf,
        /// Error of parsing.
        why: serde_json::Error,
    },
    /// An attachment of this name exists.
    #[error("{0} is attached already: detach it, or give this one another --name")]
    Attached(String),
    /// No attachment has this name, for example after an earlier detach.
    #[error("nothing is attached as {0}")]
    Nothing(String),
    /// No name was given, and there is no attachment.
    #[error("nothing is attached")]
    NothingAtAll,
    /// No name was given, and there are several attachments.
    #[error("name one of the attachments: {0}")]
    Several(String),
    /// Another process is attaching or detaching this attachment.
    #[error("{0} is being attached or detached right now")]
    AtWork(String),
    /// The command needs root.
    #[error("devices and swap need root: run it as root")]
    NotRoot,
    /// NBD clients cannot use the server.
    #[error("{}: {why}", socket.display())]
    Server {
        /// Socket of the server.
        socket: PathBuf,
        /// Failure of the connection.
        why: gleaner_paging::nbd::client::ConnectError,
    },
    /// This host cannot make a block device in the requested way.
    #[error("cannot make a block device: {0}")]
    NoWay(&'static str),
    /// The program cannot be run; usually it is not installed.
    #[error("cannot run {program}: {why}; {package} has it")]
    Missing {
        /// Name of the program.
        program: &'static str,
        /// Debian's package with the program.
        package: &'static str,
        /// Error of the kernel.
        why: io::Error,
    },
    /// The program failed.
    #[error("{program}: {said}")]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Last line of its error output.
        said: String,
    },
    /// Without direct I/O, this host would also cache the device's pages.
    #[error(
        "{}: without direct I/O pages would stay in this host's own cache, and nothing would be gained", .0.display()
    )]
    Cached(PathBuf),
    /// A system call failed.
    #[error("{call} {}: {why}", device.display())]
    Call {
        /// Name of the system call, such as swapon.
        call: &'static str,
        /// Path of the device.
        device: PathBuf,
        /// Error of the kernel.
        why: io::Error,
    },
    /// The host's memory would run out.
    #[error(
        "{} are swapped out, and {} of memory available: end programs first; with --force some may be killed",
        Bytes::from(*used_bytes),
        Bytes::from(*available_bytes)
    )]
    DoesNotFit {
        /// Swapped-out bytes on the device.
        used_bytes: u64,
        /// MemAvailable of the host, in bytes.
        available_bytes: u64,
    },
    /// A control group would exceed its limit, however much memory the host has.
    #[error(
        "the programs in {} have {} swapped out, and room for {} below its limit: raise that first, or end some; with --force the kernel \
         may kill them",
        group.display(),
        Bytes::from(*swapped_bytes),
        Bytes::from(*room_bytes)
    )]
    Crowded {
        /// Folder of the group.
        group: PathBuf,
        /// Swapped-out bytes of its programs.
        swapped_bytes: u64,
        /// Bytes below the group's limit.
        room_bytes: u64,
    },
    /// The device is in use, such as mounted.
    #[error("{} is in use{where_}: unmount it first", device.display())]
    InUse {
        /// Path of the device.
        device: PathBuf,
        /// Mount point, as a phrase; empty if unknown.
        where_: String,
    },
    /// A step did not end even after the connection to the server was cut.
    #[error("{step} does not end, though its connection was closed {} s ago", waited.as_secs())]
    Hangs {
        /// Name of the step.
        step: &'static str,
        /// Time that was waited.
        waited: Duration,
    },
    /// The device did not reach the expected state in time.
    #[error("{step}: timed out after {} s", waited.as_secs())]
    Slow {
        /// Name of the step.
        step: &'static str,
        /// Time that was waited.
        waited: Duration,
    },
    /// A process does not end.
    #[error("{program}, process {pid}, does not end")]
    Undying {
        /// Name of the program.
        program: String,
        /// Id of the process.
        pid: u32,
    },
    /// Attaching failed, and so did undoing it.
    #[error("{why}; undoing it failed: {left}. `gleaner-clerk detach {name}` tries again")]
    Left {
        /// Name of the attachment.
        name: String,
        /// Error that made it necessary to undo.
        why: Box<AttachError>,
        /// Error of undoing.
        left: Box<AttachError>,
    },
}

/// Adds the path to an error of the kernel.
pub(crate) fn at<T: AsRef<Path>>(path: T) -> impl FnOnce(io::Error) -> AttachError {
    move |why| AttachError::Path {
        path: path.as_ref().to_owned(),
        why,
    }
}
