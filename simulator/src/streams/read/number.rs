//! Parses numbers of traces. Each number is read exactly, or refused with a description of valid values.

/// Unit of a trace's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Times are in seconds.
    #[default]
    S,
    /// Times are in milliseconds.
    Ms,
    /// Times are in microseconds.
    Us,
    /// Times are in nanoseconds.
    Ns,
}

impl TimeUnit {
    fn ns(self) -> u64 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Ns => 1,
        }
    }

    /// Parses a time in this unit, and converts it to ns, rounded down.
    pub(super) fn time_ns(self, text: &str) -> Result<u64, &'static str> {
        const WANTED: &str =
            "a time: digits, with or without a point among them, of less than 584 years";
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(part) {
            return Err(WANTED);
        }
        let whole: u64 = whole.parse().map_err(|_| WANTED)?;
        let (mut part_ns, mut unit_ns) = (0, self.ns());
        for digit in part.bytes() {
            unit_ns /= 10;
            part_ns += u64::from(digit - b'0') * unit_ns;
        }
        let whole_ns = whole.checked_mul(self.ns());
        whole_ns
            .and_then(|ns| ns.checked_add(part_ns))
            .ok_or(WANTED)
    }
}

/// Reads an integer below 2⁶⁴: decimal, or hexadecimal after `0x`.
pub(super) fn whole(text: &str) -> Result<u64, &'static str> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_number.then(|| u64::from_str_radix(digits, radix).ok());
    number
        .flatten()
        .ok_or("a whole number from 0 to below 2^64")
}

/// Reads a number of bytes below 2³².
pub(super) fn bytes(text: &str) -> Result<u32, &'static str> {
    let bytes = whole(text).ok().and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or("a number of bytes from 0 to below 2^32")
}

/// Returns true for a write, false for a read.
pub(super) fn is_write(text: &str) -> Result<bool, &'static str> {
    const READS: [&str; 3] = ["r", "read", "get"];
    const WRITES: [&str; 4] = ["w", "write", "set", "put"];
    let is_one_of = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    match text {
        _ if is_one_of(&READS) => Ok(false),
        _ if is_one_of(&WRITES) => Ok(true),
        _ => Err("r, read, get, w, write, set or put"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_exact() {
        for (unit, text, ns) in [
            (TimeUnit::S, "0", Some(0)),
            (TimeUnit::S, "1.5", Some(1_500_000_000)),
            (TimeUnit::S, "0.000000001", Some(1)),
            (TimeUnit::S, "0.1234567899", Some(123_456_789)),
            (TimeUnit::S, "3.", Some(3_000_000_000)),
            (TimeUnit::Ms, "2.000001", Some(2_000_001)),
            (TimeUnit::Us, "7.5", Some(7_500)),
            (TimeUnit::Ns, "18446744073709551615", Some(u64::MAX)),
            (TimeUnit::Ns, "18446744073709551615.9", Some(u64::MAX)),
            (TimeUnit::S, "18446744074", None),
            (TimeUnit::S, "", None),
            (TimeUnit::S, ".5", None),
            (TimeUnit::S, "-1", None),
            (TimeUnit::S, "+1", None),
            (TimeUnit::S, "1e3", None),
            (TimeUnit::S, "1.2.3", None),
            (TimeUnit::S, "time", None),
        ] {
            assert_eq!(unit.time_ns(text).ok(), ns, "{text}");
        }
    }

    #[test]
    fn numbers_are_digits_alone() {
        assert_eq!(whole("0x1F"), Ok(31));
        assert_eq!(whole("010"), Ok(10));
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX));
        for wrong in [
            "",
            "0x",
            "+1",
            "-1",
            "1.0",
            "18446744073709551616",
            "ff",
            "１",
        ] {
            assert!(whole(wrong).is_err(), "{wrong}");
        }
        assert_eq!(bytes("4294967295"), Ok(u32::MAX));
        assert!(bytes("4294967296").is_err());
        assert_eq!((is_write("W"), is_write("Read")), (Ok(true), Ok(false)));
        assert!(is_write("x").is_err());
    }

    proptest! {
        #[test]
        fn any_ns_is_read_back(ns: u64) {
            let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            prop_assert_eq!(TimeUnit::S.time_ns(&text), Ok(ns));
        }

        #[test]
        fn no_text_panics(text in "[0-9a-fx.+ -]{0,30}") {
            let _ = (whole(&text), bytes(&text), is_write(&text), TimeUnit::S.time_ns(&text));
        }
    }
}
