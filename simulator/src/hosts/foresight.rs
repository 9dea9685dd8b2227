//! Foresight: hosts lend only memory that is expected to stay available.

use gleaner_policy::forecast::table::Table;
use gleaner_policy::outlook::expected_bytes;
use gleaner_schemas::lending::HostQuota;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::Arc;

/// Forecast of how long memory stays available, with the required time and probability.
#[derive(Clone, Debug)]
pub struct Foresight {
    /// Forecasts learnt only from the time before the simulation's begin.
    pub table: Arc<Table>,
    /// Time for which lent memory must be expected to stay available.
    pub duration_ms: i64,
    /// Minimum probability that the memory stays available.
    pub confidence: f64,
    /// Time zone of the fleet, as in the table; people's habits follow it.
    pub time_zone: TimeZone,
}

/// Compares tables by address, not by their figures.
impl PartialEq for Foresight {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table)
            && (self.duration_ms, self.confidence) == (other.duration_ms, other.confidence)
            && self.time_zone == other.time_zone
    }
}

impl Foresight {
    /// Largest part of the quota that is expected to stay available, at `time_ms` since 1970-01-01 UTC.
    pub(super) fn expected_bytes(&self, quota: &HostQuota, time_ms: i64) -> u64 {
        let hour_of_week = self.hour_of_week(time_ms);
        expected_bytes(
            &self.table,
            quota,
            self.duration_ms,
            self.confidence,
            hour_of_week,
        )
    }

    /// Hour of the week in the fleet's time zone; 0 is the first hour of Monday.
    fn hour_of_week(&self, time_ms: i64) -> u8 {
        // A time outside the calendar's range counts as the begin of 1970.
        let time = Timestamp::from_millisecond(time_ms).unwrap_or_default();
        let local = self.time_zone.to_datetime(time);
        let days = local.weekday().to_monday_zero_offset();
        days.unsigned_abs() * 24 + local.hour().unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foresight(zone: &str) -> Foresight {
        Foresight {
            table: Arc::new(Table::default()),
            duration_ms: 600_000,
            confidence: 0.9,
            time_zone: TimeZone::get(zone).unwrap(),
        }
    }

    #[test]
    fn hours_of_the_week_are_the_fleet_s() {
        let at = |zone, time: &str| {
            let time: Timestamp = time.parse().unwrap();
            foresight(zone).hour_of_week(time.as_millisecond())
        };
        assert_eq!(at("UTC", "1998-09-14T00:00:00Z"), 0);
        assert_eq!(at("UTC", "1998-09-20T23:59:59.999Z"), 167);
        // It is a Monday. Berlin has summer time (UTC+2), and in New York (UTC-4) it is still Sunday evening.
        assert_eq!(at("Europe/Berlin", "1998-09-14T09:00:00Z"), 11);
        assert_eq!(at("America/New_York", "1998-09-14T00:00:00Z"), 164);
    }

    #[test]
    fn readings_are_shared_by_table_and_settings() {
        let one = foresight("UTC");
        assert_eq!(one, one.clone());
        // Equal contents in separate tables still compare unequal.
        assert_ne!(one, foresight("UTC"));
        for other in [
            Foresight {
                duration_ms: 1,
                ..one.clone()
            },
            Foresight {
                confidence: 0.5,
                ..one.clone()
            },
            Foresight {
                time_zone: TimeZone::get("Europe/Berlin").unwrap(),
                ..one.clone()
            },
        ] {
            assert_ne!(one, other);
        }
    }
}
