//! Which hosts are asked next, and what is remembered for that between requests.

use crate::http::App;
use gleaner_policy::placement::{Candidate, Placement, Request, Shortage, State, place};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::hash::{BuildHasher, RandomState};
use std::sync::PoisonError;

/// Chance, and what policies remember.
pub(crate) struct Choice {
    random: ChaCha8Rng,
    state: State,
}

impl Default for Choice {
    fn default() -> Self {
        // Not secret, only unlike other recruiters'.
        let seed = RandomState::new().hash_one("placement");
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            state: State::default(),
        }
    }
}

impl App {
    /// Takes the hosts to be asked next out of `candidates`: one for each copy.
    pub(super) fn choose(
        &self,
        placement: Placement,
        request: &Request<'_>,
        candidates: &mut Vec<Candidate>,
    ) -> Result<Vec<Candidate>, Shortage> {
        let now_ms = self.now_ms();
        let mut choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let Choice { random, state } = &mut *choice;
        let random = &mut || random.next_u64();
        let chosen = place(placement, state, request, candidates, random, now_ms)?;
        drop(choice);
        let hosts = chosen.iter().map(|&i| candidates[i].clone()).collect();
        let mut i = 0;
        candidates.retain(|_| {
            i += 1;
            !chosen.contains(&(i - 1))
        });
        Ok(hosts)
    }
}
