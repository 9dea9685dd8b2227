//! Errors of reading from Prometheus; each has its place and a remedy.

use std::io;
use std::path::PathBuf;

/// Reason why Prometheus' samples could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrometheusError {
    /// The server does not answer.
    #[error("cannot query {url}: {why}; see that Prometheus runs there, and that --url names it")]
    Unreachable {
        /// URL of the request.
        url: String,
        /// Error of the connection.
        why: String,
    },
    /// The server rejects the request.
    #[error(
        "{url} answers {status}; name a file with a token that may read by --bearer-file, or ask its owner"
    )]
    NotAdmitted {
        /// URL of the request.
        url: String,
        /// Status of the answer.
        status: u16,
    },
    /// The address belongs to another program than Prometheus.
    #[error("{url} answers {status} and not as Prometheus does ({why}); see that --url names one")]
    Stranger {
        /// URL of the request.
        url: String,
        /// Status of the answer.
        status: u16,
        /// Fault of the answer.
        why: String,
    },
    /// Prometheus rejects the query.
    #[error("{url} refuses: {why}; see what --selector, --from and --until say")]
    Refused {
        /// URL of the request.
        url: String,
        /// Error text of the server.
        why: String,
    },
    /// The server warns that the answer may be incomplete.
    #[error("{url} warns that its answer may not be whole: {why}; import again when it is")]
    Partial {
        /// URL of the request.
        url: String,
        /// Warning of the server.
        why: String,
    },
    /// The server cannot answer the query, not even for the shortest time range.
    #[error(
        "{url} cannot answer for so much: {why}; ask for fewer machines or a shorter time by --selector, --from and --until"
    )]
    TooMuch {
        /// URL of the request.
        url: String,
        /// Error text of the server.
        why: String,
    },
    /// The token or the certificates cannot be used.
    #[error("{}: {why}", path.display())]
    Credentials {
        /// Path of the file.
        path: PathBuf,
        /// Fault of the file.
        why: String,
    },
    /// The folder is not a Prometheus folder.
    #[error(
        "{} holds neither a folder `wal` nor a block of samples; name what Prometheus' --storage.tsdb.path names, or a snapshot", folder.display()
    )]
    NoTsdb {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// The system reports an error.
    #[error("cannot read {}: {source}", folder.display())]
    Io {
        /// Path of the folder.
        folder: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// promtool is not installed.
    #[error(
        "cannot run promtool, which reads Prometheus' folders: {source}; it is in Debian's package `prometheus`"
    )]
    NoPromtool {
        /// Error of the system.
        source: io::Error,
    },
    /// `promtool` failed.
    #[error("promtool cannot read {}: {said}", folder.display())]
    Promtool {
        /// Path of the folder.
        folder: PathBuf,
        /// Error output of promtool.
        said: String,
    },
    /// The output of promtool has an unknown form.
    #[error("promtool's output for {} has an unreadable line {number}: {why}; report this with promtool's version", folder.display())]
    Dump {
        /// Path of the folder.
        folder: PathBuf,
        /// Number of the line in the output, from 1.
        number: u64,
        /// Fault of the output.
        why: String,
    },
    /// No series comes from node_exporter.
    #[error(
        "{origin} has no series node_memory_MemTotal_bytes that matches; node_exporter makes it on Linux: see what --selector, --from and --until say"
    )]
    NoMachines {
        /// The address or folder.
        origin: String,
    },
}
