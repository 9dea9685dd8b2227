//! Choice of the hosts that are asked next, and the memory of it between requests.

use gleaner_policy::placement::{Candidate, Placement, Request, Shortage, State, place};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::hash::{BuildHasher, RandomState};

/// Chance, and what policies remember.
pub(crate) struct Choice {
    random: ChaCha8Rng,
    state: State,
}

impl Default for Choice {
    fn default() -> Self {
        // The seed need not be secret, only different from other recruiters'.
        let seed = RandomState::new().hash_one("placement");
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            state: State::default(),
        }
    }
}

impl Choice {
    /// Chooses the hosts to be asked next, one for each copy: their places among `candidates`.
    pub(crate) fn choose(
        &mut self,
        placement: Placement,
        request: &Request<'_>,
        candidates: &[Candidate],
        now_ms: i64,
    ) -> Result<Vec<usize>, Shortage> {
        let random = &mut || self.random.next_u64();
        let state = &mut self.state;
        place(placement, state, request, candidates, random, now_ms)
    }
}
