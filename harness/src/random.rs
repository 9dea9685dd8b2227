//! Chance in tests, which can be repeated.
#![allow(clippy::unwrap_used)]

use std::time::SystemTime;

/// A number of the environment's.
///
/// # Panics
/// When the variable is no number.
#[must_use]
#[track_caller]
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Numbers that look random (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Seeds it by `GLEANER_SEED`, or else the clock, and prints the seed.
    ///
    /// # Panics
    /// When that variable is no number.
    #[must_use]
    #[allow(clippy::new_without_default)] // each is another
    pub fn new() -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let seed = number("GLEANER_SEED", now.as_nanos() as u64);
        println!("GLEANER_SEED={seed} repeats this run");
        Self(seed)
    }

    /// Next number, from 0 and below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
