//! Lengths of time as people type them: `90s`, `1m30s`, `500ms`.

use std::time::Duration;

/// Units of time; where a name begins with another unit's name, the longer name comes first.
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Reads a length of time.
///
/// # Errors
/// A message for the person who typed the length, with an example.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no length of time: write it like 90s, 1m30s or 500ms");
    let mut rest = text.trim();
    let mut total_ms: u64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) =
            rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?);
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, unit_ms) = UNITS
            .iter()
            .find(|(name, _)| *name == unit.trim())
            .ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        total_ms = number
            .checked_mul(*unit_ms)
            .and_then(|ms| total_ms.checked_add(ms))
            .ok_or_else(wrong)?;
        rest = after;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Formats a length as [`parse`] reads it.
#[must_use]
pub fn format(length: Duration) -> String {
    let mut rest_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (name, unit_ms) in UNITS.iter().rev() {
        let count = rest_ms / unit_ms;
        rest_ms %= unit_ms;
        if count > 0 {
            text.push_str(&format!("{count}{name}"));
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_people_type_them() {
        for (text, ms) in [
            ("90s", 90_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            (" 2h 5 m", 7_500_000),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "90",
            "s",
            "-1s",
            "1.5s",
            "1w",
            "99999999999999999999s",
            "9999999999999999999d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(ms in 0..u64::MAX / 2) {
            let length = Duration::from_millis(ms);
            prop_assert_eq!(parse(&format(length)), Ok(length));
        }

        #[test]
        fn never_panics(text in "\\PC{0,20}") {
            let _ = parse(&text);
        }
    }
}
