//! What has been learnt about one region from the fates known so far, and the probabilities that follow.

use super::counts::Count;
use gleaner_policy::forecast::{
    AHEAD, Bins, HOST_WEIGHT, SLOT_WEIGHT, SLOTS, STATE_WEIGHT, lost, shrunk,
};

/// What the weight of habits is before there are forecasts to learn it from,
const FIRST_HABIT_WEIGHT: f64 = 0.1;
/// and how much that counts: as so much squared difference of the two parts.
const FIRST_WEIGHT_COUNTS: f64 = 50.0;
/// Instants for which climatology counts in the plain shares of the models to beat: they need a figure where nothing
/// was seen.
const PLAIN_WEIGHT: f64 = 1.0;

/// Models, in the order of [`Probabilities`].
pub(super) const MODELS: [&str; MODELS_COUNT] =
    ["gleaner", "climatology", "age", "host_rate", "bins"];
pub(super) const MODELS_COUNT: usize = 5;

/// A share: regions lost of instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) instants: u64,
    pub(super) lost: u64,
}

/// By the time ahead.
pub(super) type Shares = [Share; AHEAD];

/// Everything learnt about one region in one scope.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Learnt {
    pub(super) all: Shares,
    pub(super) by_age: Vec<Shares>,
    pub(super) by_margin: Vec<Shares>,
    pub(super) by_bins: Vec<Shares>,
    pub(super) hosts: Vec<Shares>,
    /// Of each host, by time of the week.
    pub(super) slots: Vec<[Shares; SLOTS]>,
    weights: [Weight; AHEAD],
}

/// What the weight of habits follows from: sums over past forecasts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Weight {
    /// (habit − state) · (what happened − state)
    towards: f64,
    /// (habit − state)²
    squares: f64,
}

/// Probabilities that a region is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Probabilities {
    /// In the order of [`MODELS`].
    pub(super) models: [f64; MODELS_COUNT],
    habit: f64,
    state: f64,
}

impl Share {
    fn add(&mut self, instants: u8, lost: u8) {
        self.instants += u64::from(instants);
        self.lost += u64::from(lost);
    }

    fn towards(&self, coarser: f64, weight: f64) -> f64 {
        shrunk(self.lost, self.instants, coarser, weight)
    }
}

impl Weight {
    /// Of so many instants that were forecast as `given`.
    pub(super) fn of(given: &Probabilities, instants: u8, lost: u8) -> Self {
        let (instants, lost) = (f64::from(instants), f64::from(lost));
        let difference = given.habit - given.state;
        Self {
            towards: difference * (lost - instants * given.state),
            squares: difference * difference * instants,
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.towards += other.towards;
        self.squares += other.squares;
    }

    /// The one that would have given the least Brier score.
    fn best(self) -> f64 {
        let towards = self.towards + FIRST_WEIGHT_COUNTS * FIRST_HABIT_WEIGHT;
        (towards / (self.squares + FIRST_WEIGHT_COUNTS)).clamp(0.0, 1.0)
    }
}

/// Indices of cells: by age and margin, and by all three.
pub(super) fn places(bins: Bins) -> (usize, usize) {
    let [_, margins, lows] = Bins::COUNTS;
    let by_margin = usize::from(bins.age) * margins + usize::from(bins.margin);
    (by_margin, by_margin * lows + usize::from(bins.low))
}

impl Learnt {
    pub(super) fn nothing(hosts_count: usize) -> Self {
        let [ages, margins, lows] = Bins::COUNTS;
        let none = Shares::default();
        Self {
            all: none,
            by_age: vec![none; ages],
            by_margin: vec![none; ages * margins],
            by_bins: vec![none; ages * margins * lows],
            hosts: vec![none; hosts_count],
            slots: vec![[none; SLOTS]; hosts_count],
            weights: [Weight::default(); AHEAD],
        }
    }

    pub(super) fn add(&mut self, host: usize, count: &Count) {
        let (by_margin, by_bins) = places(count.bins);
        let shares = [
            &mut self.all,
            &mut self.by_age[usize::from(count.bins.age)],
            &mut self.by_margin[by_margin],
            &mut self.by_bins[by_bins],
            &mut self.hosts[host],
            &mut self.slots[host][usize::from(count.slot)],
        ];
        for shares in shares {
            let counted = count.instants.iter().zip(&count.lost);
            for (share, (&instants, &lost)) in shares.iter_mut().zip(counted) {
                share.add(instants, lost);
            }
        }
    }

    pub(super) fn add_weights(&mut self, weights: &[Weight; AHEAD]) {
        for (mine, weight) in self.weights.iter_mut().zip(weights) {
            mine.add(*weight);
        }
    }

    /// How much habits count.
    pub(super) fn habit_weight(&self, ahead: usize) -> f64 {
        self.weights[ahead].best()
    }

    /// What every model says; `None` where nothing was followed that long.
    pub(super) fn probabilities(
        &self,
        host: usize,
        slot: u8,
        bins: Bins,
        ahead: usize,
    ) -> Option<Probabilities> {
        let climatology = self.climatology(ahead)?;
        let (_, by_bins) = places(bins);
        let plain = |shares: &Shares| shares[ahead].towards(climatology, PLAIN_WEIGHT);
        let state = self.state(bins, ahead)?;
        let habit = self.habit(host, Some(slot), ahead)?;
        Some(Probabilities {
            models: [
                lost(habit, state, self.habit_weight(ahead)),
                climatology,
                plain(&self.by_age[usize::from(bins.age)]),
                plain(&self.hosts[host]),
                plain(&self.by_bins[by_bins]),
            ],
            habit,
            state,
        })
    }

    /// Of any state.
    pub(super) fn climatology(&self, ahead: usize) -> Option<f64> {
        let Share { instants, lost } = self.all[ahead];
        (instants > 0).then(|| lost as f64 / instants as f64)
    }

    /// Of an age.
    pub(super) fn of_age(&self, age: usize, ahead: usize) -> Option<f64> {
        let climatology = self.climatology(ahead)?;
        Some(self.by_age[age][ahead].towards(climatology, STATE_WEIGHT))
    }

    /// Of an age and margin.
    pub(super) fn of_margin(&self, bins: Bins, ahead: usize) -> Option<f64> {
        let of_age = self.of_age(usize::from(bins.age), ahead)?;
        let (by_margin, _) = places(bins);
        Some(self.by_margin[by_margin][ahead].towards(of_age, STATE_WEIGHT))
    }

    /// Of all three.
    pub(super) fn state(&self, bins: Bins, ahead: usize) -> Option<f64> {
        let of_margin = self.of_margin(bins, ahead)?;
        let (_, by_bins) = places(bins);
        Some(self.by_bins[by_bins][ahead].towards(of_margin, STATE_WEIGHT))
    }

    /// Of a host at a time of the week, or any. One that never lost such a region is the same at all times.
    pub(super) fn habit(&self, host: usize, slot: Option<u8>, ahead: usize) -> Option<f64> {
        let of_host = self.hosts[host][ahead];
        let any_time = of_host.towards(self.climatology(ahead)?, HOST_WEIGHT);
        match slot {
            Some(slot) if of_host.lost > 0 => {
                let share = self.slots[host][usize::from(slot)][ahead];
                Some(share.towards(any_time, SLOT_WEIGHT))
            }
            _ => Some(any_time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_policy::forecast::{AHEAD_S, SLOTS};

    fn count(slot: u8, bins: (u8, u8, u8), instants: u8, lost: u8) -> Count {
        Count {
            day: 0,
            known_after_days: 0,
            slot,
            bins: Bins {
                age: bins.0,
                margin: bins.1,
                low: bins.2,
            },
            instants: [instants; AHEAD],
            lost: [lost; AHEAD],
        }
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a}, not {b}");
    }

    #[test]
    fn shares_worked_by_hand() {
        let mut learnt = Learnt::nothing(2);
        assert_eq!(learnt.climatology(0), None);
        let bins = Bins {
            age: 1,
            margin: 2,
            low: 3,
        };
        assert_eq!(learnt.probabilities(0, 0, bins, 0), None);
        // Host 0 loses 30 of 40 in one state at one time, host 1 none of 60 in another state.
        learnt.add(0, &count(5, (1, 2, 3), 40, 30));
        learnt.add(1, &count(5, (1, 0, 3), 60, 0));
        let climatology = 0.3;
        let age = (30.0 + 10.0 * climatology) / 110.0;
        let margin = (30.0 + 10.0 * age) / 50.0;
        let state = (30.0 + 10.0 * margin) / 50.0;
        let any_time = (30.0 + 144.0 * climatology) / 184.0;
        let habit = (30.0 + 24.0 * any_time) / 64.0;
        let given = learnt.probabilities(0, 5, bins, 0).unwrap();
        close(given.state, state);
        close(given.habit, habit);
        close(given.models[0], 0.1 * habit + 0.9 * state);
        close(given.models[1], climatology);
        close(given.models[2], 30.3 / 101.0);
        close(given.models[3], 30.3 / 41.0);
        close(given.models[4], 30.3 / 41.0);
        // At another time: what the host does at any. The other host, which never lost one: the same at all times.
        close(learnt.habit(0, Some(4), 0).unwrap(), any_time);
        let never = 144.0 * climatology / 204.0;
        for slot in 0..SLOTS as u8 {
            close(learnt.habit(1, Some(slot), 0).unwrap(), never);
        }
    }

    #[test]
    fn the_weight_goes_to_what_served_better() {
        let given = Probabilities {
            models: [0.0; MODELS_COUNT],
            habit: 0.9,
            state: 0.1,
        };
        let weight = |lost: u8| {
            let mut learnt = Learnt::nothing(1);
            for _ in 0..100 {
                learnt.add_weights(&[Weight::of(&given, 100, lost); AHEAD]);
            }
            learnt.habit_weight(AHEAD_S.len() - 1)
        };
        assert!(weight(90) > 0.99);
        assert!(weight(10) < 0.01);
        assert!((weight(50) - 0.5).abs() < 0.01);
        // No more than all, no less than nothing.
        close(weight(100), 1.0);
        close(weight(0), 0.0);
        close(Learnt::nothing(1).habit_weight(0), FIRST_HABIT_WEIGHT);
    }
}
