//! Values in the form in which people write them in configuration files, for `#[serde(deserialize_with = …)]`. Each
//! key may be absent; its value is `None` then.

use gleaner_schemas::{interval, units};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::time::Duration;

/// Text by which a file says that a setting has no value.
const NONE: &str = "none";

/// Parses a duration, such as `90s`, `1m30s` or `500ms`.
///
/// # Errors
/// Description of the invalid value.
pub fn interval<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    interval_from::<0, D>(value)
}

/// Parses a duration of at least `LEAST_MS` milliseconds.
///
/// # Errors
/// Description of the invalid value.
pub fn interval_from<'de, const LEAST_MS: u64, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(value)?;
    let length = interval::parse(&text).map_err(Error::custom)?;
    check_interval(length, Duration::from_millis(LEAST_MS)).map_err(Error::custom)?;
    Ok(Some(length))
}

/// Parses a host id. The empty text stands for the agent's id of this host.
///
/// # Errors
/// Description of the invalid value.
pub fn host_id<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let id = String::deserialize(value)?;
    let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if id.is_empty() || (id.len() == 32 && id.bytes().all(is_digit)) {
        return Ok(Some(id));
    }
    Err(D::Error::custom(
        "32 lower-case hex digits, or \"\" for the agent's name of this host",
    ))
}

/// Checks that a duration is not too short.
///
/// # Errors
/// Description of the error.
pub fn check_interval(length: Duration, least: Duration) -> Result<(), String> {
    if length >= least {
        return Ok(());
    }
    let (length, least) = (interval::format(length), interval::format(least));
    Err(format!("{length} is too short: {least} is the minimum"))
}

/// Parses a size, such as `512MiB` or `2GiB`.
///
/// # Errors
/// Description of the invalid value.
pub fn size<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    size_from::<0, D>(value)
}

/// Parses a size of at least `LEAST` bytes.
///
/// # Errors
/// Description of the invalid value.
pub fn size_from<'de, const LEAST: u64, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<u64>, D::Error> {
    parsed_size(&String::deserialize(value)?, LEAST, "512MiB or 2GiB").map(Some)
}

/// Parses a size of at least `LEAST` bytes, or `none`.
///
/// # Errors
/// Description of the invalid value.
pub fn size_or_none<'de, const LEAST: u64, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<u64>>, D::Error> {
    or_none(value, |text| parsed_size(text, LEAST, "512MiB, or none"))
}

/// Parses a share: a number from 0 to 1.
///
/// # Errors
/// Description of the invalid value.
pub fn share<'de, D: Deserializer<'de>>(value: D) -> Result<Option<f64>, D::Error> {
    let share = f64::deserialize(value)?;
    if (0.0..=1.0).contains(&share) {
        return Ok(Some(share));
    }
    let wrong = format!("{share} is no share: that is a number from 0 to 1, like 0.15");
    Err(Error::custom(wrong))
}

/// Parses an address to listen on, such as `0.0.0.0:7443`.
///
/// # Errors
/// Description of the invalid value.
pub fn address<'de, D: Deserializer<'de>>(value: D) -> Result<Option<SocketAddr>, D::Error> {
    parsed_address(&String::deserialize(value)?, "0.0.0.0:7443 or [::]:7443").map(Some)
}

/// Parses an address of this machine only, for use without TLS, such as `127.0.0.1:7480`, or `none`.
///
/// # Errors
/// Description of the invalid value.
pub fn loopback_or_none<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<SocketAddr>>, D::Error> {
    or_none(value, |text| {
        let address = parsed_address(text, "127.0.0.1:7480, or none")?;
        check_loopback(address).map_err(Error::custom)?;
        Ok(address)
    })
}

/// Checks that an address can be reached only from this machine.
///
/// # Errors
/// Description of the error.
pub fn check_loopback(address: SocketAddr) -> Result<(), String> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "{address} is no loopback address: only 127.0.0.1 and ::1 may be served without TLS; for all others set listen, and \
         pki = the folder of `gleaner pki init`"
    ))
}

fn or_none<'de, D: Deserializer<'de>, T>(
    value: D,
    parse: impl FnOnce(&str) -> Result<T, D::Error>,
) -> Result<Option<Option<T>>, D::Error> {
    let text = String::deserialize(value)?;
    let value = if text == NONE {
        None
    } else {
        Some(parse(&text)?)
    };
    Ok(Some(value))
}

fn parsed_size<E: Error>(text: &str, least: u64, example: &str) -> Result<u64, E> {
    match units::parse_bytes(text) {
        Some(bytes) if bytes >= least => Ok(bytes),
        Some(_) => Err(E::custom(format!(
            "{text} is too little: {} is the minimum",
            units::Bytes::from(least)
        ))),
        None => Err(E::custom(format!(
            "`{text}` is no size: write it like {example}"
        ))),
    }
}

fn parsed_address<E: Error>(text: &str, example: &str) -> Result<SocketAddr, E> {
    let wrong = || E::custom(format!("`{text}` is no address: write it like {example}"));
    text.parse().map_err(|_| wrong())
}
