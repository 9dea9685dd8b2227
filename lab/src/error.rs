//! Errors when a lab is started, queried or removed.

use gleaner_trust::TrustError;
use std::io;
use std::path::{Path, PathBuf};

/// Result of an operation on a lab.
pub(crate) type Result<T> = std::result::Result<T, LabError>;

/// Reason why a command of `gleaner lab` failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The user is not root.
    #[error("network namespaces need root: run `sudo gleaner lab {command}`")]
    NeedsRoot {
        /// Subcommand: `up`, `status` or `down`.
        command: &'static str,
    },
    /// A program of iproute2 is not installed.
    #[error("{program} is missing: install iproute2")]
    NoTool {
        /// Name of the program.
        program: &'static str,
    },
    /// A program of Gleaner is not installed.
    #[error("{} is missing: gleaner's programs are installed side by side", .path.display())]
    NoProgram {
        /// Path at which the program should be.
        path: PathBuf,
    },
    /// The system does not report the path of the running program.
    #[error("cannot determine the folder of the program gleaner")]
    Own {
        /// Error of the system.
        source: io::Error,
    },
    /// The interval is shorter than the agent allows.
    #[error("--interval: 100ms is the shortest")]
    ShortInterval,
    /// Namespaces of a lab exist already.
    #[error("a lab is running, or a crash left parts of one: `gleaner lab down` removes it")]
    IsUp,
    /// No lab is running.
    #[error("there is no lab; `gleaner lab up` makes one")]
    NoLab,
    /// The folder for a new lab is not empty.
    #[error("{} is not empty: name a new folder with --folder, or empty it", .folder.display())]
    NotEmpty {
        /// Folder of the lab.
        folder: PathBuf,
    },
    /// A file or folder cannot be read, written or otherwise used.
    #[error("cannot {act} {}", .path.display())]
    File {
        /// Verb: `read`, `write`, …
        act: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A path is not UTF-8, but a configuration must be.
    #[error("{} is no UTF-8", .path.display())]
    Path {
        /// Path as given.
        path: PathBuf,
    },
    /// The file with the lab's state cannot be parsed.
    #[error("{} is no lab's state", .path.display())]
    State {
        /// File of the state.
        path: PathBuf,
        /// Error of the parser.
        source: serde_json::Error,
    },
    /// The lab was started by another version of gleaner.
    #[error("{} is of another version of gleaner", .path.display())]
    Version {
        /// File of the state.
        path: PathBuf,
    },
    /// A program of the system or of Gleaner cannot be started.
    #[error("cannot start {command}")]
    Start {
        /// The program, or its whole command.
        command: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A command that must succeed failed.
    #[error("{command} failed: {output}")]
    Command {
        /// The whole command.
        command: String,
        /// Error output of the program.
        output: String,
    },
    /// A host's enrolment failed.
    #[error("cannot enrol {host}: {output}")]
    Enrolment {
        /// Namespace of the host.
        host: String,
        /// Standard error of the agent.
        output: String,
    },
    /// A daemon did not create its file in time.
    #[error("{} did not appear{}", .path.display(), log_hint(.logs.as_deref()))]
    Late {
        /// Path of the file.
        path: PathBuf,
        /// Folder with the daemons' logs; one of them may contain the reason.
        logs: Option<PathBuf>,
    },
    /// A host did not mount the commons' folder in time.
    #[error("{} is not mounted; see {}", .point.display(), .log.display())]
    NoMount {
        /// Mount point of the host.
        point: PathBuf,
        /// Log of the host's commons.
        log: PathBuf,
    },
    /// A daemon of the lab has ended.
    #[error("{daemon} in {namespace} has ended; it said: {last}")]
    Ended {
        /// Name of the daemon.
        daemon: String,
        /// Network namespace of the node.
        namespace: String,
        /// Last line of the daemon's log.
        last: String,
    },
    /// A daemon does not answer.
    #[error("{daemon} does not answer")]
    Silent {
        /// Name of the daemon, with its article, such as "the clerk".
        daemon: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// A daemon answers with a status other than 200.
    #[error("{daemon} answers {line:?}")]
    Answer {
        /// Name of the daemon, with its article, such as "the clerk".
        daemon: &'static str,
        /// First line of the daemon's answer.
        line: String,
    },
    /// A daemon's answer is not the expected document.
    #[error("{subject}")]
    Document {
        /// Description of the document and of its fault.
        subject: &'static str,
        /// Error of the parser.
        source: serde_json::Error,
    },
    /// The namespace of a daemon cannot be entered.
    #[error("cannot enter its namespace")]
    Namespace {
        /// Name of the namespace.
        namespace: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The thread that queried a daemon panicked.
    #[error("the request to {daemon} failed")]
    Thread {
        /// Name of the daemon, with its article, such as "the clerk".
        daemon: &'static str,
    },
    /// A process of the lab survives SIGKILL.
    #[error("process {pid} does not end; see what holds it, then run this again")]
    Stuck {
        /// Id of the process.
        pid: u32,
    },
    /// Processes that are not the lab's still use its namespaces.
    #[error(
        "the lab's processes have ended, but others run in its namespaces: {pids}; end them, then run this again"
    )]
    Foreign {
        /// Ids of these processes.
        pids: String,
    },
    /// The lab failed to start and was removed.
    #[error("the lab did not start; only its logs remain, in {}", .folder.display())]
    NotUp {
        /// Folder of the lab.
        folder: PathBuf,
        /// Error that stopped the start.
        source: Box<LabError>,
    },
    /// The lab failed to start and cannot be removed.
    #[error("and its remains could not be removed")]
    Remains {
        /// Error that stopped the start.
        source: Box<LabError>,
    },
    /// A certificate or a token cannot be made.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

fn log_hint(logs: Option<&Path>) -> String {
    logs.map_or_else(String::new, |logs| {
        format!("; see the logs in {}", logs.display())
    })
}

/// Returns a closure that turns the system's error into [`LabError::File`].
pub(crate) fn file(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LabError {
    let path = path.to_owned();
    move |source| LabError::File { act, path, source }
}
