//! Numbers and times as the page and the command line say them.

use gleaner_schemas::units::Seconds;
use jiff::Timestamp;

/// `1 host`, `1,920 hosts`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", thousands(number))
}

/// `1,920`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A length of time in one unit, as precise as people say it: `0 s`, `45 s`, `12 min`, `5 h`, `9 days`.
pub(crate) fn length(ms: i64) -> String {
    let seconds = ms.unsigned_abs() / 1000;
    let sign = if ms <= -1000 { "-" } else { "" };
    let text = match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", thousands(seconds / 86_400)),
    };
    format!("{sign}{text}")
}

/// How wrong a clock is: `12 s behind`, `1 h 3 min ahead`, `right` to within a second.
pub(crate) fn clock(skew_ms: i64) -> String {
    let amount = Seconds(skew_ms.unsigned_abs() as f64 / 1000.0);
    match skew_ms {
        -999..=999 => "right".to_owned(),
        ..-999 => format!("{amount} behind"),
        _ => format!("{amount} ahead"),
    }
}

/// `2026-11-21 17:07:26`, in UTC.
pub(crate) fn utc(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms);
    time.map_or_else(
        |_| "out of range".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// The first digits of a host's id: enough to tell hosts apart by eye.
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
        assert_eq!(thousands(1_234_567), "1,234,567");
        let lengths = [0, 119_999, 120_000, 7_200_000, 172_800_000, -90_000, -500].map(length);
        assert_eq!(
            lengths,
            ["0 s", "119 s", "2 min", "2 h", "2 days", "-90 s", "0 s"]
        );
        let clocks = [0, -999, 3_780_000, -12_000].map(clock);
        assert_eq!(clocks, ["right", "right", "1 h 3 min ahead", "12 s behind"]);
        assert_eq!(utc(1_795_280_846_000), "2026-11-21 17:07:26");
        assert_eq!(utc(i64::MAX), "out of range");
        assert_eq!(short("0123456789abcdef"), "01234567");
        assert_eq!(short("é"), "é");
    }
}
