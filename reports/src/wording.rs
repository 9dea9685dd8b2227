//! Numbers as words for sentences and cells, with a no-break space between number and unit.

pub(crate) use gleaner_schemas::units::thousands;
use gleaner_schemas::units::{Bytes, Seconds};

const NO_BREAK: &str = "\u{a0}";

/// Bytes in words: `18.1 GiB`, `944 GiB`, `1.04 TiB`; at most three digits, since more would not be
/// accurate.
pub(crate) fn bytes(bytes: impl Into<f64>) -> String {
    const TIB: f64 = 1_099_511_627_776.0;
    let bytes = bytes.into();
    let printed = Bytes(bytes).to_string();
    let (number, unit) = printed.rsplit_once(' ').unwrap_or((&printed, ""));
    let rounded = match (number.parse::<f64>(), unit) {
        (Ok(number), "TiB") if number < 10.0 => format!("{:.2}", bytes / TIB),
        (Ok(number), _) if number >= 100.0 => format!("{number:.0}"),
        _ => number.to_owned(),
    };
    format!("{rounded}{NO_BREAK}{unit}")
}

/// Integer bytes in words: `18.1 GiB`.
pub(crate) fn stored_bytes(stored: i64) -> String {
    bytes(stored as f64)
}

/// A size that was chosen, not measured, in words: `4 GiB`, `1.5 GiB`.
pub(crate) fn size(stored: i64) -> String {
    let printed = stored_bytes(stored);
    let (number, unit) = printed.rsplit_once(NO_BREAK).unwrap_or((&printed, ""));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number}{NO_BREAK}{unit}")
}

/// A length of time in words: `1 h 20 min`.
pub(crate) fn seconds(seconds: f64) -> String {
    Seconds(seconds).to_string().replace(' ', NO_BREAK)
}

/// A share in words: `76 %`; with one decimal below 10 % and above 99 %; never rounded to 0 % or
/// 100 %.
pub(crate) fn share(share: f64) -> String {
    let percent = share * 100.0 + 0.0; // no negative zero
    let text = if percent != 0.0 && percent.abs() < 0.05 {
        "< 0.1".into()
    } else if (99.95..100.0).contains(&percent) {
        "> 99.9".into()
    } else if percent == 0.0 || percent == 100.0 || (10.0..99.0).contains(&percent) {
        format!("{percent:.0}")
    } else {
        format!("{percent:.1}")
    };
    format!("{text} %").replace(' ', NO_BREAK)
}

/// A count in words: `1 sample`, `1,920 samples`.
pub(crate) fn count(number: i64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{}{NO_BREAK}{thing}{plural}", thousands(number))
}

/// A list in words: `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_units() {
        assert_eq!(stored_bytes(25_276_514_304), "23.5\u{a0}GiB");
        assert_eq!(stored_bytes(944 << 30), "944\u{a0}GiB");
        assert_eq!(stored_bytes(1065 << 30), "1.04\u{a0}TiB");
        assert_eq!(size(4 << 30), "4\u{a0}GiB");
        assert_eq!(size(1 << 40), "1\u{a0}TiB");
        assert_eq!(size(100 << 30), "100\u{a0}GiB");
        assert_eq!(size(3 << 29), "1.5\u{a0}GiB");
        assert_eq!(seconds(4800.0), "1\u{a0}h\u{a0}20\u{a0}min");
        assert_eq!(count(1, "sample"), "1\u{a0}sample");
        assert_eq!(count(1_234_567, "sample"), "1,234,567\u{a0}samples");
    }

    #[test]
    fn shares_are_never_rounded_to_none_or_all() {
        let cases = [
            (0.0, "0 %"),
            (0.0001, "< 0.1 %"),
            (0.012, "1.2 %"),
            (0.764, "76 %"),
            (0.995, "99.5 %"),
            (0.9999, "> 99.9 %"),
            (1.0, "100 %"),
        ];
        for (value, text) in cases {
            assert_eq!(share(value).replace(NO_BREAK, " "), text, "{value}");
        }
    }

    #[test]
    fn lists_read_like_sentences() {
        let words = |n: usize| list(&["a", "b", "c"].map(String::from)[..n]);
        assert_eq!(
            [words(0), words(1), words(2), words(3)],
            ["", "a", "a and b", "a, b and c"]
        );
    }
}
