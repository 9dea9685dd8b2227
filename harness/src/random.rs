//! Reproducible random numbers for tests.
#![allow(clippy::unwrap_used)]

use std::time::SystemTime;

/// Returns the number in the environment variable `name`, or `default` if the variable is not set.
///
/// # Panics
/// If the variable is not a number.
#[must_use]
#[track_caller]
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A generator of pseudo-random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Makes a generator with the seed in `GLEANER_SEED`, or with a seed from the clock if that variable is
    /// not set. Prints the seed.
    ///
    /// # Panics
    /// If that variable is not a number.
    #[must_use]
    #[allow(clippy::new_without_default)] // each value differs
    pub fn new() -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let seed = number("GLEANER_SEED", now.as_nanos() as u64);
        println!("GLEANER_SEED={seed} repeats this run");
        Self(seed)
    }

    /// Returns the next number: at least 0, and less than `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
