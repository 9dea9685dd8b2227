//! Hosts that granted a lease but then could not be reached for its pages.
//!
//! A recruiter reaches a memory server over the link that the server opened. A client may fail to reach that
//! server (closed port, other network), and only the client can know: it lists such hosts in its next
//! requests.

use gleaner_policy::refraction::Refraction;
use gleaner_schemas::lending::MOST_AVOIDED;
use std::collections::BTreeMap;

/// Hosts to avoid, each for the refraction period after its last failure. All times are of one clock that
/// never goes back.
#[derive(Debug)]
pub struct UnreachableHosts {
    period_ms: i64,
    hosts: BTreeMap<String, Refraction>,
}

impl UnreachableHosts {
    /// Returns an empty list whose hosts are avoided for `period_ms` each.
    #[must_use]
    pub const fn new(period_ms: i64) -> Self {
        Self {
            period_ms,
            hosts: BTreeMap::new(),
        }
    }

    /// Time for which a host is avoided after its last failure.
    #[must_use]
    pub const fn period_ms(&self) -> i64 {
        self.period_ms
    }

    /// Adds a host; if there are too many, replaces the one whose failure is oldest.
    pub fn add(&mut self, host: String, now_ms: i64) {
        let refraction = Refraction::since(now_ms, self.period_ms);
        self.hosts.insert(host, refraction);
        if self.hosts.len() > MOST_AVOIDED {
            let soonest = self.hosts.iter();
            let soonest = soonest.min_by_key(|(_, refraction)| refraction.remaining_ms(now_ms));
            if let Some(host) = soonest.map(|(host, _)| host.clone()) {
                self.hosts.remove(&host);
            }
        }
    }

    /// Returns the ids of hosts whose refraction period is not over.
    pub fn hosts(&mut self, now_ms: i64) -> Vec<String> {
        self.hosts
            .retain(|_, refraction| !refraction.may_ask(now_ms));
        self.hosts.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_avoided_for_the_refraction_period_after_its_last_failure() {
        let mut unreachable = UnreachableHosts::new(60_000);
        unreachable.add("a".to_owned(), 0);
        unreachable.add("b".to_owned(), 30_000);
        assert_eq!(unreachable.hosts(59_000), ["a", "b"]);
        unreachable.add("a".to_owned(), 59_000);
        assert_eq!(unreachable.hosts(100_000), ["a"]);
        assert!(unreachable.hosts(119_000).is_empty());
    }

    #[test]
    fn the_list_stays_as_short_as_recruiters_accept() {
        let mut unreachable = UnreachableHosts::new(600_000);
        for host in 0..MOST_AVOIDED as i64 + 3 {
            unreachable.add(format!("{host:03}"), host * 1000);
        }
        let hosts = unreachable.hosts(100_000);
        assert_eq!(hosts.len(), MOST_AVOIDED);
        assert_eq!(hosts[0], "003");
    }
}
