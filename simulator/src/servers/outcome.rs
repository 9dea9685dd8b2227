//! Results of a simulation.

use serde::Serialize;

/// Page-ins that waited for a server or a disk, within a part of the simulated time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageIns {
    /// Times of the page-ins, in ns, in increasing order.
    pub times_ns: Vec<u64>,
}

impl PageIns {
    /// Time within which this share of the page-ins ended; `None` without any.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let count = self.times_ns.len();
        let rank = (share * count as f64).ceil() as usize;
        self.times_ns.get(rank.clamp(1, count.max(1)) - 1).copied()
    }
}

/// Return of an owner to a server with more pages than the server may keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerReturn {
    /// Number of the server.
    pub server: u32,
    /// Time of the return.
    pub at_ns: u64,
    /// Pages to be returned to the owner.
    pub pages: u32,
    /// Time from the return until the owner had 99 % of these pages.
    pub owner_ns: Option<u64>,
    /// Time from the return until the last second copy that it made necessary arrived; `None` without copies.
    pub copied_ns: Option<u64>,
    /// Bytes that the shutdown sent over the network in the first 10 s.
    pub network_bytes: u64,
    /// Bytes that the server's disk read or wrote in the first 10 s.
    pub owner_disk_bytes: u64,
}

/// Results of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Returns of owners, in order of time.
    pub returns: Vec<OwnerReturn>,
    /// Page-ins that began before the first return; without returns, all.
    pub before: PageIns,
    /// Page-ins that began within 10 s after the first return.
    pub during: PageIns,
    /// Page-ins that began more than 10 s after the first return.
    pub after: PageIns,
    /// Page-ins that a server's memory answered, of all.
    pub server_page_ins: u64,
    /// Share of the used room that has pages of which no other server has a copy, at the begin.
    pub distinct_share: f64,
    /// Pages that would be lost with one server at the begin, for the worst server.
    pub lost_with_one_pages: u64,
    /// Pages lost in this simulation.
    pub lost_pages: u64,
    /// Messages between servers that are no part of a shutdown.
    pub preparation_messages: u64,
    /// Page-ins and page-outs of each server.
    pub server_requests: Vec<u64>,
    /// Servers that have pages of a client in the end, summed over clients.
    pub servers_of_clients: u64,
    /// Changes of clients to a better server.
    pub changes: u64,
    /// Number of clients.
    pub clients: u64,
    /// Time in which clients make requests.
    pub length_ns: u64,
    /// Bytes of all messages.
    pub network_bytes: u64,
}

impl Outcome {
    /// Number of all page-ins that waited.
    #[must_use]
    pub fn page_ins(&self) -> u64 {
        let parts = [&self.before, &self.during, &self.after];
        parts.iter().map(|part| part.times_ns.len() as u64).sum()
    }

    /// Standard deviation of the servers' requests over their mean; `None` without requests.
    #[must_use]
    pub fn load_variation(&self) -> Option<f64> {
        let count = self.server_requests.len() as f64;
        let mean = self.server_requests.iter().sum::<u64>() as f64 / count;
        let squares = self
            .server_requests
            .iter()
            .map(|n| (*n as f64 - mean).powi(2));
        let deviation = (squares.sum::<f64>() / count).sqrt();
        (mean > 0.0).then(|| deviation / mean)
    }
}
