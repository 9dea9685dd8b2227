//! Number and latency of a server's requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram's classes, in microseconds. One more class, the last, has no bound.
pub const BOUNDS_US: [u64; 15] = [
    2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000, 10_000_000,
];

/// Counters since the start, over all connections.
#[derive(Debug, Default)]
pub struct Load {
    requests: AtomicU64,
    failed: AtomicU64,
    connections: AtomicU64,
    classes: [AtomicU64; BOUNDS_US.len() + 1],
    total_us: AtomicU64,
}

/// Values of [`Load`] at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// Number of requests answered.
    pub requests: u64,
    /// Number of requests answered with an error.
    pub failed: u64,
    /// Number of open connections.
    pub connections: u64,
    /// Number of requests in each class of time from arrival to answer: the classes of [`BOUNDS_US`], and the
    /// last class.
    pub classes: [u64; BOUNDS_US.len() + 1],
    /// Sum of the times from arrival to answer.
    pub total_us: u64,
}

impl Load {
    /// Counts `requests` requests that arrived together and were answered in `took`.
    pub(super) fn answered(&self, requests: u64, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = BOUNDS_US.partition_point(|bound| *bound < us);
        self.classes[class].fetch_add(requests, Ordering::Relaxed);
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.total_us
            .fetch_add(us.saturating_mul(requests), Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one more connection; returns false if `most` connections are open.
    pub(super) fn connect(&self, most: u64) -> bool {
        let one_more = |now| (now < most).then_some(now + 1);
        self.connections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
    }

    pub(super) fn disconnect(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Present values of the counters.
    #[must_use]
    pub fn counted(&self) -> LoadCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LoadCounts {
            requests: read(&self.requests),
            failed: read(&self.failed),
            connections: read(&self.connections),
            classes: self.classes.each_ref().map(read),
            total_us: read(&self.total_us),
        }
    }
}
