//! In which order hosts are asked, and what is remembered for that between requests.

use super::PlacementName;
use crate::http::App;
use crate::registry::{HostId, Wanted};
use gleaner_policy::placement::Candidate;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::hash::{BuildHasher, RandomState};
use std::sync::PoisonError;

/// Chance.
pub(crate) struct Choice {
    random: ChaCha8Rng,
}

impl Default for Choice {
    fn default() -> Self {
        // Not secret, only unlike other recruiters'.
        let seed = RandomState::new().hash_one("placement");
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }
}

impl App {
    /// Hosts in the order in which they are asked.
    pub(super) fn order(
        &self,
        placement: PlacementName,
        candidates: &[Candidate],
        _wanted: &Wanted,
        _missing: usize,
    ) -> Vec<HostId> {
        let mut choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keyed: Vec<(bool, f64, u64, &Candidate)> = candidates
            .iter()
            .map(|candidate| {
                let failed = candidate.failed_ms.is_some_and(|failed_ms| {
                    self.now_ms() - failed_ms < self.asking.avoid_failed_ms
                });
                let chance = choice.random.next_u64();
                let key = match placement {
                    PlacementName::Random | PlacementName::EpochWeights => 0.0,
                    PlacementName::FewestPages => candidate.lent_bytes as f64,
                    PlacementName::FewestRequests => candidate.requests_per_s,
                    PlacementName::Spread => candidate.client_bytes as f64,
                    PlacementName::Stick => -(candidate.client_bytes as f64),
                    PlacementName::LongestAvailable => -candidate.stays.unwrap_or_default(),
                };
                (failed, key, chance, candidate)
            })
            .collect();
        keyed.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let ids = keyed
            .iter()
            .map(|(.., candidate)| HostId::from(&*candidate.host_id));
        ids.collect()
    }
}
