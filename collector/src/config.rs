//! The configuration, resolved: the command line over the file over the defaults.

use crate::args::GlobalArgs;
use crate::publish::{self, Target};
use crate::{Error, journal, sealer};
use gleaner_dataset::{Compaction, Policy as Retention, batch};
use gleaner_schemas::rows::DATASET_TABLES;
use gleaner_schemas::{interval, units};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Read where no other file is named.
const DEFAULT_FILE: &str = "/etc/gleaner/collector.toml";
const DEFAULT_DATA: &str = "/var/lib/gleaner/collector";
/// Of old samples one for each of these is kept, where they are thinned.
const DEFAULT_THIN_TO: Duration = Duration::from_secs(900);
/// What is replaced stays as long on the object store as in the dataset itself.
const PUBLISH_GRACE: Duration = Duration::from_secs(3600);
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
    name: Option<String>,
    publish: Option<String>,
    #[serde(deserialize_with = "interval_text")]
    publish_grace: Option<Duration>,
    publish_options: BTreeMap<String, toml::Value>,
    keep: Keep,
}

/// The table `[keep]`; all is kept unless set.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Keep {
    days: Option<u32>,
    details_days: Option<u32>,
    thin_after_days: Option<u32>,
    #[serde(deserialize_with = "interval_text")]
    thin_to: Option<Duration>,
}

impl Keep {
    fn retention(&self) -> Retention {
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
    /// Where a copy of the dataset is kept.
    pub publish: Option<publish::Settings>,
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
        Ok(Self {
            listen,
            local,
            publish: published(&file).map_err(|e| wrong(&e))?,
            ..Self::from_file(&file, data)
        })
    }

    /// All but what may be wrong: the listeners, and where to publish.
    fn from_file(file: &ConfigFile, data: PathBuf) -> Self {
        let memory = file.memory_limit.unwrap_or(256 << 20);
        let limits = batch::Limits::default();
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Self {
            dataset: file.dataset.clone().unwrap_or_else(|| data.join("dataset")),
            data,
            listen: None,
            local: None,
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
                retention: file.keep.retention(),
                collector_name: file.name.clone(),
            },
            publish: None,
        }
    }

    /// For one machine in one process: everything under `folder`, TLS on a loopback port of the kernel's
    /// choice with certificates of the authority in `pki`, and the status page at `local`.
    #[must_use]
    pub fn local(folder: &Path, pki: &Path, local: Option<SocketAddr>) -> Self {
        let file = ConfigFile {
            pki: Some(pki.to_owned()),
            reserve: Some(64 << 20),
            ..ConfigFile::default()
        };
        Self {
            dataset: folder.join("dataset"),
            listen: certificates(&file)
                .ok()
                .map(|c| (([127, 0, 0, 1], 0).into(), c)),
            local,
            ..Self::from_file(&file, folder.join("collector"))
        }
    }
}

fn published(file: &ConfigFile) -> Result<Option<publish::Settings>, String> {
    let Some(url) = &file.publish else {
        return Ok(None);
    };
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(), // a number, true, false
    };
    let options = file.publish_options.iter();
    let options = options.map(|(key, value)| (key.clone(), text(value)));
    Ok(Some(publish::Settings {
        target: Target::new(url, &options.collect())?,
        grace: file.publish_grace.unwrap_or(PUBLISH_GRACE),
    }))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("collector.toml");
        std::fs::write(&path, text).unwrap();
        let args = GlobalArgs {
            config: Some(path),
            data: None,
        };
        Config::resolve(&args).map_err(|e| e.to_string())
    }

    #[test]
    fn the_documented_file_has_every_key_and_its_default() {
        let documented = include_str!("../../docs/collector.toml");
        let (as_is, empty) = (resolve(documented).unwrap(), resolve("").unwrap());
        assert_eq!(format!("{as_is:?}"), format!("{empty:?}"));
        // Each key that is not set there is a key: taken out of its comment, it is no unknown one.
        let mut keys = 0;
        for line in documented.lines() {
            let Some((key, _)) = line.trim_start_matches("# ").split_once(" = ") else {
                continue;
            };
            keys += 1;
            let line = line.trim_start_matches("# ");
            let text = match key {
                "days" | "details_days" | "thin_after_days" | "thin_to" => {
                    format!("[keep]\n{line}")
                }
                "region" | "endpoint" | "allow_http" => {
                    format!("publish = \"s3://traces\"\n[publish_options]\n{line}")
                }
                _ => line.to_owned(),
            };
            let said = resolve(&text).err().unwrap_or_default();
            assert!(!said.contains("unknown field"), "{said}");
            assert!(!said.contains("publish"), "{said}");
        }
        assert_eq!(keys, 26);
    }

    #[test]
    fn what_is_kept_is_said_by_table() {
        let config = resolve("[keep]\ndays = 30\nthin_to = \"5m\"").unwrap();
        let keep = config.seal.retention;
        assert_eq!(keep.keep_days.get("samples"), Some(&30));
        assert_eq!(keep.keep_days.get("clocks"), Some(&30));
        assert_eq!(keep.thin_to_ms, 300_000);
        assert!(
            resolve("[keep]\nthin_to = \"soon\"")
                .unwrap_err()
                .contains("soon")
        );
    }
}
