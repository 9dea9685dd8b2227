//! Hours of the week in the fleet's time zone, which people's habits follow.

use crate::error::{AnalysisError, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Hours in a week.
pub(crate) const HOURS_OF_WEEK: usize = 168;
pub(super) const HOUR_MS: i64 = 3_600_000;
/// Largest unit of which every time zone's offset changes are multiples.
const OFFSET_MS: i64 = 15 * 60_000;

/// Weekday (1 is Monday) and hour of the day, from an hour of the week.
pub(crate) fn weekday_and_hour(hour_of_week: usize) -> (i64, i64) {
    ((hour_of_week / 24 + 1) as i64, (hour_of_week % 24) as i64)
}

/// A time zone, with its offsets from UTC.
pub(crate) struct Calendar {
    zone: TimeZone,
}

impl Calendar {
    /// Calendar of the time zone with this IANA name.
    ///
    /// # Errors
    /// [`AnalysisError::TimeZone`] if no time zone database has the name.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let zone = if name == "UTC" {
            TimeZone::UTC
        } else {
            TimeZone::get(name).map_err(|source| AnalysisError::TimeZone {
                name: name.to_owned(),
                source,
            })?
        };
        Ok(Self { zone })
    }

    /// Local time minus UTC at `time_ms`.
    pub(super) fn offset_ms(&self, time_ms: i64) -> i64 {
        // A time outside jiff's range takes the offset of 1970.
        let time = Timestamp::from_millisecond(time_ms).unwrap_or_default();
        i64::from(self.zone.to_offset(time).seconds()) * 1000
    }

    /// The next time after `time_ms` at which the offset may change.
    pub(super) fn next_change_ms(&self, time_ms: i64) -> i64 {
        match Timestamp::from_millisecond(time_ms) {
            Ok(time) => {
                let next = self.zone.following(time).next();
                let next_ms = next.map(|change| change.timestamp().as_millisecond());
                next_ms.unwrap_or(Timestamp::MAX.as_millisecond() + 1)
            }
            // Outside jiff's range, the offset holds up to the range's start, or for ever.
            Err(_) if time_ms < 0 => Timestamp::MIN.as_millisecond(),
            Err(_) => i64::MAX,
        }
    }

    /// Hour of the week of each time: 0 is Monday's first.
    pub(crate) fn hours_of_week(&self, times_ms: &[i64]) -> Vec<u8> {
        let mut known = (i64::MIN, 0);
        let hour = |&time_ms: &i64| {
            let slot = time_ms.div_euclid(OFFSET_MS);
            if slot != known.0 {
                known = (slot, self.offset_ms(time_ms));
            }
            hour_of_week(time_ms.saturating_add(known.1))
        };
        times_ms.iter().map(hour).collect()
    }
}

/// Hour of the week of a local time.
pub(super) fn hour_of_week(local_ms: i64) -> u8 {
    // 1 January 1970 was a Thursday.
    let hour = local_ms.div_euclid(HOUR_MS) + 3 * 24;
    hour.rem_euclid(HOURS_OF_WEEK as i64) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    #[test]
    fn worked_by_hand() {
        let berlin = Calendar::new("Europe/Berlin").unwrap();
        let utc = Calendar::new("UTC").unwrap();
        // Monday, 16 November 2026; Berlin is one hour ahead of UTC.
        let monday = ms("2026-11-16T08:30:00Z");
        assert_eq!(utc.hours_of_week(&[monday]), [8]);
        assert_eq!(berlin.hours_of_week(&[monday]), [9]);
        // On Sunday, 25 October, clocks went back: the hour from 2 to 3 occurred twice.
        let hours = ["00:30", "01:30", "02:30"].map(|h| ms(&format!("2026-10-25T{h}:00Z")));
        assert_eq!(
            berlin.hours_of_week(&hours),
            [6 * 24 + 2, 6 * 24 + 2, 6 * 24 + 3]
        );
        assert_eq!(
            utc.hours_of_week(&[ms("1970-01-01T00:00:00Z"), -1, i64::MAX])
                .len(),
            3
        );
        assert_eq!(utc.hours_of_week(&[-1]), [2 * 24 + 23]);
    }

    #[test]
    fn a_zone_that_is_none_is_refused_by_name() {
        let error = Calendar::new("Mars/Olympus").err().unwrap().to_string();
        assert!(error.contains("Mars/Olympus"), "{error}");
    }
}
