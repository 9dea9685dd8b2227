//! The configuration, resolved: the command line over the file over the defaults.

use crate::args::GlobalArgs;
use crate::{Error, journal, sealer};
use gleaner_dataset::{Compaction, batch};
use gleaner_schemas::{interval, units};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Read where no other file is named.
const DEFAULT_FILE: &str = "/etc/gleaner/collector.toml";
const DEFAULT_DATA: &str = "/var/lib/gleaner/collector";
/// Status page and metrics, for this machine alone.
const DEFAULT_LOCAL: &str = "127.0.0.1:7480";

/// The file as written; unknown keys are refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    data: Option<PathBuf>,
    dataset: Option<PathBuf>,
    listen: Option<SocketAddr>,
    #[serde(deserialize_with = "local_text")]
    local: Option<Option<SocketAddr>>,
    local_access: LocalAccess,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
    revoked: Option<PathBuf>,
    pki: Option<PathBuf>,
    #[serde(deserialize_with = "interval_text")]
    seal_after: Option<Duration>,
    #[serde(deserialize_with = "size_text")]
    batch_limit: Option<u64>,
    #[serde(deserialize_with = "size_text")]
    memory_limit: Option<u64>,
    #[serde(deserialize_with = "size_text")]
    reserve: Option<u64>,
    connections_limit: Option<usize>,
    #[serde(deserialize_with = "interval_text")]
    reader_patience: Option<Duration>,
}

/// What may be done over plain HTTP from this machine itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LocalAccess {
    /// The status page and the metrics.
    #[default]
    Status,
    /// Everything: any program here may send any host's rows and read all.
    All,
}

/// Where certificates lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The collector's own, with what leads to its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Whose certificates are believed.
    pub authority: PathBuf,
    /// Which of them are not any more.
    pub revoked: Option<PathBuf>,
    /// The authority's folder, where hosts enrol here.
    pub pki: Option<PathBuf>,
}

/// What the collector is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Folder of journal and state.
    pub data: PathBuf,
    /// The dataset.
    pub dataset: PathBuf,
    /// Where agents and readers come, by TLS.
    pub listen: Option<(SocketAddr, Certificates)>,
    /// A loopback address without TLS.
    pub local: Option<SocketAddr>,
    /// What may be done there.
    pub local_access: LocalAccess,
    /// How large a batch may be.
    pub batch: batch::Limits,
    /// Bytes of batches that are taken in at the same time.
    pub memory_bytes: usize,
    /// Connections at the same time.
    pub connections_limit: usize,
    /// Who takes in nothing of an answer for so long is given up.
    pub reader_patience: Duration,
    /// How the journal is kept.
    pub journal: journal::Limits,
    /// When to seal.
    pub seal: sealer::Policy,
}

impl Config {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Config`] about the file, [`Error::NotLoopback`], [`Error::NoListener`].
    pub fn resolve(args: &GlobalArgs) -> Result<Self, Error> {
        let default = Path::new(DEFAULT_FILE);
        let path = args.config.clone();
        let path = path.or_else(|| default.exists().then(|| default.to_owned()));
        let file = match &path {
            Some(path) => read(path)?,
            None => ConfigFile::default(),
        };
        let wrong = |message: &str| Error::Config {
            path: path.clone().unwrap_or_default(),
            message: message.to_owned(),
        };
        let data = args.data.clone().or(file.data.clone());
        let data = data.unwrap_or_else(|| DEFAULT_DATA.into());
        let local = file.local.unwrap_or_else(|| DEFAULT_LOCAL.parse().ok());
        if let Some(address) = local.filter(|address| !address.ip().is_loopback()) {
            return Err(Error::NotLoopback { address });
        }
        let listen = match file.listen {
            Some(address) => Some((address, certificates(&file).map_err(|e| wrong(&e))?)),
            None => None,
        };
        let memory = file.memory_limit.unwrap_or(256 << 20);
        let limits = batch::Limits::default();
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Ok(Self {
            dataset: file.dataset.clone().unwrap_or_else(|| data.join("dataset")),
            data,
            listen,
            local,
            local_access: file.local_access,
            batch: batch::Limits {
                compressed_bytes: file.batch_limit.map_or(limits.compressed_bytes, bytes),
                ..limits
            },
            memory_bytes: bytes(memory),
            connections_limit: file.connections_limit.unwrap_or(20_000),
            reader_patience: file.reader_patience.unwrap_or(Duration::from_secs(60)),
            journal: journal::Limits {
                segment_bytes: 16 << 20,
                reserve_bytes: file.reserve.unwrap_or(512 << 20),
            },
            seal: sealer::Policy {
                seal_after: file.seal_after.unwrap_or(Duration::from_secs(600)),
                journal_bytes: 64 << 20,
                memory_bytes: bytes(memory / 2),
                compaction: Compaction::default(),
            },
        })
    }
}

fn certificates(file: &ConfigFile) -> Result<Certificates, String> {
    let named = |given: &Option<PathBuf>, in_pki: &str, key: &str| {
        let default = file.pki.as_ref().map(|pki| pki.join(in_pki));
        given.clone().or(default).ok_or_else(|| {
            format!("listen needs TLS: set {key}, or pki = the folder of `gleaner pki init`")
        })
    };
    Ok(Certificates {
        certificate: named(&file.certificate, "collector.crt", "certificate")?,
        key: named(&file.key, "collector.key", "key")?,
        authority: named(&file.authority, "authority.crt", "authority")?,
        revoked: named(&file.revoked, "revoked.crl", "revoked").ok(),
        pki: file.pki.clone(),
    })
}

fn read(path: &Path) -> Result<ConfigFile, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
    toml::from_str(&text).map_err(|e| Error::Config {
        path: path.to_owned(),
        message: e.to_string().trim_end().to_owned(),
    })
}

fn local_text<'de, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<SocketAddr>>, D::Error> {
    let text = String::deserialize(value)?;
    if text == "none" {
        return Ok(Some(None));
    }
    let address = text.parse().map_err(|_| {
        serde::de::Error::custom(format!("`{text}` is no address: 127.0.0.1:7480, or none"))
    })?;
    Ok(Some(Some(address)))
}

fn interval_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(value)?;
    let parsed = interval::parse(&text).map_err(serde::de::Error::custom)?;
    Ok(Some(parsed))
}

fn size_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(value)?;
    let parsed = units::parse_bytes(&text).ok_or_else(|| {
        serde::de::Error::custom(format!("`{text}` is no size: write it like 512MiB or 2GiB"))
    })?;
    Ok(Some(parsed))
}
