//! The resolved configuration. The command line overrides the environment, which overrides the file, which
//! overrides the defaults.

use crate::args::GlobalArgs;
use crate::peers::PeerSettings;
use crate::publish;
use crate::tables::TableSettings;
use crate::{journal, sealer};
use gleaner_daemon::config::{self, ConfigError, LoadedConfig, Origin, values};
use gleaner_daemon::folders;
use gleaner_dataset::{Compaction, Policy as Retention, batch, check_writer_name};
use gleaner_objects::{Target, TargetError};
use gleaner_schemas::rows::DATASET_TABLES;
use gleaner_tables::Options as TableOptions;
use gleaner_trust::{Address, ClientPaths};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the daemon, as used in the names of its file and of its environment variables.
pub const DAEMON: &str = "collector";
/// Default interval to which old samples are thinned: one sample per interval stays.
const DEFAULT_THIN_TO: Duration = Duration::from_secs(900);
/// Time for which replaced files stay on the object store, as in the dataset.
const PUBLISH_GRACE: Duration = Duration::from_secs(3600);
/// Default time between publications of the Iceberg tables.
const TABLES_EVERY: Duration = Duration::from_secs(3600);
const SHORTEST_TABLES_EVERY_MS: u64 = 1000;
/// Default address of the status page and metrics, for this machine only.
const DEFAULT_LOCAL_LISTEN: &str = "127.0.0.1:7480";

/// The configuration file as written; unknown keys are errors.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    data_folder: Option<PathBuf>,
    dataset: Option<PathBuf>,
    #[serde(deserialize_with = "values::address")]
    listen: Option<SocketAddr>,
    #[serde(deserialize_with = "values::loopback_or_none")]
    local_listen: Option<Option<SocketAddr>>,
    local_access: LocalAccess,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
    revocation_list: Option<PathBuf>,
    pki: Option<PathBuf>,
    #[serde(deserialize_with = "values::interval")]
    seal_after: Option<Duration>,
    #[serde(deserialize_with = "values::size")]
    batch_limit: Option<u64>,
    #[serde(deserialize_with = "values::size")]
    memory_limit: Option<u64>,
    #[serde(deserialize_with = "values::size")]
    disk_reserve: Option<u64>,
    connections_limit: Option<usize>,
    #[serde(deserialize_with = "values::interval")]
    reader_timeout: Option<Duration>,
    name: Option<String>,
    publish: Option<String>,
    #[serde(deserialize_with = "values::interval")]
    publish_grace: Option<Duration>,
    publish_options: BTreeMap<String, toml::Value>,
    peers: PeersTable,
    tables: TablesTable,
    retention: RetentionTable,
}

/// The table `[peers]`; without `urls`, the collector has no peers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PeersTable {
    urls: Vec<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// The table `[tables]`; without `folder`, no Iceberg tables are published.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TablesTable {
    folder: Option<PathBuf>,
    #[serde(deserialize_with = "values::interval_from::<SHORTEST_TABLES_EVERY_MS, _>")]
    every: Option<Duration>,
    #[serde(deserialize_with = "values::interval")]
    grace: Option<Duration>,
    location: Option<String>,
}

/// The table `[retention]`; without it, everything is kept.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetentionTable {
    days: Option<u32>,
    details_days: Option<u32>,
    thin_after_days: Option<u32>,
    #[serde(deserialize_with = "values::interval")]
    thin_to: Option<Duration>,
}

impl RetentionTable {
    fn policy(&self) -> Retention {
        let tables = DATASET_TABLES.iter().map(|table| table.name.to_owned());
        let of_all = |days| tables.map(|table| (table, days)).collect();
        let thin_to = self.thin_to.unwrap_or(DEFAULT_THIN_TO);
        Retention {
            keep_days: self.days.map(of_all).unwrap_or_default(),
            details_days: self.details_days,
            thin_after_days: self.thin_after_days,
            thin_to_ms: i64::try_from(thin_to.as_millis()).unwrap_or(i64::MAX),
        }
    }
}

/// Actions allowed over plain HTTP from this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LocalAccess {
    /// The status page and the metrics only.
    #[default]
    Status,
    /// Everything: any program on this machine may send any host's rows and read all rows.
    All,
}

/// Paths of certificate files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// File of the collector's certificate, followed by the certificates between it and its authority's.
    pub certificate: PathBuf,
    /// File of the collector's key.
    pub key: PathBuf,
    /// File of the certificate of the trusted authority.
    pub authority: PathBuf,
    /// File of the revocation list, if there is one.
    pub revocation_list: Option<PathBuf>,
    /// Folder of the authority's files; absent if hosts do not enrol at this collector.
    pub pki: Option<PathBuf>,
}

/// Configuration of the collector.
#[derive(Clone, Debug)]
pub struct Config {
    /// Folder of journal and state.
    pub data_folder: PathBuf,
    /// Folder of the dataset.
    pub dataset: PathBuf,
    /// Address for agents and readers, with TLS, and its certificates.
    pub listen: Option<(SocketAddr, Certificates)>,
    /// A loopback address without TLS, for programs of this machine.
    pub local_listen: Option<SocketAddr>,
    /// Actions allowed at the plain listener.
    pub local_access: LocalAccess,
    /// Size limits of a batch.
    pub batch: batch::Limits,
    /// Maximum bytes of batches in progress.
    pub memory_bytes: usize,
    /// Maximum number of simultaneous connections.
    pub connections_limit: usize,
    /// Time after which a reader is disconnected if it reads nothing of its answer.
    pub reader_timeout: Duration,
    /// Limits of the journal.
    pub journal: journal::Limits,
    /// Rules of sealing.
    pub seal: sealer::Policy,
    /// The other collectors of the dataset.
    pub peers: PeerSettings,
    /// Settings of the copy of the dataset, if there is one.
    pub publish: Option<publish::Settings>,
    /// Settings of the Iceberg tables, if they are published.
    pub tables: Option<TableSettings>,
}

impl Config {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// The arguments, the environment or the file are wrong.
    pub fn resolve(args: &GlobalArgs) -> Result<Self, ConfigError> {
        Self::load(args).map(|loaded| loaded.values)
    }

    /// Resolves the arguments as [`Self::resolve`] does, and returns the origin of the configuration
    /// too.
    ///
    /// # Errors
    /// The arguments, the environment or the file are wrong.
    pub fn load(args: &GlobalArgs) -> Result<LoadedConfig<Self>, ConfigError> {
        let LoadedConfig {
            values: file,
            origin,
        } = config::load::<ConfigFile>(DAEMON, args.config.as_deref())?;
        let data_folder = args.data_folder.clone().or(file.data_folder.clone());
        let data_folder = data_folder.unwrap_or_else(|| folders::state("collector"));
        let local_listen = file
            .local_listen
            .unwrap_or_else(|| DEFAULT_LOCAL_LISTEN.parse().ok());
        let listen = match file.listen {
            Some(address) => Some((address, certificates(&file, &origin)?)),
            None => None,
        };
        if listen.is_none() && local_listen.is_none() {
            let what = "nothing to listen on: set listen (TLS) or local_listen (loopback)";
            return Err(origin.wrong("local_listen", what));
        }
        if let Some(name) = &file.name {
            check_writer_name(name).map_err(|error| origin.wrong("name", error.to_string()))?;
        }
        let certificates = listen.as_ref().map(|(_, certificates)| certificates);
        let peers = peers(&file.peers, certificates);
        let peers = peers.map_err(|(key, what)| origin.wrong(key, what))?;
        let publish = published(&file).map_err(|what| origin.wrong("publish", what))?;
        let mut values = Self {
            peers,
            listen,
            local_listen,
            publish,
            ..Self::from_file(&file, data_folder)
        };
        values.tables = tables(&file.tables, &values, &origin)?;
        Ok(LoadedConfig { values, origin })
    }

    /// Keys that have another value in `next` and take effect only after a restart.
    #[must_use]
    pub fn restart_keys(&self, next: &Self) -> Vec<&'static str> {
        let fixed = [
            (
                "data_folder or dataset",
                (&self.data_folder, &self.dataset) != (&next.data_folder, &next.dataset),
            ),
            (
                "listen, local_listen or certificates",
                (&self.listen, self.local_listen) != (&next.listen, next.local_listen),
            ),
            ("local_access", self.local_access != next.local_access),
            ("memory_limit", self.memory_bytes != next.memory_bytes),
            (
                "connections_limit",
                self.connections_limit != next.connections_limit,
            ),
            ("reader_timeout", self.reader_timeout != next.reader_timeout),
            ("disk_reserve", self.journal != next.journal),
            ("name", self.seal.collector_name != next.seal.collector_name),
            (
                "publish",
                format!("{:?}", self.publish) != format!("{:?}", next.publish),
            ),
            (
                "peers",
                format!("{:?}", self.peers) != format!("{:?}", next.peers),
            ),
            ("tables", self.tables != next.tables),
        ];
        let left_out = fixed.into_iter().filter(|(_, differs)| *differs);
        left_out.map(|(key, _)| key).collect()
    }

    /// Resolves all settings except the listeners, the peers, the copy and the tables. None of these values can be
    /// wrong, except for the name, which the caller checks.
    fn from_file(file: &ConfigFile, data_folder: PathBuf) -> Self {
        let memory = file.memory_limit.unwrap_or(256 << 20);
        let limits = batch::Limits::default();
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Self {
            dataset: file
                .dataset
                .clone()
                .unwrap_or_else(|| data_folder.join("dataset")),
            data_folder,
            listen: None,
            local_listen: None,
            local_access: file.local_access,
            batch: batch::Limits {
                compressed_bytes: file.batch_limit.map_or(limits.compressed_bytes, bytes),
                ..limits
            },
            memory_bytes: bytes(memory),
            connections_limit: file.connections_limit.unwrap_or(20_000),
            reader_timeout: file.reader_timeout.unwrap_or(Duration::from_secs(60)),
            journal: journal::Limits {
                segment_bytes: 16 << 20,
                reserve_bytes: file.disk_reserve.unwrap_or(512 << 20),
            },
            seal: sealer::Policy {
                seal_after: file.seal_after.unwrap_or(Duration::from_secs(600)),
                journal_bytes: 64 << 20,
                memory_bytes: bytes(memory / 2),
                compaction: Compaction::default(),
                retention: file.retention.policy(),
                collector_name: file.name.clone(),
            },
            peers: PeerSettings::default(),
            publish: None,
            tables: None,
        }
    }

    /// Configuration of a collector inside another program. All files are below `folder`. TLS uses a loopback
    /// port of the kernel's choice, and certificates of the authority in `pki`. The status page is at
    /// `local_listen`.
    #[must_use]
    pub fn local(folder: &Path, pki: &Path, local_listen: Option<SocketAddr>) -> Self {
        let file = ConfigFile {
            disk_reserve: Some(64 << 20),
            ..ConfigFile::default()
        };
        Self {
            dataset: folder.join("dataset"),
            listen: Some((([127, 0, 0, 1], 0).into(), Certificates::in_pki(pki))),
            local_listen,
            ..Self::from_file(&file, folder.join("collector"))
        }
    }
}

/// Resolves the peers. A reader's certificate is needed for addresses with TLS.
///
/// # Errors
/// Key with the fault, and a description of the fault.
fn peers(
    table: &PeersTable,
    certificates: Option<&Certificates>,
) -> Result<PeerSettings, (&'static str, String)> {
    let mut urls: Vec<Address> = Vec::new();
    for text in &table.urls {
        let url = Address::parse(text).map_err(|error| ("peers.urls", error.to_string()))?;
        if urls.contains(&url) {
            return Err(("peers.urls", format!("{url} is there twice")));
        }
        urls.push(url);
    }
    if !urls.iter().any(Address::is_secret) {
        return Ok(PeerSettings { urls, reader: None });
    }
    let certificates = certificates.ok_or_else(|| {
        let what = "peers with https:// need listen, whose authority they are trusted by";
        ("peers.urls", what.to_owned())
    })?;
    let named = |given: &Option<PathBuf>, name: &str, key: &'static str| {
        let default = certificates.pki.as_ref().map(|pki| pki.join(name));
        given.clone().or(default).ok_or_else(|| {
            let what = format!(
                "peers with https:// need a reader's certificate: set {key}, or pki = the folder of `gleaner pki init`"
            );
            ("peers.urls", what)
        })
    };
    Ok(PeerSettings {
        reader: Some(ClientPaths {
            certificate: named(&table.certificate, "peers.crt", "peers.certificate")?,
            key: named(&table.key, "peers.key", "peers.key")?,
            authority: certificates.authority.clone(),
        }),
        urls,
    })
}

fn published(file: &ConfigFile) -> Result<Option<publish::Settings>, String> {
    let Some(url) = &file.publish else {
        return Ok(None);
    };
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(), // a number or a boolean
    };
    let options = file.publish_options.iter();
    let options = options.map(|(key, value)| (key.clone(), text(value)));
    Ok(Some(publish::Settings {
        target: Target::new(url, &options.collect()).map_err(|error| match error {
            TargetError::Url(fault) => format!("publish = {url:?}: {fault}"),
            TargetError::Option(fault) => format!("publish_options: {fault}"),
            TargetError::Store(fault) => format!("publish_options: {fault}"),
        })?,
        grace: file.publish_grace.unwrap_or(PUBLISH_GRACE),
    }))
}

fn tables(
    table: &TablesTable,
    config: &Config,
    origin: &Origin,
) -> Result<Option<TableSettings>, ConfigError> {
    let Some(folder) = &table.folder else {
        return Ok(None);
    };
    let settings = TableSettings {
        folder: folder.clone(),
        every: table.every.unwrap_or(TABLES_EVERY),
        options: TableOptions {
            location: table.location.clone(),
            grace: table.grace.unwrap_or(gleaner_tables::GRACE),
            // Tables stop growing before they use the space that batches need, or make the disk nearly full.
            reserve_bytes: config.journal.reserve_bytes.saturating_mul(2),
        },
    };
    let others = [config.dataset.clone(), config.data_folder.join("journal")];
    let checked = settings.check(&others);
    checked.map_err(|(key, what)| origin.wrong(key, what))?;
    Ok(Some(settings))
}

impl Certificates {
    /// Files of a deployment's authority folder.
    fn in_pki(pki: &Path) -> Self {
        Self {
            certificate: pki.join("collector.crt"),
            key: pki.join("collector.key"),
            authority: pki.join("authority.crt"),
            revocation_list: Some(pki.join("revoked.crl")),
            pki: Some(pki.to_owned()),
        }
    }
}

fn certificates(file: &ConfigFile, origin: &Origin) -> Result<Certificates, ConfigError> {
    let pki = file.pki.as_deref().map(Certificates::in_pki);
    let named = |given: &Option<PathBuf>, in_pki: fn(&Certificates) -> &PathBuf, key: &str| {
        let default = pki.as_ref().map(|pki| in_pki(pki).clone());
        given.clone().or(default).ok_or_else(|| {
            let what =
                format!("listen needs TLS: set {key}, or pki = the folder of `gleaner pki init`");
            origin.wrong("listen", what)
        })
    };
    Ok(Certificates {
        certificate: named(&file.certificate, |pki| &pki.certificate, "certificate")?,
        key: named(&file.key, |pki| &pki.key, "key")?,
        authority: named(&file.authority, |pki| &pki.authority, "authority")?,
        revocation_list: file
            .revocation_list
            .clone()
            .or(pki.and_then(|pki| pki.revocation_list)),
        pki: file.pki.clone(),
    })
}

#[cfg(test)]
mod tests;
