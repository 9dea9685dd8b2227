//! State of placements between requests, bounded in size.

use super::REFRACTION_MS;
use crate::refraction::Refraction;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of clients whose good hosts are remembered; beyond it, the client with the oldest
/// request is forgotten.
const MOST_CLIENTS: usize = 4096;

/// State of placements from one request to the next; losing it does no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    refraction_ms: i64,
    good: BTreeMap<String, RecentHosts>,
    epoch: Option<Epoch>,
}

/// Hosts on which a client's memory was last placed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecentHosts {
    host_ids: Vec<Arc<str>>,
    at_ms: i64,
}

/// Weights of hosts in bytes, and the time since which these weights hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) since_ms: i64,
    pub(super) weights: BTreeMap<Arc<str>, u64>,
}

impl Default for State {
    /// State with a refraction period of [`REFRACTION_MS`].
    fn default() -> Self {
        Self::new(REFRACTION_MS)
    }
}

impl State {
    /// An empty state; failed hosts are avoided for `refraction_ms`.
    #[must_use]
    pub fn new(refraction_ms: i64) -> Self {
        Self {
            refraction_ms,
            good: BTreeMap::new(),
            epoch: None,
        }
    }

    /// Remaining time for which a host is avoided.
    pub(super) fn refraction_left_ms(&self, failed_ms: Option<i64>, now_ms: i64) -> i64 {
        let since = |failed_ms| Refraction::since(failed_ms, self.refraction_ms);
        failed_ms.map_or(0, |failed_ms| since(failed_ms).remaining_ms(now_ms))
    }

    /// Hosts on which the client's memory was last placed.
    pub(super) fn last_hosts(&self, client: &str) -> &[Arc<str>] {
        self.good.get(client).map_or(&[], |good| &good.host_ids)
    }

    pub(super) fn remember(&mut self, client: &str, host_ids: Vec<Arc<str>>, now_ms: i64) {
        if self.good.len() >= MOST_CLIENTS && !self.good.contains_key(client) {
            let oldest = self.good.iter().min_by_key(|(_, good)| good.at_ms);
            if let Some(oldest) = oldest.map(|(client, _)| client.clone()) {
                self.good.remove(&oldest);
            }
        }
        let at_ms = now_ms;
        self.good
            .insert(client.to_owned(), RecentHosts { host_ids, at_ms });
    }

    pub(super) fn epoch(&mut self) -> &mut Option<Epoch> {
        &mut self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let mut state = State::default();
        for i in 0..MOST_CLIENTS + 2 {
            state.remember(&format!("{i}"), vec!["h".into()], i as i64);
        }
        assert_eq!(state.good.len(), MOST_CLIENTS);
        assert!(state.last_hosts("0").is_empty() && state.last_hosts("1").is_empty());
        assert_eq!(state.last_hosts("2"), ["h".into()]);
    }
}
