//! Shares learnt for one region from the outcomes known so far, and the probabilities that follow.

use super::counts::Count;
use gleaner_policy::forecast::{
    AHEAD, Bins, HOST_WEIGHT, SLOT_WEIGHT, SLOTS, STATE_WEIGHT, host_cell_weight, instants_within,
    log_odds, mixed, shrunk_share, spread as spread_from,
};
use std::collections::BTreeMap;

/// Weight of habits before past forecasts determine it.
const FIRST_HABIT_WEIGHT: f64 = 0.1;
/// Weight of [`FIRST_HABIT_WEIGHT`] in the fit, as a sum over instants of the squared difference of habit and
/// state.
const FIRST_WEIGHT_COUNTS: f64 = 50.0;
/// Spread of forecasts before past forecasts determine it.
const FIRST_SPREAD: f64 = 1.0;
/// Weight of [`FIRST_SPREAD`] in the fit, as information per instant within the horizon: such instants share
/// their outcomes.
const FIRST_SPREAD_COUNTS: f64 = 100.0;
/// Minimum and maximum of the spread.
const SPREADS: (f64, f64) = (0.5, 2.0);
/// Weight of climatology, in instants, in the shares of the models to beat. These models need a figure even
/// in a state without instants.
const PLAIN_WEIGHT: f64 = 1.0;

/// Models, in the order of [`Probabilities`].
pub(super) const MODELS: [&str; MODELS_COUNT] =
    ["gleaner", "climatology", "age", "host_rate", "bins"];
pub(super) const MODELS_COUNT: usize = 5;

/// A share: number of instants, and of those whose region was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) instants: u64,
    pub(super) lost: u64,
}

/// Shares by horizon.
pub(super) type Shares = [Share; AHEAD];

/// Everything learnt about one region in one scope.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LearntRegion {
    pub(super) all: Shares,
    pub(super) by_age: Vec<Shares>,
    pub(super) by_margin: Vec<Shares>,
    pub(super) by_bins: Vec<Shares>,
    pub(super) hosts: Vec<Shares>,
    /// Shares of each host, by time of the week.
    pub(super) slots: Vec<[Shares; SLOTS]>,
    /// Shares of each host by state; the key is the state's index over all bins ([`places`]).
    pub(super) host_cells: Vec<BTreeMap<usize, Shares>>,
    fits: [Fit; AHEAD],
}

/// Sums over past forecasts, from which the habits' weight and the spread are fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fit {
    habit: Regression,
    spread: Regression,
}

/// Sums of a regression through the origin, of `y − first guess` on `x` (`y` is the outcome).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Regression {
    /// Sum of x · (outcome − first guess).
    towards: f64,
    /// Weighted sum of x².
    squares: f64,
}

/// Probabilities that a region is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Probabilities {
    /// Probability of each model, in the order of [`MODELS`].
    pub(super) models: [f64; MODELS_COUNT],
    habit: f64,
    state: f64,
    /// Mixture of habit and state, before the spread.
    pub(super) mixed: f64,
}

impl Share {
    fn add(&mut self, instants: u8, lost: u8) {
        self.instants += u64::from(instants);
        self.lost += u64::from(lost);
    }

    fn towards(&self, coarser: f64, weight: f64) -> f64 {
        shrunk_share(self.lost, self.instants, coarser, weight)
    }
}

impl Regression {
    /// Sums over instants with the same `x`, `weight` and first guess (`guess`); `lost` of them were lost.
    fn of(x: f64, weight: f64, guess: f64, instants: u8, lost: u8) -> Self {
        let (instants, lost) = (f64::from(instants), f64::from(lost));
        Self {
            towards: x * (lost - instants * guess),
            squares: x * x * weight * instants,
        }
    }

    fn add(&mut self, other: Self) {
        self.towards += other.towards;
        self.squares += other.squares;
    }

    /// The regression's coefficient, drawn towards `first` as if `first` had been observed with `counts` as
    /// its sum of squares.
    fn towards(self, first: f64, counts: f64) -> f64 {
        (self.towards + counts * first) / (self.squares + counts)
    }
}

impl Fit {
    /// Sums over `instants` instants with the forecast `given`.
    pub(super) fn of(given: &Probabilities, instants: u8, lost: u8) -> Self {
        let p = given.mixed;
        let [_, climatology, ..] = given.models;
        let x = if can_spread_around(climatology) {
            log_odds(p) - log_odds(climatology)
        } else {
            0.0
        };
        Self {
            habit: Regression::of(given.habit - given.state, 1.0, given.state, instants, lost),
            spread: Regression::of(x, p * (1.0 - p), p, instants, lost),
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.habit.add(other.habit);
        self.spread.add(other.spread);
    }

    /// The weight of habits that would have minimised the Brier score.
    fn habit_weight(self) -> f64 {
        let weight = self.habit.towards(FIRST_HABIT_WEIGHT, FIRST_WEIGHT_COUNTS);
        weight.clamp(0.0, 1.0)
    }

    /// The spread that would have maximised the likelihood, by one step of Newton's method from unspread
    /// forecasts.
    fn spread(self, ahead: usize) -> f64 {
        let counts = FIRST_SPREAD_COUNTS * instants_within(ahead);
        let (least, most) = SPREADS;
        (FIRST_SPREAD + self.spread.towards(0.0, counts)).clamp(least, most)
    }
}

/// Returns true if forecasts can be spread around this probability.
const fn can_spread_around(climatology: f64) -> bool {
    climatology > 0.0 && climatology < 1.0
}

/// Indices of a state: by age and margin, and by all three bins.
pub(super) fn places(bins: Bins) -> (usize, usize) {
    let [_, margins, lows] = Bins::COUNTS;
    let by_margin = usize::from(bins.age) * margins + usize::from(bins.margin);
    (by_margin, by_margin * lows + usize::from(bins.low))
}

/// The bins whose index over all three is `by_bins`.
pub(super) fn bins_at(by_bins: usize) -> Bins {
    let [_, margins, lows] = Bins::COUNTS;
    Bins {
        age: (by_bins / lows / margins) as u8,
        margin: (by_bins / lows % margins) as u8,
        low: (by_bins % lows) as u8,
    }
}

impl LearntRegion {
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
            host_cells: vec![BTreeMap::new(); hosts_count],
            fits: [Fit::default(); AHEAD],
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
            self.host_cells[host].entry(by_bins).or_default(),
        ];
        for shares in shares {
            let counted = count.instants.iter().zip(&count.lost);
            for (share, (&instants, &lost)) in shares.iter_mut().zip(counted) {
                share.add(instants, lost);
            }
        }
    }

    pub(super) fn add_fits(&mut self, fits: &[Fit; AHEAD]) {
        for (mine, fit) in self.fits.iter_mut().zip(fits) {
            mine.add(*fit);
        }
    }

    /// Weight of habits in the forecasts at a horizon.
    pub(super) fn habit_weight(&self, ahead: usize) -> f64 {
        self.fits[ahead].habit_weight()
    }

    /// Probability around which forecasts are spread, and the spread; `None` if all regions were lost, or
    /// none.
    pub(super) fn spread(&self, ahead: usize) -> Option<(f64, f64)> {
        let about = self.climatology(ahead).filter(|c| can_spread_around(*c))?;
        Some((about, self.fits[ahead].spread(ahead)))
    }

    /// Probabilities of loss by every model; `None` if no instant could be followed to the horizon.
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
        let state = self.state_on(host, bins, ahead)?;
        let habit = self.habit(host, Some(slot), ahead)?;
        let mixed = mixed(habit, state, self.habit_weight(ahead));
        let spread = self.spread(ahead);
        Some(Probabilities {
            models: [
                spread.map_or(mixed, |(about, by)| spread_from(mixed, about, by)),
                climatology,
                plain(&self.by_age[usize::from(bins.age)]),
                plain(&self.hosts[host]),
                plain(&self.by_bins[by_bins]),
            ],
            habit,
            state,
            mixed,
        })
    }

    /// Probability of loss over all states.
    pub(super) fn climatology(&self, ahead: usize) -> Option<f64> {
        let Share { instants, lost } = self.all[ahead];
        (instants > 0).then(|| lost as f64 / instants as f64)
    }

    /// Probability of loss for an age.
    pub(super) fn of_age(&self, age: usize, ahead: usize) -> Option<f64> {
        let climatology = self.climatology(ahead)?;
        Some(self.by_age[age][ahead].towards(climatology, STATE_WEIGHT))
    }

    /// Probability of loss for an age and margin.
    pub(super) fn of_margin(&self, bins: Bins, ahead: usize) -> Option<f64> {
        let of_age = self.of_age(usize::from(bins.age), ahead)?;
        let (by_margin, _) = places(bins);
        Some(self.by_margin[by_margin][ahead].towards(of_age, STATE_WEIGHT))
    }

    /// Probability of loss for age, margin and low water.
    pub(super) fn state(&self, bins: Bins, ahead: usize) -> Option<f64> {
        let of_margin = self.of_margin(bins, ahead)?;
        let (_, by_bins) = places(bins);
        Some(self.by_bins[by_bins][ahead].towards(of_margin, STATE_WEIGHT))
    }

    /// Probability of loss for all three bins on one host; that of all hosts if the host was never in that
    /// state.
    pub(super) fn state_on(&self, host: usize, bins: Bins, ahead: usize) -> Option<f64> {
        let of_all = self.state(bins, ahead)?;
        let (_, by_bins) = places(bins);
        let own = self.host_cells[host].get(&by_bins);
        Some(own.map_or(of_all, |own| {
            own[ahead].towards(of_all, host_cell_weight(ahead))
        }))
    }

    /// Probability of loss for a host at a time of the week; `None`: at any time. For a host that never lost
    /// such a region it is the same at all times.
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
            days_until_known: 0,
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
        let mut learnt = LearntRegion::nothing(2);
        assert_eq!(learnt.climatology(0), None);
        let bins = Bins {
            age: 1,
            margin: 2,
            low: 3,
        };
        assert_eq!(learnt.probabilities(0, 0, bins, 0), None);
        // Host 0 loses 30 of 40 in one state at one time of the week; host 1 loses none of 60 in another
        // state.
        learnt.add(0, &count(5, (1, 2, 3), 40, 30));
        learnt.add(1, &count(5, (1, 0, 3), 60, 0));
        let climatology = 0.3;
        let age = (30.0 + 10.0 * climatology) / 110.0;
        let margin = (30.0 + 10.0 * age) / 50.0;
        let of_all = (30.0 + 10.0 * margin) / 50.0;
        // At a horizon of ten minutes, the share of all hosts weighs twelve instants in one host's share.
        let state = (30.0 + 12.0 * of_all) / 52.0;
        let any_time = (30.0 + 144.0 * climatology) / 184.0;
        let habit = (30.0 + 24.0 * any_time) / 64.0;
        let given = learnt.probabilities(0, 5, bins, 0).unwrap();
        close(given.state, state);
        close(given.habit, habit);
        // Without past forecasts, the result is not spread.
        close(given.models[0], 0.1 * habit + 0.9 * state);
        close(given.mixed, given.models[0]);
        close(learnt.state(bins, 0).unwrap(), of_all);
        // A day ahead, the share of all hosts weighs 1,728 instants. A host that was never in the state gets
        // that share.
        let state = learnt.state_on(0, bins, AHEAD - 1).unwrap();
        close(state, (30.0 + 1728.0 * of_all) / 1768.0);
        close(learnt.state_on(1, bins, 0).unwrap(), of_all);
        close(given.models[1], climatology);
        close(given.models[2], 30.3 / 101.0);
        close(given.models[3], 30.3 / 41.0);
        close(given.models[4], 30.3 / 41.0);
        // At another time of the week, host 0 has its share at any time. Host 1, which never lost a region,
        // has the same share at all times.
        close(learnt.habit(0, Some(4), 0).unwrap(), any_time);
        let never = 144.0 * climatology / 204.0;
        for slot in 0..SLOTS as u8 {
            close(learnt.habit(1, Some(slot), 0).unwrap(), never);
        }
    }

    #[test]
    fn indices_of_cells_and_back() {
        let [ages, margins, lows] = Bins::COUNTS;
        for index in 0..ages * margins * lows {
            assert_eq!(places(bins_at(index)).1, index);
        }
    }

    #[test]
    fn the_weight_goes_to_what_served_better() {
        let given = Probabilities {
            models: [0.0; MODELS_COUNT],
            habit: 0.9,
            state: 0.1,
            mixed: 0.1,
        };
        let weight = |lost: u8| {
            let mut learnt = LearntRegion::nothing(1);
            for _ in 0..100 {
                learnt.add_fits(&[Fit::of(&given, 100, lost); AHEAD]);
            }
            learnt.habit_weight(AHEAD_S.len() - 1)
        };
        assert!(weight(90) > 0.99);
        assert!(weight(10) < 0.01);
        assert!((weight(50) - 0.5).abs() < 0.01);
        // The weight is limited to 0 and 1.
        close(weight(100), 1.0);
        close(weight(0), 0.0);
        close(LearntRegion::nothing(1).habit_weight(0), FIRST_HABIT_WEIGHT);
    }

    #[test]
    fn forecasts_that_were_too_cautious_are_spread() {
        // Half of all regions are lost. Of 100 regions forecast to be lost in 1 of 5 cases, `lost` are lost;
        // of 100 forecast in 4 of 5 cases, all but `lost`.
        let spread = |lost: u8| {
            let mut learnt = LearntRegion::nothing(1);
            learnt.add(0, &count(0, (0, 0, 0), 100, 50));
            let given = |mixed| Probabilities {
                models: [mixed, 0.5, 0.5, 0.5, 0.5],
                habit: mixed,
                state: mixed,
                mixed,
            };
            for _ in 0..1000 {
                learnt.add_fits(&[Fit::of(&given(0.2), 100, lost); AHEAD]);
                learnt.add_fits(&[Fit::of(&given(0.8), 100, 100 - lost); AHEAD]);
            }
            let (about, by) = learnt.spread(0).unwrap();
            close(about, 0.5);
            by
        };
        close(spread(20), 1.0);
        // One step of Newton's method: log-odds of ∓1.386, 100 forecasts of each kind with a variance of 0.16.
        let x = 4.0_f64.ln();
        let step = |off: f64| 200_000.0 * x * off / (200_000.0 * x * x * 0.16 + 100.0);
        close(spread(15), 1.0 + step(0.05));
        close(spread(25), 1.0 - step(0.05));
        // The spread is limited to its bounds.
        close(spread(0), 1.0 + step(0.2).min(1.0));
        close(spread(100), 0.5);
        // If none or all were lost, the spread cannot be estimated.
        for lost in [0, 100] {
            let mut learnt = LearntRegion::nothing(1);
            learnt.add(0, &count(0, (0, 0, 0), 100, lost));
            assert_eq!(learnt.spread(0), None);
        }
        assert_eq!(LearntRegion::nothing(1).spread(0), None);
    }
}
