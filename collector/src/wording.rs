//! Numbers and times in the form of the page and the command line.

use gleaner_schemas::units::Seconds;
pub(crate) use gleaner_schemas::units::{brief_length, thousands};
use jiff::Timestamp;

/// Formats a number with its noun, like `1 host` or `1,920 hosts`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", thousands(number))
}

/// Describes the error of a clock: `12 s behind`, `1 h 3 min ahead`, or `right` if it is below a second.
pub(crate) fn clock(skew_ms: i64) -> String {
    let amount = Seconds(skew_ms.unsigned_abs() as f64 / 1000.0);
    match skew_ms {
        -999..=999 => "right".to_owned(),
        ..-999 => format!("{amount} behind"),
        _ => format!("{amount} ahead"),
    }
}

/// UTC time, like `2026-11-21 17:07:26`.
pub(crate) fn utc(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms);
    time.map_or_else(
        |_| "out of range".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// First digits of a host's id: enough to distinguish hosts by eye.
pub(crate) fn short(host_id: &str) -> &str {
    host_id.get(..8).unwrap_or(host_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_read_as_people_say_them() {
        assert_eq!(count(1, "host"), "1 host");
        assert_eq!(count(10_000, "host"), "10,000 hosts");
        let clocks = [0, -999, 3_780_000, -12_000].map(clock);
        assert_eq!(clocks, ["right", "right", "1 h 3 min ahead", "12 s behind"]);
        assert_eq!(utc(1_795_280_846_000), "2026-11-21 17:07:26");
        assert_eq!(utc(i64::MAX), "out of range");
        assert_eq!(short("0123456789abcdef"), "01234567");
        assert_eq!(short("é"), "é");
    }
}
