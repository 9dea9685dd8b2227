//! Load of the page server.

use gleaner_paging::nbd::{BOUNDS_US, Load};
use gleaner_schemas::lending::{LatencyClass, PagesServed};
use std::sync::Arc;

/// Minimum time between two measurements of the rate.
const LOOK_EVERY_MS: i64 = 1000;

/// Rate of served requests.
#[derive(Debug)]
pub(super) struct ServedRequests {
    load: Arc<Load>,
    looked_ms: i64,
    requests: u64,
    per_s: f64,
}

impl ServedRequests {
    pub(super) fn new(load: Arc<Load>, now_ms: i64) -> Self {
        Self {
            load,
            looked_ms: now_ms,
            requests: 0,
            per_s: 0.0,
        }
    }

    /// Returns the counts of all requests since the start.
    pub(super) fn told(&self) -> PagesServed {
        let counted = self.load.counted();
        let bounds = BOUNDS_US.iter().copied().map(Some).chain([None]);
        PagesServed {
            connections_count: counted.connections,
            requests_count: counted.requests,
            failed_count: counted.failed,
            latency: bounds
                .zip(counted.classes)
                .map(|(at_most_us, requests_count)| LatencyClass {
                    at_most_us,
                    requests_count,
                })
                .collect(),
        }
    }

    /// Returns the number of requests per second since the last measurement. If that was less than a second
    /// ago, returns its result again.
    pub(super) fn per_s(&mut self, now_ms: i64) -> f64 {
        let passed_ms = now_ms.saturating_sub(self.looked_ms);
        if passed_ms >= LOOK_EVERY_MS {
            let requests = self.load.counted().requests;
            let served = requests.saturating_sub(self.requests);
            self.per_s = served as f64 * 1000.0 / passed_ms as f64;
            (self.requests, self.looked_ms) = (requests, now_ms);
        }
        self.per_s
    }
}
