//! Parsers of option values that several commands share.

use gleaner_schemas::units;
use std::ops::Range;

/// Parses a part's number and the number of parts: `2/7`.
pub(crate) fn part_of(text: &str) -> Result<(usize, usize), String> {
    let numbers = text
        .split_once('/')
        .map(|(number, of)| (number.parse(), of.parse()));
    match numbers {
        Some((Ok(number), Ok(parts_count))) if (1..=parts_count).contains(&number) => {
            Ok((number, parts_count))
        }
        _ => Err("a part's number, from 1, and the number of parts, such as 2/7".to_owned()),
    }
}

/// Parses a range of positions from 0, whose end is excluded: `0..100`.
pub(crate) fn range(text: &str) -> Result<Range<usize>, String> {
    let ends = text
        .split_once("..")
        .map(|(from, to)| (from.parse(), to.parse()));
    match ends {
        Some((Ok(from), Ok(to))) if from < to => Ok(from..to),
        _ => Err("two positions from 0, the second one excluded, such as 0..100".to_owned()),
    }
}

/// Parses a point in time into ms since 1970-01-01 UTC.
pub(crate) fn instant(text: &str) -> Result<i64, String> {
    let wanted = "a date (UTC), RFC 3339, or ms since 1970-01-01 UTC";
    gleaner_dataset::instant_ms(text).ok_or_else(|| wanted.to_owned())
}

/// Parses a size; the unit may be missing, or be its first letter: `64MiB`, `1.5 GiB`, `64M`, `4096`.
pub(crate) fn size_bytes(text: &str) -> Result<i64, String> {
    let unit = match text.trim_end().chars().last() {
        Some('0'..='9') => "B",
        Some('K' | 'M' | 'G' | 'T') => "iB",
        _ => "",
    };
    let bytes = units::parse_size_above_0(&format!("{text}{unit}"))?;
    i64::try_from(bytes).map_err(|_| format!("{text} is more than any machine has"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        assert_eq!(part_of("2/7"), Ok((2, 7)));
        for wrong in ["", "2", "0/7", "8/7", "1/0", "a/b", "-1/2"] {
            assert!(part_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges() {
        assert_eq!(range("0..100"), Ok(0..100));
        for wrong in ["", "5", "5..5", "7..3", "a..b", "..5", "5.."] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(size_bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!(size_bytes("4096"), Ok(4096));
        assert_eq!(size_bytes("2G"), Ok(2 << 30));
        for wrong in ["", "MiB", "-1MiB", "1MB", "0", "1e400"] {
            assert!(size_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
