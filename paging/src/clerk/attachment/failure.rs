//! What can go wrong.

use gleaner_schemas::units::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why something could not be attached, or taken apart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AttachError {
    /// A file, a folder, a device.
    #[error("{}: {why}", path.display())]
    Path {
        /// Which.
        path: PathBuf,
        /// What the kernel says.
        why: io::Error,
    },
    /// Others could put things there, and root would believe them.
    #[error("{} belongs to somebody else, or others may write there: remove it", .0.display())]
    Foreign(PathBuf),
    /// What was kept there is not what we write.
    #[error("{}: {why}", path.display())]
    Record {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: serde_json::Error,
    },
    /// One of a name.
    #[error("{0} is attached already: detach it, or give this one another --name")]
    Attached(String),
    /// Detached before, say.
    #[error("nothing is attached as {0}")]
    Nothing(String),
    /// No name was given.
    #[error("nothing is attached")]
    NothingAtAll,
    /// No name was given.
    #[error("say which: {0}")]
    Several(String),
    /// Somebody attaches or detaches it.
    #[error("{0} is being attached or detached right now")]
    AtWork(String),
    /// Not root.
    #[error("devices and swap are root's: run it as root")]
    NotRoot,
    /// Not what NBD clients can use.
    #[error("{}: {why}", socket.display())]
    Server {
        /// Of whom.
        socket: PathBuf,
        /// What it does instead.
        why: gleaner_paging::nbd::client::ConnectError,
    },
    /// The wanted way is not there.
    #[error("no way to a block device: {0}")]
    NoWay(&'static str),
    /// Not installed, mostly.
    #[error("cannot run {program}: {why}; {package} has it")]
    Missing {
        /// Which.
        program: &'static str,
        /// Debian's name.
        package: &'static str,
        /// What the kernel says.
        why: io::Error,
    },
    /// It failed.
    #[error("{program}: {said}")]
    Program {
        /// Which.
        program: &'static str,
        /// Its last words.
        said: String,
    },
    /// Its pages would lie in this host's memory twice.
    #[error(
        "{}: without direct I/O pages would stay in this host's own cache, and nothing would be gained", .0.display()
    )]
    Cached(PathBuf),
    /// A system call failed.
    #[error("{call} {}: {why}", device.display())]
    Call {
        /// swapon, say.
        call: &'static str,
        /// Of which device.
        device: PathBuf,
        /// What the kernel says.
        why: io::Error,
    },
    /// Memory would run out.
    #[error(
        "{} are swapped out, and {} of memory available: end programs first; with --force some may be killed",
        Bytes::from(*used_bytes),
        Bytes::from(*available_bytes)
    )]
    DoesNotFit {
        /// Of the device.
        used_bytes: u64,
        /// MemAvailable.
        available_bytes: u64,
    },
    /// Memory of a group would run out, whatever the host has.
    #[error(
        "the programs in {} have {} swapped out, and room for {} below its limit: raise that first, or end some; with --force the kernel \
         may kill them",
        group.display(),
        Bytes::from(*swapped_bytes),
        Bytes::from(*room_bytes)
    )]
    Crowded {
        /// Which.
        group: PathBuf,
        /// Of its programs.
        swapped_bytes: u64,
        /// Below its limit.
        room_bytes: u64,
    },
    /// It is mounted, say.
    #[error("{} is in use{where_}: unmount it first", device.display())]
    InUse {
        /// Which.
        device: PathBuf,
        /// Mounted where, if that is known.
        where_: String,
    },
    /// Even after the connection to the server was cut.
    #[error("{step} does not end, though its connection was cut {} s ago", waited.as_secs())]
    Hangs {
        /// What does not.
        step: &'static str,
        /// How long.
        waited: Duration,
    },
    /// It does not become what it should.
    #[error("{step}: not within {} s", waited.as_secs())]
    Slow {
        /// What does not.
        step: &'static str,
        /// How long.
        waited: Duration,
    },
    /// A process that cannot be ended.
    #[error("{program}, process {pid}, does not end")]
    Undying {
        /// What it runs.
        program: String,
        /// Which.
        pid: u32,
    },
    /// It failed, and so did undoing what had been done.
    #[error("{why}; and it is not undone: {left}. `gleaner-clerk detach {name}` tries that again")]
    Left {
        /// Of which.
        name: String,
        /// Why it was to be undone.
        why: Box<AttachError>,
        /// Why it is not.
        left: Box<AttachError>,
    },
}

/// Puts the path to what the kernel says.
pub(crate) fn at<T: AsRef<Path>>(path: T) -> impl FnOnce(io::Error) -> AttachError {
    move |why| AttachError::Path {
        path: path.as_ref().to_owned(),
        why,
    }
}
