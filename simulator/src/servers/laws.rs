//! Conservation laws. Every simulation checks them, also in release builds.

/// A violated law, which is a defect of the simulation or of the policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokenLaw {
    /// A server has more pages than room.
    #[error("server {server} has {pages} pages and room for {room}")]
    Room {
        /// Number of the server.
        server: usize,
        /// Pages, second copies and reservations at the server.
        pages: u32,
        /// Pages that fit.
        room: u32,
    },
    /// A server's count differs from the pages that name the server.
    #[error("server {server} counts {counted} pages, and {named} name it")]
    Count {
        /// Number of the server.
        server: usize,
        /// Pages, second copies and reservations by the server's count.
        counted: u32,
        /// Pages, second copies and reservations that name the server.
        named: u32,
    },
    /// A page was lost under a policy that loses none.
    #[error("{pages} pages are lost, although the policy loses none")]
    Lost {
        /// Number of lost pages.
        pages: u64,
    },
    /// Messages were lost, or invented.
    #[error("{sent_bytes} bytes were sent and {received_bytes} received")]
    Bytes {
        /// Bytes of all messages sent.
        sent_bytes: u64,
        /// Bytes of all messages received.
        received_bytes: u64,
    },
    /// A client still waits for a page after all messages have arrived.
    #[error("{begun} page-ins were begun and {ended} ended")]
    PageIns {
        /// Page-ins that clients have begun.
        begun: u64,
        /// Page-ins that were answered.
        ended: u64,
    },
}
