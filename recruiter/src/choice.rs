//! Chooses the next hosts to ask, with the state that placement policies keep between requests.

use gleaner_policy::placement::{Candidate, Placement, Request, Shortage, State, place};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::hash::{BuildHasher, RandomState};

/// Random numbers and state of the placement policies.
pub(crate) struct Choice {
    random: ChaCha8Rng,
    state: State,
}

impl Default for Choice {
    fn default() -> Self {
        // The seed need not be secret. It must only differ from the seeds of other recruiters.
        let seed = RandomState::new().hash_one("placement");
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            state: State::default(),
        }
    }
}

impl Choice {
    /// Chooses the next hosts to ask, one for each copy. Returns their indices in `candidates`.
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
