//! Begin of the simulated time, as scenario files write it.

use gleaner_dataset::instant_ms;
use serde::Deserialize;
use toml::Value;

/// Parses a date, with or without quotes.
pub(crate) fn begin<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = match Value::deserialize(from)? {
        Value::Datetime(date) => date.to_string(),
        Value::String(text) => text,
        other => other.to_string(),
    };
    match instant_ms(&text) {
        Some(_) => Ok(Some(text)),
        None => Err(serde::de::Error::custom(format!(
            "from = {text}: write a date (UTC), RFC 3339, or ms since 1970-01-01 UTC"
        ))),
    }
}
