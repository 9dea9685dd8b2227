//! Whole numbers as JSON Schema defines them: `1000.0` is a whole number (JSON Schema 2020-12, 6.1.1).

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use std::fmt;

/// Limit beyond which a double cannot represent every whole number.
const MOST: f64 = 9_007_199_254_740_992.0;

struct Whole;

impl Visitor<'_> for Whole {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i64, E> {
        i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<i64, E> {
        if number.fract() == 0.0 && number.abs() <= MOST {
            return Ok(number as i64);
        }
        Err(E::invalid_value(Unexpected::Float(number), &self))
    }
}

/// Reads a whole number, for `deserialize_with`.
pub(super) fn number<'de, D: Deserializer<'de>>(value: D) -> Result<i64, D::Error> {
    value.deserialize_any(Whole)
}

/// Reads a count or a size. A number outside the type's range, such as a negative one, reads as 0, which
/// every bound of the API forbids: the request is then refused with a message about that bound.
pub(super) fn count<'de, T, D>(value: D) -> Result<T, D::Error>
where
    T: TryFrom<i64> + Default,
    D: Deserializer<'de>,
{
    number(value).map(|number| T::try_from(number).unwrap_or_default())
}

/// Reads a whole number that may be `null`.
pub(super) fn or_none<'de, D: Deserializer<'de>>(value: D) -> Result<Option<i64>, D::Error> {
    #[derive(serde::Deserialize)]
    struct Number(#[serde(deserialize_with = "number")] i64);
    let found: Option<Number> = serde::Deserialize::deserialize(value)?;
    Ok(found.map(|Number(number)| number))
}

#[cfg(test)]
mod tests {
    #[test]
    fn whole_numbers_however_written() {
        let read = |text: &str| super::number(&mut serde_json::Deserializer::from_str(text)).ok();
        assert_eq!(read("1000"), Some(1000));
        assert_eq!(read("1000.0"), Some(1000));
        assert_eq!(read("-1e3"), Some(-1000));
        for wrong in [
            "1.5",
            "1e300",
            "18446744073709551615",
            "\"1\"",
            "null",
            "true",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn counts_without_room_are_no_count() {
        let read = |text: &str| {
            let of = &mut serde_json::Deserializer::from_str(text);
            super::count::<u32, _>(of).ok()
        };
        assert_eq!(read("16.0"), Some(16));
        assert_eq!(read("-1"), Some(0));
        assert_eq!(read("4294967296"), Some(0));
        assert_eq!(read("0.5"), None);
    }
}
