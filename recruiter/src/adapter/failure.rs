//! Errors of `follow`, which follows a host's quota.

use std::path::PathBuf;

/// Reason why a quota cannot be followed, either for now or permanently.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file that cannot be used.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The contents are no quotas.
    #[error("{from} has no quotas: {source}")]
    Quotas {
        /// File or address of the contents.
        from: String,
        /// Error of the parser.
        source: serde_json::Error,
    },
    /// The file is no longer updated.
    #[error("{path} was last written more than {age_s} s ago: is its writer running?")]
    Stale {
        /// The file that cannot be used.
        path: PathBuf,
        /// Age of the file, in s.
        age_s: u64,
    },
    /// The recruiter does not answer, or refuses.
    #[error("no quotas from {url}: {why}")]
    Recruiter {
        /// Address of the server.
        url: String,
        /// Message of the server or the network.
        why: String,
    },
    /// The host whose quota to follow is unclear.
    #[error("{0}: name the host that the server runs on with --host")]
    Host(String),
    /// The memory server does not answer, or refuses.
    #[error("no answer from {name} at {address}: {why}")]
    Server {
        /// Name: memcached or Redis.
        name: &'static str,
        /// Address of the server.
        address: String,
        /// Message of the server or the network.
        why: String,
    },
    /// Unusable certificates of the adapter.
    #[error(transparent)]
    Trust(#[from] gleaner_trust::TrustError),
    /// Signals cannot be received.
    #[error("cannot listen to signals: {0}")]
    Signals(std::io::Error),
    /// No quota arrived in time.
    #[error("no news of the quota for {0} s; the limit is unchanged")]
    NothingHeard(u64),
}
