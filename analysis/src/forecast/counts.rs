//! Outcomes for one region on one host, counted by day, time of the week and state.

use super::instants::{NEVER, ahead_ms, day, within};
use crate::availability::periods::window::Window;
use gleaner_policy::forecast::{AHEAD, Bins, State, slot};
use serde::{Deserialize, Serialize};

/// Instants of one day with the same state, time of the week, and number of days until their outcomes were
/// known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Count {
    /// Days since 1970 (UTC).
    pub(super) day: i32,
    pub(super) days_until_known: u8,
    pub(super) slot: u8,
    pub(super) bins: Bins,
    /// Instants with a known outcome, by horizon; at most 144 a day.
    pub(super) instants: [u8; AHEAD],
    /// Number of these instants whose region was lost.
    pub(super) lost: [u8; AHEAD],
}

/// A host's data, shared by every region and scope.
pub(super) struct ForecastHost<'a> {
    pub(super) time_ms: &'a [i64],
    pub(super) available_bytes: &'a [i64],
    pub(super) hours_of_week: &'a [u8],
    /// Indices of the samples that are instants.
    pub(super) instants: &'a [usize],
    /// Lowest available memory of the 24 hours up to each instant.
    pub(super) low_bytes: &'a [i64],
    /// Lowest available memory of the 24 hours up to the last sample.
    pub(super) last_low_bytes: i64,
    pub(super) windows: &'a [Window],
    /// Number of days after which each instant's outcome is known, by horizon.
    pub(super) days_until_known: &'a [[u8; AHEAD]],
    /// For each sample, true if a forecast could have been requested then; `None`: at every sample.
    pub(super) is_open: Option<&'a [bool]>,
}

/// Counts of one region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Counts by day.
    pub(super) counts: Vec<Count>,
    /// State at the last sample; `None` if the region is not available then.
    pub(super) last: Option<State>,
}

impl ForecastHost<'_> {
    /// Counts for a region whose size may vary: `region_bytes` at each sample.
    pub(super) fn count(&self, region_bytes: impl Fn(usize) -> i64) -> Counts {
        let mut found = Counts::default();
        // Index at which the counts of the present day begin.
        let mut today = 0;
        for window in self.windows {
            let enough = |i: &usize| self.available_bytes[*i] >= region_bytes(*i);
            let mut next = window.samples.start;
            while let Some(first) = (next..window.samples.end).find(enough) {
                let below = (first..window.samples.end).find(|i| !enough(i));
                next = below.unwrap_or(window.samples.end);
                let to_ms = below.map_or(window.end_ms, |i| self.time_ms[i]);
                let state = |at: usize, low_bytes: i64| State {
                    age_s: self.time_ms[at].saturating_sub(self.time_ms[first]) / 1000,
                    available_bytes: self.available_bytes[at],
                    low_bytes,
                    region_bytes: region_bytes(at),
                };
                for k in within(self.instants, &(first..next)) {
                    let at = self.instants[k];
                    if self.is_open.is_some_and(|open| !open[at]) {
                        continue;
                    }
                    let Some(bins) = state(at, self.low_bytes[k]).bins() else {
                        continue;
                    };
                    self.add(&mut found.counts, &mut today, k, bins, to_ms);
                }
                let last = self.time_ms.len() - 1;
                if next == self.time_ms.len() && self.is_open.is_none_or(|open| open[last]) {
                    found.last = Some(state(last, self.last_low_bytes));
                }
            }
        }
        found
    }

    /// Adds instant `k`; the region stays available to `to_ms`.
    fn add(&self, counts: &mut Vec<Count>, today: &mut usize, k: usize, bins: Bins, to_ms: i64) {
        let at = self.instants[k];
        let now = self.time_ms[at];
        let day = i32::try_from(day(now)).unwrap_or(i32::MAX);
        if counts.last().is_some_and(|last| last.day != day) {
            *today = counts.len();
        }
        let slot = slot(self.hours_of_week[at]);
        for (ahead, ahead_ms) in ahead_ms().into_iter().enumerate() {
            let days_until_known = self.days_until_known[k][ahead];
            if days_until_known == NEVER {
                continue;
            }
            let is_it = |c: &Count| {
                c.bins == bins && c.slot == slot && c.days_until_known == days_until_known
            };
            // A day has few counts; the last one is most likely the one to add to.
            let of_today = counts.get(*today..).unwrap_or_default();
            let place = match of_today.iter().rposition(is_it) {
                Some(place) => *today + place,
                None => {
                    counts.push(Count {
                        day,
                        days_until_known,
                        slot,
                        bins,
                        instants: [0; AHEAD],
                        lost: [0; AHEAD],
                    });
                    counts.len() - 1
                }
            };
            let count = &mut counts[place];
            // A clock set back repeatedly could overflow a day's count.
            if count.instants[ahead] < u8::MAX {
                count.instants[ahead] += 1;
                count.lost[ahead] += u8::from(now.saturating_add(ahead_ms) >= to_ms);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::instants;
    use gleaner_schemas::findings::EndCause;

    const MIN: i64 = 60_000;

    #[test]
    fn worked_by_hand() {
        // Samples every ten minutes for two hours. Memory is below the region's size at 60 minutes. The owner
        // is away from 10 to 95, which the idle rule shows from 20 on.
        let time: Vec<i64> = (0..=12).map(|i| i * 10 * MIN).collect();
        let available: Vec<i64> = (0..=12).map(|i| if i == 6 { 4 } else { 10 }).collect();
        let instants = instants::of(&time);
        let window = Window {
            samples: 1..10,
            end_ms: 95 * MIN,
            start_seen: true,
            end: Some(EndCause::Owner),
            observed_to_ms: 120 * MIN,
        };
        let windows = [window];
        let known = instants::days_until_known(&time, &instants, &windows);
        let low = instants::low_water(&time, &available, &instants);
        let is_open: Vec<bool> = (0..=12).map(|i| (2..10).contains(&i)).collect();
        let count = |is_open| {
            let seen = ForecastHost {
                time_ms: &time,
                available_bytes: &available,
                hours_of_week: &[9; 13],
                instants: &instants,
                low_bytes: &low,
                last_low_bytes: 0,
                windows: &windows,
                days_until_known: &known,
                is_open,
            };
            seen.count(|_| 5)
        };
        let sums = |counts: &Counts, ahead: usize| {
            let all = counts.counts.iter();
            all.fold((0, 0), |(n, lost), c| {
                (n + c.instants[ahead], lost + c.lost[ahead])
            })
        };
        let idle = count(Some(&is_open));
        // Ten minutes ahead, the instants 20, 30, 40, 50 (lost at 60), 70, 80 and 90 (lost at 95) count.
        assert_eq!(sums(&idle, 0), (7, 2));
        // Half an hour ahead, 20 (until 50), 30, 40, 50, 70 and 80 count. All but 20 are lost (at 60, or at
        // 95). The outcome of 90 at 120 is unknown.
        assert_eq!(sums(&idle, 1), (6, 5));
        assert_eq!(sums(&idle, 3), (0, 0));
        assert_eq!(idle.last, None);
        // If a forecast could be requested at every sample, the instant at 10 counts, too.
        assert_eq!(sums(&count(None), 0), (8, 2));
        // From 60 on, the lowest memory of the day is below the region's size; before, it is twice the size.
        // Ages begin again after 60.
        let bins: Vec<Bins> = idle.counts.iter().map(|c| c.bins).collect();
        let bin = |age, low| Bins {
            age,
            margin: 4,
            low,
        };
        assert_eq!(bins, [bin(0, 5), bin(1, 5), bin(0, 1)]);
    }
}
