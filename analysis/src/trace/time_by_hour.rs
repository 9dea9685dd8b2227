//! Time by hour of the week, exact to the millisecond: an interval is split at the ends of hours by the
//! fleet's clocks, and at changes of the clocks. An hour that occurs twice counts twice; a skipped hour does
//! not count.

use super::calendar::{Calendar, HOUR_MS, HOURS_OF_WEEK, hour_of_week};
use serde::{Deserialize, Serialize};

const WEEK_MS: i64 = HOURS_OF_WEEK as i64 * HOUR_MS;

/// Milliseconds in each hour of the week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimeByHour(Vec<i64>);

impl Default for TimeByHour {
    fn default() -> Self {
        Self(vec![0; HOURS_OF_WEEK])
    }
}

impl TimeByHour {
    /// Adds the time of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// Milliseconds in one hour of the week.
    pub(crate) fn ms(&self, hour_of_week: usize) -> i64 {
        self.0.get(hour_of_week).copied().unwrap_or(0)
    }

    fn add(&mut self, hour_of_week: usize, ms: i64) {
        if let Some(sum) = self.0.get_mut(hour_of_week) {
            *sum = sum.saturating_add(ms);
        }
    }
}

/// Splits intervals by hour. It remembers the last offset used, since intervals are close to each other in
/// time.
pub(crate) struct HourSplitter<'a> {
    calendar: &'a Calendar,
    /// Time from which `offset_ms` holds.
    from_ms: i64,
    /// Time to which `offset_ms` holds.
    to_ms: i64,
    offset_ms: i64,
}

impl<'a> HourSplitter<'a> {
    pub(crate) fn new(calendar: &'a Calendar) -> Self {
        Self {
            calendar,
            from_ms: 0,
            to_ms: 0,
            offset_ms: 0,
        }
    }

    /// Adds the time from `from_ms` to `to_ms`; adds nothing if `to_ms` is not later.
    pub(crate) fn add(&mut self, from_ms: i64, to_ms: i64, to: &mut TimeByHour) {
        let mut from_ms = from_ms;
        while from_ms < to_ms {
            if !(self.from_ms..self.to_ms).contains(&from_ms) {
                self.from_ms = from_ms;
                self.to_ms = self.calendar.next_change_ms(from_ms);
                self.offset_ms = self.calendar.offset_ms(from_ms);
            }
            // At least 1 ms, so that the loop ends whatever the zone's rules are.
            let until_ms = self.to_ms.min(to_ms).max(from_ms.saturating_add(1));
            let local_ms = from_ms.saturating_add(self.offset_ms);
            add_local(local_ms, until_ms.saturating_sub(from_ms), to);
            from_ms = until_ms;
        }
    }
}

/// Adds `length_ms` from a local time; the offset must not change in between.
fn add_local(local_ms: i64, length_ms: i64, to: &mut TimeByHour) {
    // Adds whole weeks in one step: a damaged clock may be off by millions of years.
    let weeks = length_ms / WEEK_MS;
    if weeks > 0 {
        (0..HOURS_OF_WEEK).for_each(|hour| to.add(hour, weeks * HOUR_MS));
    }
    let mut at_ms = local_ms.rem_euclid(WEEK_MS);
    let end_ms = at_ms + length_ms % WEEK_MS;
    while at_ms < end_ms {
        let next_ms = (at_ms - at_ms % HOUR_MS + HOUR_MS).min(end_ms);
        to.add(usize::from(hour_of_week(at_ms)), next_ms - at_ms);
        at_ms = next_ms;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use jiff::Timestamp;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    const MINUTE_MS: i64 = 60_000;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn split(zone: &str, from_ms: i64, to_ms: i64) -> TimeByHour {
        let mut found = TimeByHour::default();
        let calendar = Calendar::new(zone).unwrap();
        HourSplitter::new(&calendar).add(from_ms, to_ms, &mut found);
        found
    }

    /// Hours of the week that have time, with their minutes.
    fn minutes(found: &TimeByHour) -> Vec<(usize, i64)> {
        let hours = (0..HOURS_OF_WEEK).map(|hour| (hour, found.ms(hour) / MINUTE_MS));
        hours.filter(|(_, minutes)| *minutes > 0).collect()
    }

    /// Adds up the time step by step, from the definition.
    pub(crate) fn slowly(zone: &TimeZone, from_ms: i64, to_ms: i64, step_ms: i64) -> TimeByHour {
        let mut found = TimeByHour::default();
        for at_ms in (from_ms..to_ms).step_by(step_ms as usize) {
            let local = zone.to_datetime(Timestamp::from_millisecond(at_ms).unwrap());
            let day = local.weekday().to_monday_zero_offset() as usize;
            found.add(day * 24 + local.hour() as usize, step_ms);
        }
        found
    }

    #[test]
    fn worked_by_hand() {
        // Monday, 16 November 2026, 08:30 to 10:15 UTC; in Kathmandu, from 14:15.
        let (from, to) = (ms("2026-11-16T08:30:00Z"), ms("2026-11-16T10:15:00Z"));
        let utc = [(8, 30), (9, 60), (10, 15)];
        assert_eq!(minutes(&split("UTC", from, to)), utc);
        let kathmandu = [(14, 45), (15, 60)];
        assert_eq!(minutes(&split("Asia/Kathmandu", from, to)), kathmandu);
        assert_eq!(minutes(&split("UTC", from, from)), []);
        assert_eq!(minutes(&split("UTC", to, from)), []);
    }

    #[test]
    fn hours_that_come_twice_or_never() {
        let sunday = 6 * 24;
        // In Berlin, clocks go back from 3 to 2 on 25 October 2026, at 01:00 UTC, and forward on 28 March
        // 2027.
        let (from, to) = (ms("2026-10-24T23:30:00Z"), ms("2026-10-25T02:10:00Z"));
        let twice = [(sunday + 1, 30), (sunday + 2, 120), (sunday + 3, 10)];
        assert_eq!(minutes(&split("Europe/Berlin", from, to)), twice);
        let (from, to) = (ms("2027-03-28T00:30:00Z"), ms("2027-03-28T01:20:00Z"));
        let never = [(sunday + 1, 30), (sunday + 3, 20)];
        assert_eq!(minutes(&split("Europe/Berlin", from, to)), never);
        // St John's once changed its clocks at one minute past midnight: back to 23:01 of Saturday.
        let (from, to) = (ms("2010-11-07T02:20:00Z"), ms("2010-11-07T03:40:00Z"));
        let found = minutes(&split("America/St_Johns", from, to));
        assert_eq!(found, [(sunday - 1, 10 + 59), (sunday, 11)]);
    }

    #[test]
    fn many_weeks_and_damaged_clocks() {
        for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe"] {
            let (from, to) = (ms("2026-09-16T08:31:00Z"), ms("2027-04-18T10:17:00Z"));
            let zoned = TimeZone::get(zone).unwrap();
            assert_eq!(split(zone, from, to), slowly(&zoned, from, to, MINUTE_MS));
            let all = split(zone, i64::MIN, i64::MAX);
            assert!((0..HOURS_OF_WEEK).all(|hour| all.ms(hour) > i64::MAX / 100));
            let end = split(zone, i64::MAX - 1, i64::MAX);
            assert_eq!(end.0.iter().sum::<i64>(), 1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Compares around a change of the clocks, second by second, with two intervals in any order of time.
        #[test]
        fn equals_the_slow_version(
            zone in prop::sample::select(vec![
                ("UTC", "2026-10-25T01:00:00Z"),
                ("Europe/Berlin", "2026-10-25T01:00:00Z"),
                ("Europe/Berlin", "2027-03-28T01:00:00Z"),
                ("America/St_Johns", "2010-11-07T02:31:00Z"),
                ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
                ("Asia/Kathmandu", "2026-10-25T01:00:00Z"),
            ]),
            intervals in prop::collection::vec((-9000..9000i64, 0..9000i64), 2),
        ) {
            let (name, change) = (zone.0, ms(zone.1));
            let calendar = Calendar::new(name).unwrap();
            let mut splitter = HourSplitter::new(&calendar);
            let (mut found, mut expected) = (TimeByHour::default(), TimeByHour::default());
            for (from_s, length_s) in intervals {
                let from_ms = change + from_s * 1000;
                let to_ms = from_ms + length_s * 1000;
                splitter.add(from_ms, to_ms, &mut found);
                expected.merge(&slowly(&TimeZone::get(name).unwrap(), from_ms, to_ms, 1000));
            }
            prop_assert_eq!(found, expected);
        }
    }
}
