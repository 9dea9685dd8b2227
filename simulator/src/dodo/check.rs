//! Invariants of every run, under any settings. They are always checked, not only in tests.

/// A violated invariant, which is a defect of the simulation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Requests were lost, or were answered twice.
    #[error(
        "run {run} made {requests_count} requests, of which {local_requests_count} were answered locally, {remote_requests_count} from remote memory and {disk_requests_count} from disk"
    )]
    Requests {
        /// Number of the run.
        run: u64,
        /// Number of requests made.
        requests_count: u64,
        /// Requests answered by the client's own memory.
        local_requests_count: u64,
        /// Requests answered by hosts.
        remote_requests_count: u64,
        /// Requests answered by disks.
        disk_requests_count: u64,
    },
    /// A host lends more than it may.
    #[error("{host} lends {leased_bytes} bytes at {at_ns} ns and may lend {quota_bytes}")]
    Quota {
        /// Name of the host.
        host: String,
        /// Time of the violation.
        at_ns: u64,
        /// Bytes that the host lends.
        leased_bytes: u64,
        /// Bytes that the host may lend.
        quota_bytes: u64,
    },
    /// A host refused a lease that it had room for.
    #[error("{host} refuses {wanted_bytes} bytes at {at_ns} ns and has {unleased_bytes} unleased")]
    Refused {
        /// Name of the host.
        host: String,
        /// Time of the violation.
        at_ns: u64,
        /// Bytes of the host that are free to be leased.
        unleased_bytes: u64,
        /// Bytes that were requested.
        wanted_bytes: u64,
    },
    /// The bytes of a host's regions differ from the bytes that it lends.
    #[error("{host} lends {leased_bytes} bytes and holds regions of {held_bytes}")]
    Held {
        /// Name of the host.
        host: String,
        /// Bytes that the host lends.
        leased_bytes: u64,
        /// Sum of the bytes of the host's regions.
        held_bytes: u64,
    },
    /// A host answered after it had reclaimed its memory.
    #[error("{host} answers at {at_ns} ns, and lends nothing since {since_ns}")]
    Reclaimed {
        /// Name of the host.
        host: String,
        /// Time of the answer.
        at_ns: u64,
        /// Time since which the host lends nothing.
        since_ns: u64,
    },
}
