//! The configuration's table `[ship]`.

use gleaner_daemon::config::values;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The authority's certificate.
pub(crate) const AUTHORITY: &str = "authority.crt";

/// File with this host's certificate and private key: one file, so that both are replaced at once.
pub(crate) const HOST: &str = "host.pem";

/// The tracing interval: sending more often would send batches of nothing.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(90);
const SHORTEST_INTERVAL_MS: u64 = 100;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Table `[ship]` as written. Unknown keys are refused; an empty text counts as a missing key.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ShipTable {
    folder: PathBuf,
    collector: String,
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    #[serde(deserialize_with = "values::interval_from::<SHORTEST_INTERVAL_MS, _>")]
    interval: Option<Duration>,
    #[serde(deserialize_with = "values::interval_from::<SHORTEST_INTERVAL_MS, _>")]
    timeout: Option<Duration>,
    #[serde(deserialize_with = "values::size_or_none::<1, _>")]
    rate: Option<Option<u64>>,
}

/// Settings of shipping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShipSettings {
    /// Folder in which `enroll` stores certificate, key and address.
    pub folder: PathBuf,
    /// The collector's address; as enrolled when absent.
    pub collector: Option<String>,
    /// Certificates of the authorities that a collector's certificate may be of.
    pub authority: PathBuf,
    /// File with this host's certificate.
    pub certificate: PathBuf,
    /// File with this host's private key.
    pub key: PathBuf,
    /// Time between batches when there is no backlog.
    pub interval: Duration,
    /// Longest wait for the collector's answer.
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
            rate_bytes: self.rate.flatten(),
            folder,
        }
    }
}

fn given(path: PathBuf) -> Option<PathBuf> {
    Some(path).filter(|path| !path.as_os_str().is_empty())
}
