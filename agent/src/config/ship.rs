//! The configuration's table `[ship]`.

use gleaner_daemon::config::values;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the file with the authority's certificate.
pub(crate) const AUTHORITY: &str = "authority.crt";

/// Name of the file with this host's certificate and private key: one file, so that both are replaced
/// together.
pub(crate) const HOST: &str = "host.pem";

/// Default batch interval. It equals the default sample interval: more frequent batches would be empty.
const DEFAULT_BATCH_INTERVAL: Duration = Duration::from_secs(90);
const SHORTEST_INTERVAL_MS: u64 = 100;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Table `[ship]` as written. Unknown keys are errors; an empty text counts as a missing key.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ShipTable {
    folder: PathBuf,
    collector: String,
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    #[serde(deserialize_with = "values::interval_from::<SHORTEST_INTERVAL_MS, _>")]
    batch_interval: Option<Duration>,
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
    /// The collector's address; absent: the enrolled address.
    pub collector: Option<String>,
    /// File with the certificates of the authorities that may have issued the collector's certificate.
    pub authority: PathBuf,
    /// File with this host's certificate.
    pub certificate: PathBuf,
    /// File with this host's private key.
    pub key: PathBuf,
    /// Time between batches if there is no backlog.
    pub batch_interval: Duration,
    /// Timeout of the collector's answer.
    pub timeout: Duration,
    /// Maximum bytes per second; absent: no limit.
    pub rate_bytes: Option<u64>,
}

impl ShipTable {
    /// Resolves the settings; the default folder is beside the trace.
    pub(crate) fn resolve(self, database: &Path) -> ShipSettings {
        let folder = given(self.folder).unwrap_or_else(|| database.with_file_name("ship"));
        let file = |path, name| given(path).unwrap_or_else(|| folder.join(name));
        ShipSettings {
            collector: Some(self.collector).filter(|text| !text.is_empty()),
            authority: file(self.authority, AUTHORITY),
            certificate: file(self.certificate, HOST),
            key: file(self.key, HOST),
            batch_interval: self.batch_interval.unwrap_or(DEFAULT_BATCH_INTERVAL),
            timeout: self.timeout.unwrap_or(DEFAULT_TIMEOUT),
            rate_bytes: self.rate.flatten(),
            folder,
        }
    }
}

fn given(path: PathBuf) -> Option<PathBuf> {
    Some(path).filter(|path| !path.as_os_str().is_empty())
}
