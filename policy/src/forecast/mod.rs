//! How likely a region that is available now is to stay so: half the state that it is in, half the host's habits.
//!
//! ```text
//! lost = w · habit(host, time of the week) + (1 − w) · state(age, margin, low water)
//! ```
//!
//! *State*: what share of regions in the same state was lost, on all hosts: by how long the region has been
//! available, by how much more than it is, and by the lowest available memory of the last 24 hours. *Habit*: what share
//! this host lost at this time of the week, whatever the state. Where few instants were seen either is drawn towards
//! the coarser figure that it refines ([`shrunk`]). The weight `w` is what would have served past forecasts best.
//!
//! All of it are shares that can be counted by hand, kept in a table ([`table::Table`]); the analysis makes the
//! table, and this module is what looks a probability up, for whoever asks.

pub mod table;

/// Version of the bins and of what the table's figures mean: another one is not read.
pub const TABLE_VERSION: i64 = 1;

/// How far ahead forecasts look.
pub const AHEAD_S: [i64; AHEAD] = [
    600, 1800, 3600, 7200, 14_400, 21_600, 28_800, 43_200, 86_400,
];
/// How many that are.
pub const AHEAD: usize = 9;

/// Bins of the age begin here (seconds), after a first one from 0.
pub const AGE_BINS_S: [i64; 3] = [1800, 14_400, 86_400];
/// Bins of available memory over the region's size begin here, after a first one from 1.
pub const MARGIN_BINS: [f64; 5] = [1.1, 1.25, 1.5, 2.0, 4.0];
/// Bins of the lowest available memory over the region's size begin here, after a first one from 0.
pub const LOW_BINS: [f64; 5] = [0.8, 1.0, 1.25, 1.5, 2.0];
/// Time over which the lowest available memory is sought.
pub const LOW_WATER_S: i64 = 86_400;

/// Times of the week: each four hours of a working day, and of a day of the weekend.
pub const SLOTS: usize = 12;

/// A region that is available now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// How long it has been, as far as was seen.
    pub age_s: i64,
    /// Available memory.
    pub available_bytes: i64,
    /// Lowest available memory of the last 24 hours, as far as was seen.
    pub low_bytes: i64,
    /// The region's size.
    pub region_bytes: i64,
}

/// The bins that a state falls into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bins {
    /// Of the age.
    pub age: u8,
    /// Of the margin.
    pub margin: u8,
    /// Of the low water.
    pub low: u8,
}

impl State {
    /// Its bins; `None` where the region is not available.
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
    /// How many of each kind there are: age, margin, low water.
    pub const COUNTS: [usize; 3] = [
        AGE_BINS_S.len() + 1,
        MARGIN_BINS.len() + 1,
        LOW_BINS.len() + 1,
    ];
}

/// The time of the week of an hour of it (0 is Monday's first, 167 Sunday's last).
#[must_use]
pub const fn slot(hour_of_week: u8) -> u8 {
    let weekend = if hour_of_week >= 5 * 24 { 6 } else { 0 };
    weekend + hour_of_week % 24 / 4
}

/// A share of `lost` in `instants`, drawn towards `coarser` as if that had been seen in `weight` instants more.
#[must_use]
pub fn shrunk(lost: u64, instants: u64, coarser: f64, weight: f64) -> f64 {
    (lost as f64 + weight * coarser) / (instants as f64 + weight)
}

/// Instants for which a coarser cell counts in its finer ones.
pub const STATE_WEIGHT: f64 = 10.0;
/// Instants for which all hosts count in one host's share: what a day has, one each ten minutes.
pub const HOST_WEIGHT: f64 = 144.0;
/// Instants for which a host's share counts in that of a time of the week: what one slot of a day has.
pub const SLOT_WEIGHT: f64 = 24.0;

/// The probability that a region is lost.
#[must_use]
pub fn lost(habit: f64, state: f64, habit_weight: f64) -> f64 {
    (habit_weight * habit + (1.0 - habit_weight) * state).clamp(0.0, 1.0)
}

/// Smallest probability that [`log_odds`] tells from 0.
const LEAST: f64 = 1e-7;

/// Natural logarithm of the odds `p / (1 − p)`; those of 0 and 1 are finite, as if they were 10⁻⁷ away.
#[must_use]
pub fn log_odds(p: f64) -> f64 {
    let p = p.clamp(LEAST, 1.0 - LEAST);
    (p / (1.0 - p)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Not available, or no region.
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
        close(shrunk(0, 0, 0.25, 20.0), 0.25);
        close(shrunk(20, 20, 0.0, 20.0), 0.5);
        close(shrunk(980, 980, 0.0, 20.0), 0.98);
        close(lost(0.4, 0.1, 0.5), 0.25);
        close(lost(0.4, 0.1, 0.0), 0.1);
    }
}
