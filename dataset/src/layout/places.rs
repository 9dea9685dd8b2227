//! Names of the places in a dataset's folder.

use arrow::temporal_conversions::timestamp_ms_to_datetime;

/// The one file that says which others belong.
pub(crate) const MANIFEST: &str = "manifest.json";
/// Locked by the one writer.
pub(crate) const LOCK: &str = ".lock";
/// Files on their way; whatever a dead writer left here is of no use.
pub(crate) const STAGING: &str = ".staging";

/// Files that newer ones replaced, for those who opened the dataset before.
pub(crate) const RETIRED: &str = ".retired";

/// Damaged files, set aside by a repair. Nothing here is ever deleted.
pub(crate) const DAMAGED: &str = ".damaged";

const DAY_MS: i64 = 86_400_000;

/// UTC day of `time_ms`, counted from 1970-01-01.
pub(crate) fn day(time_ms: i64) -> i64 {
    time_ms.div_euclid(DAY_MS)
}

/// `2026-11-21` for a day counted from 1970-01-01; `None` outside the calendar.
pub(crate) fn date(day: i64) -> Option<String> {
    let start = timestamp_ms_to_datetime(day.checked_mul(DAY_MS)?)?;
    Some(start.date().to_string())
}

/// Folder of a table's day, relative to the dataset.
pub(crate) fn folder(table: &str, date: &str) -> String {
    format!("{table}/date={date}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_utc_and_starts_at_midnight() {
        let cases = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (1_795_219_199_999, "2026-11-20"), // 23:59:59.999
            (1_795_219_200_000, "2026-11-21"),
        ];
        for (time_ms, text) in cases {
            assert_eq!(date(day(time_ms)).as_deref(), Some(text), "{time_ms}");
        }
        assert_eq!(date(day(i64::MAX)), None);
    }
}
