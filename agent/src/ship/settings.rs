//! The configuration's table `[ship]`.

use crate::interval;
use crate::ship::folder::{AUTHORITY, HOST};
use gleaner_schemas::units;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The tracing interval: sending more often would send batches of nothing.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(90);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// As written; unknown keys are refused. Empty texts are keys left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ShipTable {
    folder: PathBuf,
    collector: String,
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    #[serde(deserialize_with = "interval_text")]
    interval: Option<Duration>,
    #[serde(deserialize_with = "timeout_text")]
    timeout: Option<Duration>,
    #[serde(deserialize_with = "rate_text")]
    rate: Option<u64>,
}

/// Where and how to ship.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShipSettings {
    /// Where `enroll` leaves what it got.
    pub folder: PathBuf,
    /// The collector's address; as enrolled when absent.
    pub collector: Option<String>,
    /// Certificates of the authorities that a collector's certificate may be of.
    pub authority: PathBuf,
    /// This host's certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Time between batches when there is no backlog.
    pub interval: Duration,
    /// How long the collector's answer may take.
    pub timeout: Duration,
    /// Bytes a second at most; no limit when absent.
    pub rate_bytes: Option<u64>,
}

impl ShipTable {
    /// The settings; the folder lies beside the trace unless another is named.
    pub(crate) fn resolve(self, database: &Path) -> ShipSettings {
        let folder = given(self.folder).unwrap_or_else(|| database.with_file_name("ship"));
        let file = |path, name| given(path).unwrap_or_else(|| folder.join(name));
        ShipSettings {
            collector: Some(self.collector).filter(|text| !text.is_empty()),
            authority: file(self.authority, AUTHORITY),
            certificate: file(self.certificate, HOST),
            key: file(self.key, HOST),
            interval: self.interval.unwrap_or(DEFAULT_INTERVAL),
            timeout: self.timeout.unwrap_or(DEFAULT_TIMEOUT),
            rate_bytes: self.rate,
            folder,
        }
    }
}

fn given(path: PathBuf) -> Option<PathBuf> {
    Some(path).filter(|path| !path.as_os_str().is_empty())
}

fn interval_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    at_least(value, SHORTEST_INTERVAL)
}

fn timeout_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    at_least(value, SHORTEST_INTERVAL)
}

fn at_least<'de, D: serde::Deserializer<'de>>(
    value: D,
    least: Duration,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(value)?;
    let length = interval::parse(&text).map_err(serde::de::Error::custom)?;
    if length < least {
        return Err(serde::de::Error::custom(format!(
            "{text} is too short: {} is the least",
            interval::format(least)
        )));
    }
    Ok(Some(length))
}

fn rate_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(value)?;
    if text == "none" {
        return Ok(None);
    }
    match units::parse_bytes(&text) {
        Some(bytes) if bytes > 0 => Ok(Some(bytes)),
        _ => Err(serde::de::Error::custom(format!(
            "`{text}` is no rate: write bytes a second like 64KiB, or none"
        ))),
    }
}
