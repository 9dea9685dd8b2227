//! The configuration, resolved: the command line over the file over the defaults.

use crate::Error;
use crate::args::Serve;
use crate::placing::PlacementName;
use crate::registry;
use gleaner_schemas::lending::ANNOUNCE_EVERY_MS;
use gleaner_schemas::{interval, units};
use gleaner_trust::ServerPaths;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Read where no other file is named.
const DEFAULT_FILE: &str = "/etc/gleaner/recruiter.toml";
/// Status and metrics, for this machine alone.
const DEFAULT_LOCAL: &str = "127.0.0.1:7484";

/// The file as written; unknown keys are refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    listen: Option<SocketAddr>,
    #[serde(deserialize_with = "local_text")]
    local: Option<Option<SocketAddr>>,
    local_access: LocalAccess,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
    revoked: Option<PathBuf>,
    pki: Option<PathBuf>,
    connections_limit: Option<usize>,
    #[serde(deserialize_with = "interval_text")]
    reader_patience: Option<Duration>,
    #[serde(deserialize_with = "interval_text")]
    heartbeat: Option<Duration>,
    #[serde(deserialize_with = "interval_text")]
    answer_within: Option<Duration>,
    #[serde(deserialize_with = "interval_text")]
    grant_within: Option<Duration>,
    tries: Option<usize>,
    placement: Option<PlacementName>,
    #[serde(deserialize_with = "size_text")]
    client_limit: Option<u64>,
    client_leases_limit: Option<usize>,
    reserve_share: Option<f64>,
    confidence: Option<f64>,
    forecasts: Option<PathBuf>,
    quota_file: Option<PathBuf>,
    quota_textfile: Option<PathBuf>,
}

/// What may be done over plain HTTP from this machine itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LocalAccess {
    /// Quotas, hosts and metrics are told.
    #[default]
    Status,
    /// Everything: any program here may be any host, any client, and an administrator.
    All,
}

/// How hosts are asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    /// One host has so long for an answer.
    pub answer_within: Duration,
    /// A request has so long in all.
    pub grant_within: Duration,
    /// Hosts asked at most for one request, beyond one for each copy.
    pub tries: usize,
    /// How hosts are chosen where a request does not say.
    pub placement: PlacementName,
}

/// What the recruiter is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where hosts, clients and readers come, by TLS.
    pub listen: Option<(SocketAddr, ServerPaths)>,
    /// A loopback address without TLS.
    pub local: Option<SocketAddr>,
    /// What may be done there.
    pub local_access: LocalAccess,
    /// Connections at the same time.
    pub connections_limit: usize,
    /// Who takes in nothing of an answer for so long is given up.
    pub reader_patience: Duration,
    /// How the registry judges.
    pub registry: registry::Settings,
    /// How hosts are asked.
    pub asking: Asking,
    /// Findings with forecasts.
    pub forecasts: Option<PathBuf>,
    /// All quotas as JSON.
    pub quota_file: Option<PathBuf>,
    /// All quotas for node_exporter's textfile collector.
    pub quota_textfile: Option<PathBuf>,
}

impl Config {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Config`] about the file, [`Error::NotLoopback`], [`Error::NoListener`].
    pub fn resolve(args: &Serve) -> Result<Self, Error> {
        let (path, file) = found(args.config.as_deref())?;
        let wrong = |message: String| Error::Config {
            path: path.clone(),
            message,
        };
        let certificates = certificates(&file).map_err(wrong)?;
        let listen = args.listen.or(file.listen);
        let local = file.local.unwrap_or_else(|| DEFAULT_LOCAL.parse().ok());
        let (listen, local) = match (listen, certificates) {
            (Some(address), Some(paths)) => (Some((address, paths)), local),
            // Without certificates it is for this machine, in the place of `local`.
            (Some(address), None) if address.ip().is_loopback() => (None, Some(address)),
            (Some(address), None) => {
                let key = "listen";
                return Err(Error::NotLoopback { key, address });
            }
            (None, _) => (None, local),
        };
        if let Some(address) = local.filter(|address| !address.ip().is_loopback()) {
            let key = "local";
            return Err(Error::NotLoopback { key, address });
        }
        if listen.is_none() && local.is_none() {
            return Err(Error::NoListener);
        }
        for (key, share) in [
            ("reserve_share", file.reserve_share),
            ("confidence", file.confidence),
        ] {
            if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return Err(wrong(format!("{key} is a number from 0 to 1")));
            }
        }
        Ok(Self {
            listen,
            local,
            local_access: args.local_access.unwrap_or(file.local_access),
            connections_limit: file.connections_limit.unwrap_or(20_000),
            reader_patience: file.reader_patience.unwrap_or(Duration::from_secs(60)),
            registry: judging(&file),
            asking: asking(&file),
            forecasts: args.forecasts.clone().or(file.forecasts),
            quota_file: file.quota_file,
            quota_textfile: file.quota_textfile,
        })
    }

    /// Where a recruiter of this configuration answers without TLS.
    ///
    /// # Errors
    /// As [`Self::resolve`]; [`Error::NoListener`] where it has no such address.
    pub fn local_url(config: Option<&Path>) -> Result<String, Error> {
        let args = Serve {
            config: config.map(Path::to_owned),
            ..Serve::default()
        };
        let local = Self::resolve(&args)?.local.ok_or(Error::NoListener)?;
        Ok(format!("http://{local}"))
    }
}

fn judging(file: &ConfigFile) -> registry::Settings {
    registry::Settings {
        heartbeat_ms: file.heartbeat.map_or(ANNOUNCE_EVERY_MS, ms),
        client_bytes: file.client_limit,
        client_leases: file.client_leases_limit,
        reserve_share: file.reserve_share.unwrap_or(0.05),
        confidence: file.confidence.unwrap_or(0.8),
    }
}

fn asking(file: &ConfigFile) -> Asking {
    Asking {
        answer_within: file.answer_within.unwrap_or(Duration::from_secs(2)),
        grant_within: file.grant_within.unwrap_or(Duration::from_secs(5)),
        tries: file.tries.unwrap_or(8),
        placement: file.placement.unwrap_or_default(),
    }
}

fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// `None` where there is no word of TLS.
fn certificates(file: &ConfigFile) -> Result<Option<ServerPaths>, String> {
    let given = [&file.pki, &file.certificate, &file.key, &file.authority];
    if given.iter().all(|given| given.is_none()) {
        return Ok(None);
    }
    let named = |given: &Option<PathBuf>, in_pki: &str, key: &str| {
        let default = file.pki.as_ref().map(|pki| pki.join(in_pki));
        given.clone().or(default).ok_or_else(|| {
            format!("TLS needs {key} as well; or set pki = the folder of `gleaner pki init`")
        })
    };
    Ok(Some(ServerPaths {
        certificate: named(&file.certificate, "recruiter.crt", "certificate")?,
        key: named(&file.key, "recruiter.key", "key")?,
        authority: named(&file.authority, "authority.crt", "authority")?,
        revoked: named(&file.revoked, "revoked.crl", "revoked").ok(),
    }))
}

fn found(config: Option<&Path>) -> Result<(PathBuf, ConfigFile), Error> {
    let default = Path::new(DEFAULT_FILE);
    let path = config.or_else(|| default.exists().then_some(default));
    let Some(path) = path else {
        return Ok((default.to_owned(), ConfigFile::default()));
    };
    let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
    let file = toml::from_str(&text).map_err(|e| Error::Config {
        path: path.to_owned(),
        message: e.to_string().trim_end().to_owned(),
    })?;
    Ok((path.to_owned(), file))
}

fn local_text<'de, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<SocketAddr>>, D::Error> {
    let text = String::deserialize(value)?;
    if text == "none" {
        return Ok(Some(None));
    }
    let address = text.parse().map_err(|_| {
        serde::de::Error::custom(format!("`{text}` is no address: {DEFAULT_LOCAL}, or none"))
    })?;
    Ok(Some(Some(address)))
}

fn interval_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(value)?;
    let parsed = interval::parse(&text).map_err(serde::de::Error::custom)?;
    if parsed.is_zero() {
        return Err(serde::de::Error::custom("a time of 0 is none"));
    }
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
        let path = folder.path().join("recruiter.toml");
        std::fs::write(&path, text).unwrap();
        let args = Serve {
            config: Some(path),
            ..Serve::default()
        };
        Config::resolve(&args).map_err(|e| e.to_string())
    }

    #[test]
    fn the_documented_file_has_every_key_and_its_default() {
        let documented = include_str!("../../docs/recruiter.toml");
        let (as_is, empty) = (resolve(documented).unwrap(), resolve("").unwrap());
        assert_eq!(format!("{as_is:?}"), format!("{empty:?}"));
        // Each key that is not set there is a key: taken out of its comment, it is no unknown one.
        let mut keys = 0;
        for line in documented.lines() {
            let Some((key, _)) = line.trim_start_matches("# ").split_once(" = ") else {
                continue;
            };
            if key.contains(' ') {
                continue;
            }
            keys += 1;
            let said = resolve(line.trim_start_matches("# "));
            let said = said.err().unwrap_or_default();
            assert!(!said.contains("unknown field"), "{said}");
        }
        assert_eq!(keys, 22);
    }

    #[test]
    fn an_address_on_the_command_line_is_plain_unless_there_are_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recruiter.toml");
        let listen: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let with = |text: &str, listen| {
            std::fs::write(&path, text).unwrap();
            Config::resolve(&Serve {
                config: Some(path.clone()),
                listen: Some(listen),
                ..Serve::default()
            })
        };
        let plain = with("", listen).unwrap();
        assert_eq!((plain.listen.is_none(), plain.local), (true, Some(listen)));
        let tls = with("pki = \"/etc/gleaner/pki\"", listen).unwrap();
        let (address, paths) = tls.listen.unwrap();
        assert_eq!(address, listen);
        assert_eq!(paths.key, Path::new("/etc/gleaner/pki/recruiter.key"));
        assert_ne!(tls.local, Some(listen));
        let world = with("", "0.0.0.0:1".parse().unwrap());
        assert!(matches!(world, Err(Error::NotLoopback { .. })));
    }
}
