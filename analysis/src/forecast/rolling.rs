//! Forecasts of past days, each from what was known when the day began, and the forecasts' scores.
//!
//! Day by day (UTC), first every instant of the day is forecast from what was learnt before; then the
//! outcomes that became known on that day are learnt, whichever day they began on. The first half of the days
//! is only learnt from, not scored.

use super::calibration::Calibration;
use super::counts::Count;
use super::region_shares::{Fit, LearntRegion, MODELS_COUNT};
use gleaner_policy::forecast::AHEAD;
use std::collections::BTreeMap;

/// Share of the days that are only learnt from.
const TEACHING_SHARE: f64 = 0.5;

/// Quality of the forecasts of one region.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scores {
    pub(super) ahead: [Score; AHEAD],
}

/// Scores at one horizon.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Score {
    /// Sums of squared errors of each model.
    pub(super) squares: [f64; MODELS_COUNT],
    pub(super) instants: u64,
    pub(super) origins: u64,
    pub(super) hosts_count: u64,
    /// Calibration of each model.
    pub(super) calibration: [Calibration; MODELS_COUNT],
}

/// Goes through all days of all hosts, given each host's counts. Returns what was learnt in the end, and the
/// scores. Calls `before` with each day and what was learnt before it.
pub(super) fn roll(
    hosts: &[&[Count]],
    mut before: impl FnMut(i64, &LearntRegion),
) -> (LearntRegion, Scores) {
    let mut learnt = LearntRegion::nothing(hosts.len());
    let mut scores = Scores {
        ahead: Default::default(),
    };
    let known_on = |count: &Count| i64::from(count.day) + i64::from(count.days_until_known);
    // Only days that occur in the counts are visited: a clock may have been years off.
    let mut begun: BTreeMap<i64, Vec<(usize, &Count)>> = BTreeMap::new();
    let mut known: BTreeMap<i64, KnownFacts<'_>> = BTreeMap::new();
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
    let teaching_count = (days.len() as f64 * TEACHING_SHARE).ceil() as usize;
    let first_scored = days.get(teaching_count).copied().unwrap_or(i64::MAX);
    for day in days {
        before(day, &learnt);
        let mut is_scored = [false; AHEAD];
        for (host, count) in begun.remove(&day).unwrap_or_default() {
            let fits = &mut known.entry(known_on(count)).or_default().fits;
            for ahead in 0..AHEAD {
                let (instants, lost) = (count.instants[ahead], count.lost[ahead]);
                if instants == 0 {
                    continue;
                }
                let Some(given) = learnt.probabilities(host, count.slot, count.bins, ahead) else {
                    continue;
                };
                fits[ahead].add(Fit::of(&given, instants, lost));
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
            learnt.add_fits(&known.fits);
        }
    }
    for (ahead, score) in scores.ahead.iter_mut().enumerate() {
        score.hosts_count = scored_hosts.iter().filter(|h| h[ahead]).count() as u64;
    }
    (learnt, scores)
}

/// Outcomes that become known on one day.
#[derive(Default)]
struct KnownFacts<'a> {
    counts: Vec<(usize, &'a Count)>,
    fits: [Fit; AHEAD],
}

impl Score {
    fn add(&mut self, models: &[f64; MODELS_COUNT], instants: u8, lost: u8) {
        let (lost_count, stayed) = (f64::from(lost), f64::from(instants - lost));
        for (squares, p) in self.squares.iter_mut().zip(models) {
            *squares += lost_count * (1.0 - p) * (1.0 - p) + stayed * p * p;
        }
        self.instants += u64::from(instants);
        for (calibration, p) in self.calibration.iter_mut().zip(models) {
            calibration.add(1.0 - p, instants, instants - lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::availability::periods::window::Window;
    use crate::forecast::counts::ForecastHost;
    use crate::forecast::instants::{self, DAY_MS, day};
    use gleaner_policy::forecast::{AHEAD_S, LOW_WATER_S, State, slot};
    use proptest::prelude::*;

    const REGION: i64 = 5;

    /// Times and available memory of a host. `steps` are pairs: minutes since the sample before, available
    /// bytes. Windows end at pauses of more than half an hour.
    fn trace(steps: &[(i64, i64)], until_ms: i64) -> (Vec<i64>, Vec<i64>) {
        let mut now = 0;
        let times = steps.iter().map(|(minutes, _)| {
            now += minutes * 60_000;
            now
        });
        let all = times.zip(steps.iter().map(|(_, available)| *available));
        all.take_while(|(time, _)| *time < until_ms).unzip()
    }

    fn windows(time: &[i64]) -> Vec<Window> {
        let ends =
            (1..=time.len()).filter(|&i| i == time.len() || time[i] - time[i - 1] > 30 * 60_000);
        let mut start = 0;
        ends.map(|end| {
            let window = Window {
                samples: start..end,
                end_ms: time[end - 1],
                start_seen: false,
                end: None,
                observed_to_ms: time[end - 1],
            };
            start = end;
            window
        })
        .collect()
    }

    fn hours(time: &[i64]) -> Vec<u8> {
        let hour = |t: &i64| (t.div_euclid(3_600_000)).rem_euclid(168) as u8;
        time.iter().map(hour).collect()
    }

    fn counts(steps: &[(i64, i64)], until_ms: i64) -> Vec<Count> {
        let (time, available) = trace(steps, until_ms);
        let (windows, instants) = (windows(&time), instants::of(&time));
        let seen = ForecastHost {
            time_ms: &time,
            available_bytes: &available,
            hours_of_week: &hours(&time),
            instants: &instants,
            low_bytes: &instants::low_water(&time, &available, &instants),
            last_low_bytes: 0,
            days_until_known: &instants::days_until_known(&time, &instants, &windows),
            windows: &windows,
            is_open: None,
        };
        seen.count(|_| REGION).counts
    }

    /// Hosts with a few days of a region that comes and goes.
    fn hosts() -> impl Strategy<Value = Vec<Vec<(i64, i64)>>> {
        let minutes = prop_oneof![20 => 1..20i64, 1 => 31..600i64];
        let step = (minutes, prop_oneof![12 => 5..12i64, 1 => 0..5i64]);
        prop::collection::vec(prop::collection::vec(step, 300..700), 1..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Counts learnt before a day equal those learnt from a trace that ends there.
        #[test]
        fn the_future_changes_no_forecast(hosts in hosts(), origin in 1..6i64) {
            let of = |until_ms| -> Vec<Vec<Count>> {
                hosts.iter().map(|steps| counts(steps, until_ms)).collect()
            };
            let (whole, cut) = (of(i64::MAX), of(origin * DAY_MS));
            let slices = |all: &[Vec<Count>]| roll_before(all, origin);
            prop_assert_eq!(slices(&whole), slices(&cut));
        }

        /// Compares with counts made instant by instant, from the definition.
        #[test]
        fn counts_equal_the_slow_version(hosts in hosts()) {
            let steps = &hosts[0];
            let found = counts(steps, i64::MAX);
            let (time, available) = trace(steps, i64::MAX);
            let mut slowly = std::collections::BTreeMap::new();
            for window in windows(&time) {
                for i in window.samples.clone() {
                    let is_instant = i == 0 || time[i] / 600_000 != time[i - 1] / 600_000;
                    if !is_instant || available[i] < REGION {
                        continue;
                    }
                    let first = (window.samples.start..=i).rev().take_while(|&k| available[k] >= REGION);
                    let last_day = (0..=i).filter(|&k| time[i] - time[k] <= LOW_WATER_S * 1000);
                    let state = State {
                        age_s: (time[i] - time[first.last().unwrap()]) / 1000,
                        available_bytes: available[i],
                        low_bytes: last_day.map(|k| available[k]).min().unwrap(),
                        region_bytes: REGION,
                    };
                    for (ahead, ahead_s) in AHEAD_S.into_iter().enumerate() {
                        let then = time[i] + ahead_s * 1000;
                        let beyond = window.samples.clone().find(|&k| time[k] > then);
                        let Some(beyond) = beyond else { continue };
                        let lost = (i..=beyond).any(|k| time[k] <= then && available[k] < REGION);
                        let key = (
                            day(time[i]), day(time[beyond]), slot(hours(&time)[i]),
                            state.bins().unwrap(), ahead,
                        );
                        let sum: &mut (u64, u64) = slowly.entry(key).or_default();
                        sum.0 += 1;
                        sum.1 += u64::from(lost);
                    }
                }
            }
            let mut fast = std::collections::BTreeMap::new();
            for c in &found {
                for ahead in (0..AHEAD).filter(|&a| c.instants[a] > 0) {
                    let day = i64::from(c.day);
                    let key = (day, day + i64::from(c.days_until_known), c.slot, c.bins, ahead);
                    let sums = (u64::from(c.instants[ahead]), u64::from(c.lost[ahead]));
                    prop_assert_eq!(fast.insert(key, sums), None, "one count each");
                }
            }
            prop_assert_eq!(fast, slowly);
        }
    }

    /// Returns the counts learnt before a day, or the final ones if the data ends earlier.
    fn roll_before(hosts: &[Vec<Count>], origin: i64) -> LearntRegion {
        let mut at_origin = None;
        let counts: Vec<&[Count]> = hosts.iter().map(Vec::as_slice).collect();
        let (last, _) = roll(&counts, |day, learnt| {
            if day >= origin && at_origin.is_none() {
                at_origin = Some(learnt.clone());
            }
        });
        at_origin.unwrap_or(last)
    }

    fn steady(day: i32, instants: u8, lost: u8) -> Count {
        Count {
            day,
            days_until_known: 1,
            slot: 0,
            bins: gleaner_policy::forecast::Bins {
                age: 0,
                margin: 0,
                low: 0,
            },
            instants: [instants; AHEAD],
            lost: [lost; AHEAD],
        }
    }

    #[test]
    fn scores_worked_by_hand() {
        // Outcomes are known a day later, so the last of the five days is day 4. The first three days are
        // only learnt from, not scored.
        let counts: Vec<Count> = [1, 3, 0, 2]
            .into_iter()
            .zip(0..)
            .map(|(lost, day)| steady(day, 4, lost))
            .collect();
        let (learnt, scores) = roll(&[&counts], |_, _| {});
        let score = &scores.ahead[0];
        // Day 3 is forecast from days 0 and 1, whose outcomes were known by day 2: 4 of 8 lost.
        assert_eq!(
            (score.instants, score.origins, score.hosts_count),
            (4, 1, 1)
        );
        for squares in &score.squares {
            assert!((squares - 4.0 * 0.25).abs() < 1e-12, "{squares}");
        }
        let bin = score.calibration[0].bins[5];
        assert_eq!((bin.instants, bin.stayed), (4, 2));
        assert!((bin.forecast - 2.0).abs() < 1e-12);
        assert_eq!((learnt.all[0].instants, learnt.all[0].lost), (16, 6));
    }

    #[test]
    fn nothing_gives_no_score() {
        let (_, scores) = roll(&[], |_, _| {});
        assert!(scores.ahead.iter().all(|s| s.instants == 0));
        let one = [steady(7, 4, 1)];
        let (_, scores) = roll(&[&one, &[]], |_, _| {});
        assert!(scores.ahead.iter().all(|s| s.instants == 0));
    }

    #[test]
    fn a_clock_that_was_years_off_shortens_no_lesson() {
        let mut counts = vec![steady(0, 4, 1)];
        counts.extend((20_000..20_008).map(|day| steady(day, 4, 1)));
        counts.push(steady(i32::MAX, 4, 1));
        let (_, scores) = roll(&[&counts], |_, _| {});
        // The days are 0, 1, 20000 to 20008 and the last two: the first seven of these thirteen are only
        // learnt from.
        assert_eq!(scores.ahead[0].origins, 4);
    }
}
