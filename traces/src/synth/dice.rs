//! Random draws from a seed; the same on every machine.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, LogNormal};

/// Stream of random numbers; a host has several.
#[derive(Clone, Debug)]
pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    /// Creates the stream numbered `stream` of the seed `seed`.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// Draws an id of 32 hex digits.
    pub(super) fn id(&mut self) -> String {
        format!("{:016x}{:016x}", self.0.next_u64(), self.0.next_u64())
    }

    /// Draws a whole number from 0 to below 2⁶³.
    pub(super) fn number(&mut self) -> i64 {
        (self.0.next_u64() >> 1).cast_signed()
    }

    /// Draws a number from 0 to below 1.
    pub(super) fn share(&mut self) -> f64 {
        self.0.random()
    }

    /// Returns true with the given probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// Draws a whole number from `least` to below `end`; returns `least` if this range is empty.
    pub(super) fn between(&mut self, least: i64, end: i64) -> i64 {
        if end <= least {
            return least;
        }
        self.0.random_range(least..end)
    }

    /// Draws a value around `median`, log-normal with `spread`; some values are several times the median.
    pub(super) fn around(&mut self, median: f64, spread: f64) -> f64 {
        let factor = LogNormal::new(0.0, spread).map_or(1.0, |factor| factor.sample(&mut self.0));
        median * factor
    }

    /// Draws the time until the next of events that are `mean` apart on average.
    pub(super) fn wait(&mut self, mean: f64) -> f64 {
        let wait: f64 = Exp1.sample(&mut self.0);
        mean * wait
    }
}
