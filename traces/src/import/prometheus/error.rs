//! What can go wrong between Prometheus and us, where, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why Prometheus' samples could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrometheusError {
    /// Nobody answers there.
    #[error("cannot ask {url}: {why}; see that Prometheus runs there, and that --url names it")]
    Unreachable {
        /// What was asked.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// Whoever answers does not want to.
    #[error(
        "{url} answers {status}; name a file with a token that may read by --bearer-file, or ask its owner"
    )]
    NotAdmitted {
        /// What was asked.
        url: String,
        /// Status of the answer.
        status: u16,
    },
    /// Whoever answers is no Prometheus.
    #[error("{url} answers {status} and not as Prometheus does ({why}); see that --url names one")]
    Stranger {
        /// What was asked.
        url: String,
        /// Status of the answer.
        status: u16,
        /// What is wrong with the answer.
        why: String,
    },
    /// Prometheus does not do it.
    #[error("{url} refuses: {why}; see what --selector, --from and --until say")]
    Refused {
        /// What was asked.
        url: String,
        /// What it says.
        why: String,
    },
    /// It says that something may be missing.
    #[error("{url} warns that its answer may not be whole: {why}; import again when it is")]
    Partial {
        /// What was asked.
        url: String,
        /// What it says.
        why: String,
    },
    /// Even a short time is too much for it.
    #[error(
        "{url} cannot answer for so much: {why}; ask for fewer machines or a shorter time by --selector, --from and --until"
    )]
    TooMuch {
        /// What was asked.
        url: String,
        /// What it says.
        why: String,
    },
    /// The token cannot be sent, or the certificates cannot be used.
    #[error("{}: {why}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The folder is none of Prometheus'.
    #[error(
        "{} holds neither a folder `wal` nor a block of samples; name what Prometheus' --storage.tsdb.path names, or a snapshot", folder.display()
    )]
    NoTsdb {
        /// The folder.
        folder: PathBuf,
    },
    /// The system did not do it.
    #[error("cannot read {}: {source}", folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// There is no promtool.
    #[error(
        "cannot run promtool, which reads Prometheus' folders: {source}; it is in Debian's package `prometheus`"
    )]
    NoPromtool {
        /// What the system said.
        source: io::Error,
    },
    /// `promtool` gave up.
    #[error("promtool cannot read {}: {said}", folder.display())]
    Promtool {
        /// The folder.
        folder: PathBuf,
        /// What it says.
        said: String,
    },
    /// `promtool` prints something else.
    #[error("promtool prints of {} what cannot be read: line {number}: {why}; say so to Gleaner's makers, with its version", folder.display())]
    Dump {
        /// The folder.
        folder: PathBuf,
        /// Line, from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// No series is one of node_exporter's.
    #[error(
        "{origin} has no series node_memory_MemTotal_bytes that is asked for; node_exporter makes it on Linux: see what --selector, --from and --until say"
    )]
    NoMachines {
        /// The address or folder.
        origin: String,
    },
}
