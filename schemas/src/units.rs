//! Conversions of units, all in this module. Names elsewhere carry their unit: `_bytes`, `_ms`, `_us`.

use std::fmt;

/// Bytes in `kib` kibibytes, the unit of `/proc/meminfo` and smaps (where it is spelt "kB").
#[must_use]
pub const fn kib_to_bytes(kib: u64) -> u64 {
    kib.saturating_mul(1024)
}

/// Bytes in `pages` pages of `page_size_bytes`.
#[must_use]
pub const fn pages_to_bytes(pages: u64, page_size_bytes: u64) -> u64 {
    pages.saturating_mul(page_size_bytes)
}

/// Milliseconds in `ticks` clock ticks (`/proc/[pid]/stat`); `ticks_per_second` is from `AT_CLKTCK`.
#[must_use]
pub const fn ticks_to_ms(ticks: u64, ticks_per_second: u64) -> u64 {
    let per_second = if ticks_per_second == 0 {
        100
    } else {
        ticks_per_second
    };
    ticks.saturating_mul(1000) / per_second
}

/// Whole microseconds in `seconds`.
#[must_use]
pub fn seconds_to_us(seconds: f64) -> f64 {
    (seconds * 1e6).round()
}

/// Converts a number to the stored type: signed 64 bits, the integer of SQLite, DuckDB and pandas. A number
/// that does not fit becomes the maximum.
#[must_use]
pub fn stored(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A size in bytes that prints for people: `1.5 GiB`, `-3.0 MiB`, `12 B`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Bytes(pub f64);

impl From<i64> for Bytes {
    fn from(bytes: i64) -> Self {
        Self(bytes as f64)
    }
}

impl From<u64> for Bytes {
    fn from(bytes: u64) -> Self {
        Self(bytes as f64)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        // Values from 1023.95 on would print as "1024.0", so they get the next unit.
        const NEXT_UNIT: f64 = 1023.95;
        if self.0.abs() < 1023.5 {
            return f.pad(&format!("{:.0} B", self.0));
        }
        let mut value = self.0 / 1024.0;
        let mut unit = UNITS[0];
        for larger in &UNITS[1..] {
            if value.abs() < NEXT_UNIT {
                break;
            }
            value /= 1024.0;
            unit = larger;
        }
        f.pad(&format!("{value:.1} {unit}"))
    }
}

/// Reads a size as people type it: `512MiB`, `1.5 GiB`, `4096 B`, always with its unit. A fraction of a byte
/// is dropped.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let power = ["B", "KiB", "MiB", "GiB", "TiB"]
        .iter()
        .position(|name| *name == unit.trim_start())?;
    let unit_bytes = 1_u64 << (10 * power);
    let (whole, part_bytes) = match number.split_once('.') {
        Some((whole, digits)) if !digits.is_empty() && !digits.contains('.') => {
            let share: f64 = format!("0.{digits}").parse().ok()?;
            (whole, (share * unit_bytes as f64) as u64)
        }
        Some(_) => return None,
        None => (number, 0),
    };
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(unit_bytes)?.checked_add(part_bytes)
}

/// Reads a size, as [`parse_bytes`] does; for command lines.
///
/// # Errors
/// A sentence that says how a size is written.
pub fn parse_size(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| not_a_size(text))
}

/// Reads a size of one byte at least, as [`parse_bytes`] does; for command lines.
///
/// # Errors
/// A sentence that says how a size is written.
pub fn parse_size_above_0(text: &str) -> Result<u64, String> {
    let size = parse_bytes(text).filter(|bytes| *bytes > 0);
    size.ok_or_else(|| not_a_size(text))
}

fn not_a_size(text: &str) -> String {
    format!("`{text}` is no size: write it like 512MiB or 8GiB")
}

/// Formats a whole number for people, with its digits in groups of three: `1,920`, `-1,000`.
#[must_use]
pub fn thousands(number: impl fmt::Display) -> String {
    let number = number.to_string();
    let (sign, digits) = number.split_at(usize::from(number.starts_with('-')));
    let mut text = sign.to_owned();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a length of time for people in one unit: `45 s`, `12 min`, `5 h`, `9 days`.
#[must_use]
pub fn brief_length(ms: i64) -> String {
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

/// A length of time that prints for people with two units at most: `1 d 4 h`, `6 min 30 s`, `250 ms`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Seconds {
    /// Converts from milliseconds, the stored unit.
    #[must_use]
    pub fn from_ms(ms: i64) -> Self {
        Self(ms as f64 / 1000.0)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 != 0.0 && self.0.abs() < 0.9995 {
            return f.pad(&format!("{:.0} ms", self.0 * 1000.0));
        }
        let sign = if self.0 < 0.0 { "-" } else { "" };
        let whole = self.0.abs().round() as u64;
        let (days, hours, minutes, seconds) = (
            whole / 86_400,
            whole / 3600 % 24,
            whole / 60 % 60,
            whole % 60,
        );
        let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")];
        let first = parts
            .iter()
            .position(|(n, _)| *n > 0)
            .unwrap_or(parts.len() - 1);
        let text: Vec<String> = parts[first..]
            .iter()
            .take(2)
            .enumerate()
            .filter(|(i, (n, _))| *i == 0 || *n > 0)
            .map(|(_, (n, unit))| format!("{n} {unit}"))
            .collect();
        f.pad(&format!("{sign}{}", text.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_with_one_decimal_and_never_1024_of_a_unit() {
        let cases = [
            (0_i64, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (25_276_514_304, "23.5 GiB"),
            (-3 << 20, "-3.0 MiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Bytes::from(bytes).to_string(), text, "{bytes}");
        }
        assert_eq!(format!("{:>9}", Bytes::from(1024_u64)), "  1.0 KiB");
    }

    #[test]
    fn sizes_as_people_type_them() {
        for (text, bytes) in [
            ("0 B", 0),
            ("4096B", 4096),
            ("512MiB", 512 << 20),
            (" 2 GiB ", 2 << 30),
            ("1TiB", 1 << 40),
            ("1.5GiB", 3 << 29),
            ("0.3 KiB", 307),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "512",
            "MiB",
            ".5GiB",
            "1.GiB",
            "1.5.5GiB",
            "1.5",
            "-1B",
            "5MB",
            "5 mib",
            "99999999999999TiB",
            "5MiBB",
        ] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn lengths_of_time_print_with_two_units_at_most() {
        let cases = [
            (0.0, "0 s"),
            (0.25, "250 ms"),
            (59.6, "1 min"),
            (90.0, "1 min 30 s"),
            (3600.0, "1 h"),
            (100_800.0, "1 d 4 h"),
            (-90.0, "-1 min 30 s"),
        ];
        for (seconds, text) in cases {
            assert_eq!(Seconds(seconds).to_string(), text, "{seconds}");
        }
    }

    #[test]
    fn numbers_and_times_read_as_people_say_them() {
        assert_eq!(thousands(7_u64), "7");
        assert_eq!(thousands(1_234_567_usize), "1,234,567");
        assert_eq!([-100, -1000].map(thousands), ["-100", "-1,000"]);
        let lengths = [0, 119_999, 120_000, 7_200_000, 172_800_000, -90_000, -500];
        assert_eq!(
            lengths.map(brief_length),
            ["0 s", "119 s", "2 min", "2 h", "2 days", "-90 s", "0 s"]
        );
    }

    #[test]
    fn kernel_units_convert_without_overflow() {
        assert_eq!(kib_to_bytes(2), 2048);
        assert_eq!(pages_to_bytes(3, 4096), 12_288);
        assert_eq!(ticks_to_ms(150, 100), 1500);
        assert_eq!(ticks_to_ms(5, 0), 50);
        assert_eq!(kib_to_bytes(u64::MAX), u64::MAX);
        assert_eq!(stored(u64::MAX), i64::MAX);
    }
}
