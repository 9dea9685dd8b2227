//! Forecasts of days that lay ahead, each made from what was known when the day began, and their scores.
//!
//! Day by day (UTC): first every instant of the day is forecast from what had been learnt before; then the fates that came
//! to be known on that day are learnt, whichever day they began on. The first half of the days only teaches.

use super::counts::Count;
use super::learnt::{Learnt, MODELS_COUNT, Weight};
use gleaner_policy::forecast::AHEAD;
use std::collections::BTreeMap;

/// Share of the days that only teach.
const TEACHING_SHARE: f64 = 0.5;
/// Bounds of the bins of probability to stay available: most forecasts are close to 1.
pub(super) const CALIBRATION_BINS: [f64; 13] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
];
const BINS_COUNT: usize = CALIBRATION_BINS.len() - 1;

/// How good the forecasts of one region were.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scores {
    pub(super) ahead: [Score; AHEAD],
}

/// Some time ahead.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Score {
    /// Sums of squared errors of each model.
    pub(super) squares: [f64; MODELS_COUNT],
    pub(super) instants: u64,
    pub(super) origins: u64,
    pub(super) hosts_count: u64,
    pub(super) calibration: [CalibrationBin; BINS_COUNT],
}

/// Forecasts of about the same probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CalibrationBin {
    pub(super) instants: u64,
    /// Sum of the forecasts.
    pub(super) forecast: f64,
    /// Regions that stayed available.
    pub(super) stayed: u64,
}

/// Goes through all days of all hosts, each by its counts. Gives what was learnt in the end, and the scores on the way.
pub(super) fn roll(hosts: &[&[Count]]) -> (Learnt, Scores) {
    let mut learnt = Learnt::nothing(hosts.len());
    let mut scores = Scores {
        ahead: Default::default(),
    };
    let all = || hosts.iter().flat_map(|counts| counts.iter());
    let known_on = |count: &Count| i64::from(count.day) + i64::from(count.known_after_days);
    let (Some(first), Some(last)) = (
        all().map(|c| i64::from(c.day)).min(),
        all().map(known_on).max(),
    ) else {
        return (learnt, scores);
    };
    let days_count = last - first + 1;
    let first_scored = first + (days_count as f64 * TEACHING_SHARE).ceil() as i64;
    // Only days on which something happened: a clock may have been years off.
    let mut begun: BTreeMap<i64, Vec<(usize, &Count)>> = BTreeMap::new();
    let mut known: BTreeMap<i64, Known<'_>> = BTreeMap::new();
    for (host, counts) in hosts.iter().enumerate() {
        for count in *counts {
            begun
                .entry(count.day.into())
                .or_default()
                .push((host, count));
            let known = known.entry(known_on(count)).or_default();
            known.counts.push((host, count));
        }
    }
    let mut scored_hosts = vec![[false; AHEAD]; hosts.len()];
    let days: Vec<i64> = {
        let mut days: Vec<i64> = begun.keys().chain(known.keys()).copied().collect();
        days.sort_unstable();
        days.dedup();
        days
    };
    for day in days {
        let mut is_scored = [false; AHEAD];
        for (host, count) in begun.remove(&day).unwrap_or_default() {
            let weights = &mut known.entry(known_on(count)).or_default().weights;
            for ahead in 0..AHEAD {
                let (instants, lost) = (count.instants[ahead], count.lost[ahead]);
                if instants == 0 {
                    continue;
                }
                let Some(given) = learnt.probabilities(host, count.slot, count.bins, ahead) else {
                    continue;
                };
                weights[ahead].add(Weight::of(&given, instants, lost));
                if day >= first_scored {
                    scores.ahead[ahead].add(&given.models, instants, lost);
                    is_scored[ahead] = true;
                    scored_hosts[host][ahead] = true;
                }
            }
        }
        for (score, is_scored) in scores.ahead.iter_mut().zip(is_scored) {
            score.origins += u64::from(is_scored);
        }
        if let Some(known) = known.remove(&day) {
            for (host, count) in known.counts {
                learnt.add(host, count);
            }
            learnt.add_weights(&known.weights);
        }
    }
    for (ahead, score) in scores.ahead.iter_mut().enumerate() {
        score.hosts_count = scored_hosts.iter().filter(|h| h[ahead]).count() as u64;
    }
    (learnt, scores)
}

/// What comes to be known on one day.
#[derive(Default)]
struct Known<'a> {
    counts: Vec<(usize, &'a Count)>,
    weights: [Weight; AHEAD],
}

impl Score {
    fn add(&mut self, models: &[f64; MODELS_COUNT], instants: u8, lost: u8) {
        let (lost_count, stayed) = (f64::from(lost), f64::from(instants - lost));
        for (squares, p) in self.squares.iter_mut().zip(models) {
            *squares += lost_count * (1.0 - p) * (1.0 - p) + stayed * p * p;
        }
        self.instants += u64::from(instants);
        let [gleaner, ..] = models;
        let forecast = 1.0 - gleaner;
        let inner = &CALIBRATION_BINS[1..BINS_COUNT];
        let bin = &mut self.calibration[inner.partition_point(|bound| *bound <= forecast)];
        bin.instants += u64::from(instants);
        bin.forecast += forecast * f64::from(instants);
        bin.stayed += u64::from(instants - lost);
    }

    /// Adds the forecasts of another region to the calibration.
    pub(super) fn add_calibration(&mut self, other: &Self) {
        for (mine, other) in self.calibration.iter_mut().zip(&other.calibration) {
            mine.instants += other.instants;
            mine.forecast += other.forecast;
            mine.stayed += other.stayed;
        }
    }
}
