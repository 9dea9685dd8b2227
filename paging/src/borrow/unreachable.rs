//! Hosts that granted a lease and then served no page of it.
//!
//! A recruiter reaches a memory server by the link that the server opened. Whether a client reaches it is another matter (a closed
//! port, another network), which only the client can know: it names such hosts in its next requests.

use super::MOST_AVOIDED;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Hosts to avoid, each for the refraction period after its last failure.
#[derive(Debug)]
pub struct Unreachable {
    refraction: Duration,
    since: BTreeMap<String, Instant>,
}

impl Unreachable {
    /// Returns an empty list whose hosts are avoided for `refraction` each.
    #[must_use]
    pub const fn new(refraction: Duration) -> Self {
        Self {
            refraction,
            since: BTreeMap::new(),
        }
    }

    /// Time for which a host is avoided after its last failure.
    #[must_use]
    pub const fn refraction(&self) -> Duration {
        self.refraction
    }

    /// Adds a host; the one that failed longest ago makes room where there are too many.
    pub fn add(&mut self, host: String, now: Instant) {
        self.since.insert(host, now);
        if self.since.len() > MOST_AVOIDED {
            let oldest = self.since.iter().min_by_key(|(_, since)| **since);
            if let Some(oldest) = oldest.map(|(host, _)| host.clone()) {
                self.since.remove(&oldest);
            }
        }
    }

    /// Host ids whose refraction period is not over.
    pub fn hosts(&mut self, now: Instant) -> Vec<String> {
        let refraction = self.refraction;
        self.since
            .retain(|_, since| now.duration_since(*since) < refraction);
        self.since.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_avoided_for_the_refraction_period_after_its_last_failure() {
        let now = Instant::now();
        let at = |s| now + Duration::from_secs(s);
        let mut unreachable = Unreachable::new(Duration::from_secs(60));
        unreachable.add("a".to_owned(), at(0));
        unreachable.add("b".to_owned(), at(30));
        assert_eq!(unreachable.hosts(at(59)), ["a", "b"]);
        unreachable.add("a".to_owned(), at(59));
        assert_eq!(unreachable.hosts(at(100)), ["a"]);
        assert!(unreachable.hosts(at(119)).is_empty());
    }

    #[test]
    fn the_list_stays_as_short_as_recruiters_accept() {
        let now = Instant::now();
        let mut unreachable = Unreachable::new(Duration::from_secs(600));
        for host in 0..MOST_AVOIDED as u64 + 3 {
            unreachable.add(format!("{host:03}"), now + Duration::from_secs(host));
        }
        let hosts = unreachable.hosts(now + Duration::from_secs(100));
        assert_eq!(hosts.len(), MOST_AVOIDED);
        assert_eq!(hosts[0], "003");
    }
}
