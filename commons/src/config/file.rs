//! The configuration file as written; unknown keys are errors.

use super::SharingPolicy;
use gleaner_daemon::config::values;
use gleaner_policy::global::settings::{Swap, Victim};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConfigFile {
    #[serde(deserialize_with = "name")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "values::host_id")]
    pub(super) host_id: Option<String>,
    #[serde(deserialize_with = "values::address")]
    pub(super) listen: Option<SocketAddr>,
    #[serde(deserialize_with = "values::loopback_or_none")]
    pub(super) local_listen: Option<Option<SocketAddr>>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) authority: Option<PathBuf>,
    pub(super) revocation_list: Option<PathBuf>,
    pub(super) members: Vec<String>,
    pub(super) recruiters: Vec<String>,
    pub(super) address: String,
    pub(super) policy: Option<SharingPolicy>,
    pub(super) victim: Option<Victim>,
    pub(super) swap: Option<Swap>,
    pub(super) boost_quarters: Option<u32>,
    #[serde(deserialize_with = "values::size")]
    pub(super) local: Option<u64>,
    #[serde(deserialize_with = "values::size")]
    pub(super) hold: Option<u64>,
    pub(super) kernel_cache: Option<bool>,
    pub(super) user: Option<String>,
    pub(super) allow_other: Option<bool>,
    #[serde(deserialize_with = "values::interval_from::<10, _>")]
    pub(super) source_timeout: Option<Duration>,
    #[serde(deserialize_with = "values::interval_from::<1, _>")]
    pub(super) peer_timeout: Option<Duration>,
    #[serde(deserialize_with = "values::interval")]
    pub(super) fetch_wait: Option<Duration>,
    pub(super) connections_limit: Option<usize>,
    pub(super) socket: Option<PathBuf>,
    pub(super) mounts: Vec<MountTable>,
}

/// A mount as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MountTable {
    pub(super) catalog: Option<String>,
    pub(super) folder: Option<PathBuf>,
    pub(super) source: Option<String>,
}

fn name<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(value)?;
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(Some(name));
    }
    Err(D::Error::custom("1 to 64 letters, digits and ._-"))
}
