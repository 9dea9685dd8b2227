//! Probability that a region available now stays available, from its state and from the host's habits.
//!
//! ```text
//! mixed = w · habit(host, time of the week) + (1 − w) · state(host, age, margin, low water)
//! lost  = mixed, with its log-odds moved by the factor β away from those of all regions together
//! ```
//!
//! - *State*: of this host's regions in the same state, the share that was lost. A state is the region's age,
//!   the ratio of available memory to the region's size, and the ratio of the lowest available memory of the
//!   last 24 hours to that size. The share is drawn towards that of all hosts in the state, by
//!   [`host_cell_weight`].
//! - *Habit*: of this host's regions at this time of the week, in any state, the share that was lost.
//! - A share over few instants is drawn towards the share of the coarser group that contains it
//!   ([`shrunk_share`]).
//! - *Spread*: a mixture of two forecasts is too cautious even if neither of them is. Its log-odds are
//!   therefore moved away from those of all regions together ([`spread`]).
//! - The weight `w` and the spread `β` are those that would have served past forecasts best.
//!
//! All of these are shares that can be counted by hand, kept in a table ([`table::Table`]). The analysis
//! makes the table; this module looks probabilities up in it.

pub mod table;

use serde::{Deserialize, Serialize};

/// Version of the bins and of the meaning of the figures. A table of another version is not read.
pub const TABLE_VERSION: i64 = 2;

/// Horizons of the forecasts, in seconds.
pub const AHEAD_S: [i64; AHEAD] = [
    600, 1800, 3600, 7200, 14_400, 21_600, 28_800, 43_200, 86_400,
];
/// Number of horizons.
pub const AHEAD: usize = 9;

/// Lower bounds of the bins of age (seconds); the first bin starts at 0.
pub const AGE_BINS_S: [i64; 3] = [1800, 14_400, 86_400];
/// Lower bounds of the bins of available memory divided by the region's size; the first bin starts at 1.
pub const MARGIN_BINS: [f64; 5] = [1.1, 1.25, 1.5, 2.0, 4.0];
/// Lower bounds of the bins of the lowest available memory divided by the region's size; the first bin starts
/// at 0.
pub const LOW_BINS: [f64; 5] = [0.8, 1.0, 1.25, 1.5, 2.0];
/// Period over which the lowest available memory is taken.
pub const LOW_WATER_S: i64 = 86_400;

/// Number of slots of the week: every four hours of a working day, and every four hours of a weekend day.
pub const SLOTS: usize = 12;

/// A region that is available now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Time for which the region has been available, as far as it was observed.
    pub age_s: i64,
    /// Available memory, in bytes.
    pub available_bytes: i64,
    /// Lowest available memory of the last 24 hours, as far as it was observed.
    pub low_bytes: i64,
    /// The region's size.
    pub region_bytes: i64,
}

/// The bins that a state falls into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Bins {
    /// Index of the age's bin.
    pub age: u8,
    /// Index of the margin's bin: available memory divided by the region's size.
    pub margin: u8,
    /// Index of the low water's bin: lowest available memory divided by the region's size.
    pub low: u8,
}

impl State {
    /// Bins of the state; `None` if the region is not available.
    #[must_use]
    pub fn bins(&self) -> Option<Bins> {
        if self.region_bytes <= 0 || self.available_bytes < self.region_bytes {
            return None;
        }
        let ratio = |bytes: i64| bytes as f64 / self.region_bytes as f64;
        let bin = |bounds: &[f64], value: f64| bounds.iter().filter(|b| value >= **b).count() as u8;
        Some(Bins {
            age: AGE_BINS_S.iter().filter(|s| self.age_s >= **s).count() as u8,
            margin: bin(&MARGIN_BINS, ratio(self.available_bytes)),
            low: bin(&LOW_BINS, ratio(self.low_bytes)),
        })
    }
}

impl Bins {
    /// Number of bins of each kind: age, margin, low water.
    pub const COUNTS: [usize; 3] = [
        AGE_BINS_S.len() + 1,
        MARGIN_BINS.len() + 1,
        LOW_BINS.len() + 1,
    ];
}

/// Slot of an hour of the week (hour 0 is Monday's first, hour 167 Sunday's last).
#[must_use]
pub const fn slot(hour_of_week: u8) -> u8 {
    let weekend = if hour_of_week >= 5 * 24 { 6 } else { 0 };
    weekend + hour_of_week % 24 / 4
}

/// The share `lost / instants`, drawn towards `coarser` as if `coarser` had been observed in `weight` further
/// instants.
#[must_use]
pub fn shrunk_share(lost: u64, instants: u64, coarser: f64, weight: f64) -> f64 {
    (lost as f64 + weight * coarser) / (instants as f64 + weight)
}

/// Weight with which a state's share is drawn towards the share of the next coarser state, in instants.
pub const STATE_WEIGHT: f64 = 10.0;
/// Weight with which a host's share is drawn towards the share of all hosts, in instants: as many as one day
/// has, at one every ten minutes.
pub const HOST_WEIGHT: f64 = 144.0;
/// Weight with which a host's share at a time of the week is drawn towards the host's share at any time, in
/// instants: as many as one slot of one day has.
pub const SLOT_WEIGHT: f64 = 24.0;

/// Seconds between two instants at which a region's outcome is counted.
const INSTANT_S: f64 = 600.0;
/// Weight with which a host's share in a state is drawn towards all hosts' share in it, in multiples of the
/// horizon.
const HOST_CELL_LOOKS: f64 = 12.0;

/// Weight with which a host's share in a state is drawn towards all hosts' share in that state, in instants:
/// twelve times the number within the horizon. Instants within one horizon mostly share one outcome, so more
/// of them add little.
#[must_use]
pub fn host_cell_weight(ahead: usize) -> f64 {
    HOST_CELL_LOOKS * instants_within(ahead)
}

/// Number of instants within a horizon, given its index in [`AHEAD_S`]; 0 for an index beyond the last.
#[must_use]
pub fn instants_within(ahead: usize) -> f64 {
    AHEAD_S.get(ahead).map_or(0.0, |s| *s as f64 / INSTANT_S)
}

/// Probability that a region is lost, mixed from the host's habit and the region's state.
#[must_use]
pub fn mixed(habit: f64, state: f64, habit_weight: f64) -> f64 {
    (habit_weight * habit + (1.0 - habit_weight) * state).clamp(0.0, 1.0)
}

/// Moves a probability so that its log-odds are `by` times as far from those of `about`: a factor above 1
/// moves it away from `about`, one below 1 closer to it. Probabilities of 0 and 1 stay unchanged, and all do
/// if `about` is 0 or 1.
#[must_use]
pub fn spread(probability: f64, about: f64, by: f64) -> f64 {
    let is_certain = |p: f64| p <= 0.0 || p >= 1.0;
    if is_certain(probability) || is_certain(about) {
        return probability;
    }
    let centre = log_odds(about);
    let moved = centre + by * (log_odds(probability) - centre);
    1.0 / (1.0 + (-moved).exp())
}

/// Smallest probability that [`log_odds`] distinguishes from 0.
const LEAST: f64 = 1e-7;

/// Natural logarithm of the odds `p / (1 − p)`; 0 and 1 count as 10⁻⁷ and 1 − 10⁻⁷, which keeps the result
/// finite.
#[must_use]
pub fn log_odds(p: f64) -> f64 {
    let p = p.clamp(LEAST, 1.0 - LEAST);
    (p / (1.0 - p)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GIB: i64 = 1 << 30;

    #[test]
    fn states_fall_into_bins() {
        let bins = |age_s, available, low, region| {
            let state = State {
                age_s,
                available_bytes: available,
                low_bytes: low,
                region_bytes: region,
            };
            state.bins().map(|b| (b.age, b.margin, b.low))
        };
        assert_eq!(bins(0, GIB, 0, GIB), Some((0, 0, 0)));
        assert_eq!(bins(1799, GIB, GIB, GIB), Some((0, 0, 2)));
        assert_eq!(bins(1800, 2 * GIB, GIB, GIB), Some((1, 4, 2)));
        assert_eq!(bins(86_400, 9 * GIB, 8 * GIB, GIB), Some((3, 5, 5)));
        // A region that is not available, and a region of size 0.
        assert_eq!(bins(86_400, GIB - 1, GIB, GIB), None);
        assert_eq!(bins(0, GIB, 0, 0), None);
        assert_eq!(Bins::COUNTS, [4, 6, 6]);
    }

    #[test]
    fn slots_of_the_week() {
        // Monday 0:00 and 9:00, Friday 23:00, Saturday 0:00, Sunday 23:00.
        let hours = [0, 9, 4 * 24 + 23, 5 * 24, 6 * 24 + 23];
        assert_eq!(hours.map(slot), [0, 2, 5, 6, 11]);
        assert!((0..168).all(|hour| usize::from(slot(hour)) < SLOTS));
    }

    #[test]
    fn few_instants_are_drawn_to_the_coarser_share() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(shrunk_share(0, 0, 0.25, 20.0), 0.25);
        close(shrunk_share(20, 20, 0.0, 20.0), 0.5);
        close(shrunk_share(980, 980, 0.0, 20.0), 0.98);
        close(mixed(0.4, 0.1, 0.5), 0.25);
        close(mixed(0.4, 0.1, 0.0), 0.1);
    }

    #[test]
    fn odds_are_spread_from_those_of_any_region() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        // Odds of 4 and 1/4, while `about` has even odds. Twice the log-odds makes them 16 and 1/16; half
        // makes them 2 and 1/2.
        close(spread(0.8, 0.5, 2.0), 16.0 / 17.0);
        close(spread(0.2, 0.5, 2.0), 1.0 / 17.0);
        close(spread(0.8, 0.5, 0.5), 2.0 / 3.0);
        // Odds of 1/9, while `about` has odds of 1/3: their ratio of 1/3 becomes 1/9.
        close(spread(0.1, 0.25, 2.0), 1.0 / 28.0);
        close(spread(0.25, 0.25, 2.0), 0.25);
        for by in [0.5, 1.0, 2.0] {
            for certain in [0.0, 1.0] {
                assert_eq!(spread(certain, 0.3, by), certain);
                assert_eq!(spread(0.3, certain, by), 0.3);
            }
        }
    }

    proptest! {
        /// A spread probability stays within 0 and 1 and on its side of `about`. A larger factor moves it
        /// further. The order of probabilities stays.
        #[test]
        fn spread_keeps_sides_and_order(
            p in 0.0..=1.0f64, q in 0.0..=1.0f64, about in 0.0..=1.0f64, by in 0.5..2.0f64,
        ) {
            let found = spread(p, about, by);
            prop_assert!((0.0..=1.0).contains(&found));
            prop_assert!((spread(p, about, 1.0) - p).abs() < 1e-6);
            prop_assert!(found == p || (found - about) * (p - about) >= -1e-6);
            if p <= q {
                prop_assert!(found <= spread(q, about, by) + 1e-12);
            }
        }

        /// A share stays between the observed share and the one that it is drawn towards.
        #[test]
        fn a_share_lies_between(lost in 0..500u64, stayed in 1..500u64, coarser in 0.0..=1.0f64, ahead in 0..AHEAD) {
            let own = lost as f64 / (lost + stayed) as f64;
            let found = shrunk_share(lost, lost + stayed, coarser, host_cell_weight(ahead));
            prop_assert!(found >= own.min(coarser) - 1e-12 && found <= own.max(coarser) + 1e-12);
        }
    }

    #[test]
    fn the_longer_the_time_ahead_the_less_an_instant_tells() {
        assert_eq!(host_cell_weight(0), 12.0);
        assert_eq!(host_cell_weight(2), 72.0);
        assert_eq!(host_cell_weight(AHEAD - 1), 1728.0);
    }
}
