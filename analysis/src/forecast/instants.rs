//! Instants of one host, at which a forecast could have been requested: the first sample of every ten
//! minutes.
//!
//! The outcome for a region at a horizon is known once a sample lies beyond the horizon. It may be learnt
//! from on the day of that sample, not before.

use crate::availability::periods::window::Window;
use gleaner_policy::forecast::{AHEAD, AHEAD_S, LOW_WATER_S};
use std::collections::VecDeque;
use std::ops::Range;

const GRID_MS: i64 = 600_000;
pub(super) const DAY_MS: i64 = 86_400_000;
/// Number of days for an outcome that never becomes known.
pub(super) const NEVER: u8 = u8::MAX;

/// The horizons of the forecasts, in milliseconds.
pub(super) fn ahead_ms() -> [i64; AHEAD] {
    AHEAD_S.map(|s| s * 1000)
}

/// The UTC day of a time.
pub(super) fn day(time_ms: i64) -> i64 {
    time_ms.div_euclid(DAY_MS)
}

/// Indices of the samples that are instants, in order.
pub(super) fn of(time_ms: &[i64]) -> Vec<usize> {
    let cell = |i: usize| time_ms[i].div_euclid(GRID_MS);
    let is_first = |i: &usize| *i == 0 || cell(*i) != cell(*i - 1);
    (0..time_ms.len()).filter(is_first).collect()
}

/// Range of the list `instants` whose samples lie within a range of samples.
pub(super) fn within(instants: &[usize], samples: &Range<usize>) -> Range<usize> {
    let to = |sample: usize| instants.partition_point(|&i| i < sample);
    to(samples.start)..to(samples.end)
}

/// Lowest available memory of the 24 hours up to each instant, as far as there are samples.
pub(super) fn low_water(time_ms: &[i64], available_bytes: &[i64], instants: &[usize]) -> Vec<i64> {
    let mut lows: VecDeque<usize> = VecDeque::new();
    let mut found = Vec::with_capacity(instants.len());
    let mut instants = instants.iter().peekable();
    for (i, &now) in time_ms.iter().enumerate() {
        if i > 0 && now <= time_ms[i - 1] {
            lows.clear(); // clock set back: the age of earlier samples is unknown
        }
        let is_old = |&low: &usize| now.saturating_sub(time_ms[low]) > LOW_WATER_S * 1000;
        while lows.front().is_some_and(is_old) {
            lows.pop_front();
        }
        let is_higher = |&low: &usize| available_bytes[low] >= available_bytes[i];
        while lows.back().is_some_and(is_higher) {
            lows.pop_back();
        }
        lows.push_back(i);
        if instants.next_if(|&&instant| instant == i).is_some() {
            found.push(available_bytes[lows[0]]);
        }
    }
    found
}

/// Number of days after each instant until its outcomes are known, by horizon; [`NEVER`] if they never are.
pub(super) fn days_until_known(
    time_ms: &[i64],
    instants: &[usize],
    windows: &[Window],
) -> Vec<[u8; AHEAD]> {
    let mut known = vec![[NEVER; AHEAD]; instants.len()];
    let mut beyond = [0; AHEAD];
    for window in windows {
        for at in within(instants, &window.samples) {
            let now = time_ms[instants[at]];
            for ((known, beyond), ahead_ms) in known[at].iter_mut().zip(&mut beyond).zip(ahead_ms())
            {
                let then = now.saturating_add(ahead_ms);
                if then >= window.observed_to_ms {
                    continue;
                }
                // A sample lies beyond the horizon, and times only increase up to that sample.
                *beyond = instants[at].max(*beyond);
                while time_ms[*beyond] <= then {
                    *beyond += 1;
                }
                let days = day(time_ms[*beyond]) - day(now);
                *known = u8::try_from(days).unwrap_or(NEVER);
            }
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIN: i64 = 60_000;
    const HOUR: i64 = 60 * MIN;

    #[test]
    fn one_of_every_ten_minutes() {
        let minutes = [0, 4, 9, 10, 25, 29, 31];
        assert_eq!(of(&minutes.map(|m| m * MIN)), [0, 3, 4, 6]);
        assert_eq!(of(&[]), [0; 0]);
        assert_eq!(within(&[0, 3, 4, 6], &(1..6)), 1..3);
    }

    #[test]
    fn known_the_day_that_a_sample_lies_beyond() {
        // Samples at 23:00, 23:30, and every hour from 0:30 on.
        let mut time = vec![23 * HOUR, 23 * HOUR + 30 * MIN];
        time.extend((0..30).map(|h| DAY_MS + 30 * MIN + h * HOUR));
        let window = Window {
            samples: 0..time.len(),
            end_ms: time[31],
            start_seen: true,
            end: None,
            observed_to_ms: time[31],
        };
        let known = days_until_known(&time, &of(&time), &[window]);
        // The outcome ten minutes after 23:00 is known at 23:30; half an hour after, at 0:30; a day after, at
        // 23:30 of the next day.
        assert_eq!(known[0], [0, 1, 1, 1, 1, 1, 1, 1, 1]);
        // A day after 23:30 of the second day is later than the last sample, at 5:30 of the third.
        assert_eq!(known[25], [1, 1, 1, 1, 1, NEVER, NEVER, NEVER, NEVER]);
    }

    proptest! {
        #[test]
        fn low_water_equals_the_slow_version(
            steps in prop::collection::vec((1..300i64, 0..20i64), 1..200)
        ) {
            let mut now = 0;
            let (time, available): (Vec<i64>, Vec<i64>) = steps
                .into_iter()
                .map(|(minutes, bytes)| { now += minutes * MIN; (now, bytes) })
                .unzip();
            let instants = of(&time);
            let slowly: Vec<i64> = instants.iter().map(|&i| {
                let last_day = (0..=i).filter(|&k| time[i] - time[k] <= 24 * HOUR);
                last_day.map(|k| available[k]).min().unwrap()
            }).collect();
            prop_assert_eq!(low_water(&time, &available, &instants), slowly);
        }
    }
}
