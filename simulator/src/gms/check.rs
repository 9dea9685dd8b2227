//! Conservation laws. Every simulation checks them, also in release builds.

use gleaner_policy::global::NodeId;

/// A violated law, which is a defect of the simulation or of the policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A node holds more pages than it has frames.
    #[error("node {node} holds {pages} pages in {frames} frames at {at_ns} ns")]
    Frames {
        /// Number of the node.
        node: NodeId,
        /// Pages of the node.
        pages: u32,
        /// Frames of the node.
        frames: u32,
        /// Time of the violation.
        at_ns: u64,
    },
    /// Reads of a program were lost, or answered twice.
    #[error("node {node} has {reads} reads and {answered} answers")]
    Reads {
        /// Number of the node.
        node: NodeId,
        /// Reads of the node's program.
        reads: u64,
        /// Reads that local memory, the cluster or the source answered.
        answered: u64,
    },
    /// A page was ready for which no program waits, or another one than the awaited page.
    #[error("node {node} receives an unexpected page at {at_ns} ns")]
    Unexpected {
        /// Number of the node.
        node: NodeId,
        /// Time of the violation.
        at_ns: u64,
    },
    /// A put page caused more than one transfer.
    #[error("a put to node {node} causes {puts} other puts at {at_ns} ns")]
    Puts {
        /// Receiver of the put.
        node: NodeId,
        /// Puts that the receiver sent.
        puts: usize,
        /// Time of the violation.
        at_ns: u64,
    },
    /// The weights of an epoch exceed the frames of the cluster.
    #[error("the weights of epoch {epoch} sum to {sum}, and the cluster has {frames} frames")]
    Weights {
        /// Number of the epoch.
        epoch: u64,
        /// Sum of the weights.
        sum: u64,
        /// Upper bound of the frames of all nodes.
        frames: u64,
    },
    /// Messages were lost, or invented.
    #[error("{sent_bytes} bytes were sent and {received_bytes} received")]
    Bytes {
        /// Bytes of all messages sent.
        sent_bytes: u64,
        /// Bytes of all messages received.
        received_bytes: u64,
    },
    /// Two nodes hold global copies of a page after all messages have arrived.
    #[error("nodes {first} and {second} both hold a global copy of a page")]
    GlobalCopies {
        /// First node with a copy.
        first: NodeId,
        /// Second node with a copy.
        second: NodeId,
    },
    /// A page on a node is not in the directory after all messages have arrived.
    #[error("a page on node {node} is not in the directory")]
    Unknown {
        /// Node that holds the page.
        node: NodeId,
    },
}
