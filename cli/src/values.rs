//! Parsers of option values that several commands share.

use gleaner_schemas::units;

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
