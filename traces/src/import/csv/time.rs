//! Formats of times in a file.

use crate::import::TIMES_MS;
use crate::import::files::cut;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A format of times in a file.
#[derive(Clone, Debug)]
pub(super) enum TimeFormat {
    /// Numbers since 1970-01-01 UTC; one ms is `per_ms` of their units.
    Unix { per_ms: f64 },
    /// RFC 3339, like `2024-03-01T12:00:00+01:00`.
    Rfc3339,
    /// strptime format that includes the offset from UTC.
    Instant(String),
    /// strptime format for local time in a time zone.
    Local(String, TimeZone),
}

impl TimeFormat {
    /// Format from the mapping's keys. An error describes what is wrong with them.
    pub(super) fn of(format: &str, zone: Option<&str>) -> Result<Self, String> {
        let plain = match format {
            "unix_s" => Some(Self::Unix { per_ms: 1e-3 }),
            "unix_ms" => Some(Self::Unix { per_ms: 1.0 }),
            "rfc3339" => Some(Self::Rfc3339),
            _ => None,
        };
        if let Some(plain) = plain {
            return match zone {
                Some(_) => Err(format!("{format} says when by itself, without a zone")),
                None => Ok(plain),
            };
        }
        if !format.contains('%') {
            return Err(format!(
                "format is {format:?}, not unix_s, unix_ms, rfc3339 or letters as in \"%Y-%m-%d %H:%M:%S\""
            ));
        }
        let made = match zone {
            Some(zone) => {
                let zone = TimeZone::get(zone).map_err(|e| format!("zone is {zone:?}: {e}"))?;
                Self::Local(format.to_owned(), zone)
            }
            None => Self::Instant(format.to_owned()),
        };
        // Check that the format can read the text that it writes: this finds unknown letters, and a missing
        // date or offset.
        let when = Timestamp::constant(1_709_294_096, 0);
        let zoned: Zoned = when.to_zoned(TimeZone::UTC);
        let text = jiff::fmt::strtime::format(format, &zoned);
        let read = text
            .map_err(|e| e.to_string())
            .and_then(|text| made.read(&text));
        read.map_err(|why| match zone {
            Some(_) => format!("format {format:?} does not say a date and a time: {why}"),
            None => format!(
                "format {format:?} does not say when: {why}; name a zone, or %z in the format"
            ),
        })?;
        Ok(made)
    }

    /// Parses a time: ms since 1970-01-01 UTC, within [`TIMES_MS`]. An error describes the malformed text.
    pub(super) fn time_ms(&self, text: &str) -> Result<i64, String> {
        let ms = self.read(text)?;
        if TIMES_MS.contains(&ms) {
            Ok(ms)
        } else {
            Err(format!("{:?} is no time from 2000 to 2100", cut(text)))
        }
    }

    fn read(&self, text: &str) -> Result<i64, String> {
        let wrong = |e: jiff::Error| format!("{:?} is no time: {e}", cut(text));
        match self {
            Self::Unix { per_ms } => {
                let number: Option<f64> = text.parse().ok().filter(|n: &f64| n.is_finite());
                let number = number.ok_or_else(|| format!("{:?} is no time", cut(text)))?;
                Ok((number / per_ms).round() as i64) // saturates beyond i64
            }
            Self::Rfc3339 => text
                .parse()
                .map(|t: Timestamp| t.as_millisecond())
                .map_err(wrong),
            Self::Instant(format) => {
                let time = Timestamp::strptime(format, text);
                time.map(|t| t.as_millisecond()).map_err(wrong)
            }
            Self::Local(format, zone) => {
                let local = DateTime::strptime(format, text).map_err(wrong)?;
                // A local time occurs twice when clocks are put back, and never when they are put forward:
                // both are errors.
                let time = zone.to_ambiguous_timestamp(local).unambiguous();
                time.map(|t| t.as_millisecond()).map_err(wrong)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written_or_refused() {
        const MARCH: i64 = 1_709_294_096_000; // 2024-03-01 11:54:56 UTC
        let berlin = Some("Europe/Berlin");
        for (format, zone, text) in [
            ("unix_s", None, "1709294096"),
            ("unix_s", None, "1709294096.0001"),
            ("unix_ms", None, "1709294096000"),
            ("rfc3339", None, "2024-03-01T12:54:56+01:00"),
            ("rfc3339", None, "2024-03-01 11:54:56Z"),
            ("%d.%m.%Y %H:%M:%S", berlin, "01.03.2024 12:54:56"),
            ("%Y%m%d%H%M%S %z", None, "20240301125456 +0100"),
        ] {
            let read = TimeFormat::of(format, zone).unwrap().time_ms(text);
            assert_eq!(read, Ok(MARCH), "{format}");
        }
        let local = TimeFormat::of("%Y-%m-%d %H:%M", berlin).unwrap();
        for text in [
            "2024-10-27 02:30",
            "2024-03-31 02:30",
            "2024-02-30 00:00",
            "",
            "x",
        ] {
            assert!(local.time_ms(text).is_err(), "{text}");
        }
        for (format, zone, part) in [
            ("iso", None, "not unix_s"),
            ("unix_s", berlin, "without a zone"),
            ("%Y-%m-%d %H:%M:%S", None, "name a zone"),
            ("%Y-%m-%d", berlin, "%Y-%m-%d"),
            ("%d.%m.%Y %H:%M:%S", Some("Europe/Atlantis"), "Atlantis"),
            ("%Y %!", berlin, "%!"),
        ] {
            match TimeFormat::of(format, zone) {
                Err(why) => assert!(why.contains(part), "{why}"),
                // Without a time of day, a date means midnight: a trace may have one sample a day.
                Ok(_) => assert_eq!(format, "%Y-%m-%d"),
            }
        }
        assert!(
            TimeFormat::of("unix_s", None)
                .unwrap()
                .time_ms("1e300")
                .is_err()
        );
        assert!(
            TimeFormat::of("unix_s", None)
                .unwrap()
                .time_ms("12")
                .is_err()
        );
    }
}
