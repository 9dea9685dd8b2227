//! Times for people, in the report's time zone.

use crate::ReportError;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit, Zoned};
use serde::Serialize;

/// Time zone of all times in the report.
pub(crate) struct Clock {
    name: String,
    zone: TimeZone,
}

/// Offset of the zone's clock from UTC, which applies from a given time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Offset {
    /// Time from which the offset applies, in ms since 1970-01-01 UTC.
    pub from_ms: i64,
    /// Offset from UTC, in ms.
    pub offset_ms: i64,
}

/// The part of a stretch of time that lies in one day, in hours since the day's midnight; a day may have
/// 23 or 25 hours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DayPart {
    /// The day's midnight, in ms since 1970-01-01 UTC.
    pub day_ms: i64,
    /// Start, in hours since midnight.
    pub from_hour: f64,
    /// End, in hours since midnight.
    pub to_hour: f64,
}

impl Clock {
    pub(crate) fn new(name: &str) -> Result<Self, ReportError> {
        let zone = if name == "UTC" {
            TimeZone::UTC
        } else {
            TimeZone::get(name).map_err(|source| ReportError::TimeZone {
                name: name.into(),
                source,
            })?
        };
        Ok(Self {
            name: name.into(),
            zone,
        })
    }

    fn at(&self, time_ms: i64) -> Zoned {
        Timestamp::from_millisecond(time_ms)
            .unwrap_or_default()
            .to_zoned(self.zone.clone())
    }

    /// Date and time: `21 November 2026, 10:52`.
    pub(crate) fn date_time(&self, time_ms: i64) -> String {
        self.at(time_ms).strftime("%-d %B %Y, %H:%M").to_string()
    }

    /// Moment to the second, without line breaks: `Sat 21 Nov, 10:52:07`.
    pub(crate) fn moment(&self, time_ms: i64) -> String {
        let moment = self.at(time_ms).strftime("%a %-d %b, %H:%M:%S");
        moment.to_string().replace(' ', "\u{a0}")
    }

    /// Moment to the minute, for stretches of several minutes: `Sat 21 Nov, 10:52`.
    pub(crate) fn moment_to_minute(&self, time_ms: i64) -> String {
        let moment = self.at(time_ms).strftime("%a %-d %b, %H:%M");
        moment.to_string().replace(' ', "\u{a0}")
    }

    /// Day: `Sat 21 Nov`.
    pub(crate) fn day(&self, time_ms: i64) -> String {
        self.at(time_ms).strftime("%a %-d %b").to_string()
    }

    /// Span: `21 November 2026, 10:52:01 to 10:52:30`; the date is repeated only if it changes.
    pub(crate) fn span(&self, from_ms: i64, to_ms: i64) -> String {
        let (from, to) = (self.at(from_ms), self.at(to_ms));
        let long = to_ms.saturating_sub(from_ms) >= 600_000;
        let time = if long { "%H:%M" } else { "%H:%M:%S" };
        let start = from.strftime(&format!("%-d %B %Y, {time}")).to_string();
        let end = if from.date() == to.date() {
            to.strftime(time).to_string()
        } else {
            to.strftime(&format!("%-d %B %Y, {time}")).to_string()
        };
        format!("{start} to {end}")
    }

    /// Days of a span whose ends are midnights: `Monday 16 to Sunday 22 November 2026`, without the day that
    /// begins at the end. For other ends, returns the span with times.
    pub(crate) fn days(&self, from_ms: i64, until_ms: i64) -> String {
        let (from, until) = (self.at(from_ms), self.at(until_ms));
        let is_midnight = |z: &Zoned| z.start_of_day().is_ok_and(|start| start == *z);
        if !is_midnight(&from) || !is_midnight(&until) {
            return self.span(from_ms, until_ms);
        }
        let last = self.at(until_ms.saturating_sub(1));
        let end = last.strftime("%A %-d %B %Y").to_string();
        if last.date() == from.date() {
            return end;
        }
        let start = match (from.year() == last.year(), from.month() == last.month()) {
            (true, true) => from.strftime("%A %-d"),
            (true, false) => from.strftime("%A %-d %B"),
            _ => from.strftime("%A %-d %B %Y"),
        };
        format!("{start} to {end}")
    }

    /// The zone with its offset at a time: `Europe/Berlin (UTC+01:00)`.
    pub(crate) fn zone_at(&self, time_ms: i64) -> String {
        if self.name == "UTC" {
            return "UTC".into();
        }
        let offset = self.at(time_ms).strftime("%:z").to_string();
        format!("{} (UTC{offset})", self.name)
    }

    /// The zone with its offsets in a span: `Europe/Berlin (UTC+02:00, later UTC+01:00)`.
    pub(crate) fn zone_over(&self, from_ms: i64, to_ms: i64) -> String {
        let (first, last) = (self.zone_at(from_ms), self.at(to_ms));
        if last.offset() == self.at(from_ms).offset() {
            return first;
        }
        let later = last.strftime("%:z").to_string();
        format!("{}, later UTC{later})", first.trim_end_matches(')'))
    }

    /// The zone's offsets from UTC, from a year before the span to a year after it, for the figures' axes.
    pub(crate) fn offsets(&self, from_ms: i64, to_ms: i64) -> Vec<Offset> {
        const YEAR_MS: i64 = 366 * 86_400_000;
        let (from_ms, to_ms) = (
            from_ms.saturating_sub(YEAR_MS),
            to_ms.saturating_add(YEAR_MS),
        );
        let from = self.at(from_ms);
        let later = self
            .zone
            .following(from.timestamp())
            .map(|change| Offset {
                from_ms: change.timestamp().as_millisecond(),
                offset_ms: i64::from(change.offset().seconds()) * 1000,
            })
            .take_while(|change| change.from_ms <= to_ms);
        let mut offsets = vec![Offset {
            from_ms,
            offset_ms: i64::from(from.offset().seconds()) * 1000,
        }];
        offsets.extend(later);
        // A change of only the zone's abbreviation does not change its clock.
        offsets.dedup_by_key(|offset| offset.offset_ms);
        offsets
    }

    /// Number of hours of the day that begins at `day_ms`; absent if the next day is beyond the calendar.
    pub(crate) fn hours_of_day(&self, day_ms: i64) -> Option<f64> {
        let midnight = self.at(day_ms);
        let next = midnight
            .checked_add(1.day())
            .and_then(|z| z.start_of_day())
            .ok()?;
        (next.timestamp() - midnight.timestamp())
            .total(Unit::Hour)
            .ok()
    }

    /// Parts of a stretch of time, cut at local midnights.
    pub(crate) fn day_parts(&self, from_ms: i64, to_ms: i64) -> Vec<DayPart> {
        let mut parts = Vec::new();
        let mut start = self.at(from_ms);
        let end = self.at(to_ms);
        while start < end {
            let Ok(midnight) = start.start_of_day() else {
                break;
            };
            let Ok(next) = midnight.checked_add(1.day()).and_then(|z| z.start_of_day()) else {
                break;
            };
            let hours =
                |until: &Zoned| (until.timestamp() - midnight.timestamp()).total(Unit::Hour);
            let until = if end < next { &end } else { &next };
            let (Ok(from_hour), Ok(to_hour)) = (hours(&start), hours(until)) else {
                break;
            };
            parts.push(DayPart {
                day_ms: midnight.timestamp().as_millisecond(),
                from_hour,
                to_hour,
            });
            start = next;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time 2026-11-21T10:52:01Z.
    const T: i64 = 1_795_258_321_000;

    #[test]
    fn times_are_told_in_the_zone() {
        let utc = Clock::new("UTC").unwrap();
        assert_eq!(utc.date_time(T), "21 November 2026, 10:52");
        assert_eq!(utc.moment(T), "Sat\u{a0}21\u{a0}Nov,\u{a0}10:52:01");
        assert_eq!(
            utc.span(T, T + 29_000),
            "21 November 2026, 10:52:01 to 10:52:30"
        );
        assert_eq!(
            utc.span(T, T + 86_400_000),
            "21 November 2026, 10:52 to 22 November 2026, 10:52"
        );
        assert_eq!(utc.zone_at(T), "UTC");
        let kolkata = Clock::new("Asia/Kolkata").unwrap();
        assert_eq!(kolkata.moment(T), "Sat\u{a0}21\u{a0}Nov,\u{a0}16:22:01");
        assert_eq!(kolkata.zone_at(T), "Asia/Kolkata (UTC+05:30)");
        assert!(matches!(
            Clock::new("Mars/Olympus"),
            Err(ReportError::TimeZone { .. })
        ));
    }

    #[test]
    fn a_night_is_cut_at_midnight() {
        let utc = Clock::new("UTC").unwrap();
        let evening = T + (11 * 60 + 7) * 60_000 + 59_000; // the time is 22:00:00
        let parts = utc.day_parts(evening, evening + 9 * 3_600_000);
        let hours: Vec<(f64, f64)> = parts.iter().map(|p| (p.from_hour, p.to_hour)).collect();
        assert_eq!(hours, [(22.0, 24.0), (0.0, 7.0)]);
        assert_eq!(utc.day(parts[1].day_ms), "Sun 22 Nov");
        assert!(utc.day_parts(evening, evening).is_empty());
    }

    #[test]
    fn a_day_of_25_hours_ends_at_midnight_too() {
        // In Berlin, clocks went back on 2026-10-25 at 01:00Z: that day had 25 hours. The local midnight
        // before is 2026-10-24T22:00Z.
        let berlin = Clock::new("Europe/Berlin").unwrap();
        let midnight = 1_792_879_200_000;
        let parts = berlin.day_parts(midnight, midnight + 26 * 3_600_000);
        let hours: Vec<(f64, f64)> = parts.iter().map(|p| (p.from_hour, p.to_hour)).collect();
        assert_eq!(hours, [(0.0, 25.0), (0.0, 1.0)]);
        assert_eq!(
            berlin.zone_over(midnight, midnight + 26 * 3_600_000),
            "Europe/Berlin (UTC+02:00, later UTC+01:00)"
        );
        assert_eq!(berlin.hours_of_day(midnight), Some(25.0));
        // In spring one day has 23 hours: 2026-03-29.
        let midnight = 1_774_738_800_000;
        let parts = berlin.day_parts(midnight, midnight + 24 * 3_600_000);
        let hours: Vec<(f64, f64)> = parts.iter().map(|p| (p.from_hour, p.to_hour)).collect();
        assert_eq!(hours, [(0.0, 23.0), (0.0, 1.0)]);
    }

    #[test]
    fn figures_know_when_clocks_change() {
        let changes = |name: &str, from_ms: i64| {
            let clock = Clock::new(name).unwrap();
            let week = clock.offsets(from_ms, from_ms + 7 * 86_400_000);
            let in_week = |o: &&Offset| (from_ms..from_ms + 7 * 86_400_000).contains(&o.from_ms);
            let found: Vec<(i64, i64)> = week
                .iter()
                .filter(in_week)
                .map(|o| (o.from_ms, o.offset_ms / 3_600_000))
                .collect();
            assert!(week[0].from_ms < from_ms, "one holds at the start");
            found
        };
        // Monday 2026-03-23, 2026-10-19 and 2026-10-26, all 00:00 UTC.
        let mondays = [1_774_224_000_000, 1_792_368_000_000, 1_792_972_800_000];
        assert_eq!(
            changes("Europe/Berlin", mondays[0]),
            [(1_774_746_000_000, 2)]
        );
        assert_eq!(
            changes("Europe/Berlin", mondays[1]),
            [(1_792_890_000_000, 1)]
        );
        assert_eq!(
            changes("America/New_York", mondays[2]),
            [(1_793_512_800_000, -5)]
        );
        assert_eq!(changes("UTC", mondays[0]), []);
        assert_eq!(changes("Asia/Kolkata", mondays[0]), []);
    }
}
