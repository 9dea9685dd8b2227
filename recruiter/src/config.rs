//! The resolved configuration. The command line overrides the environment, which overrides the file, which
//! overrides the defaults.

use crate::args::{LocalAccess, RunArgs};
use crate::registry;
use gleaner_daemon::config::{self, ConfigError, LoadedConfig, Origin, values};
use gleaner_schemas::lending::{ANNOUNCE_EVERY_MS, Placement};
use gleaner_trust::ServerPaths;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the daemon, as used in the names of its file and of its environment variables.
pub const DAEMON: &str = "recruiter";
/// Default address of status and metrics, for this machine only.
const DEFAULT_LOCAL_LISTEN: &str = "127.0.0.1:7484";

/// The configuration file as written; unknown keys are errors.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
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
    connections_limit: Option<usize>,
    #[serde(deserialize_with = "values::interval_from::<1, _>")]
    reader_timeout: Option<Duration>,
    #[serde(deserialize_with = "values::interval_from::<1, _>")]
    announce_every: Option<Duration>,
    #[serde(deserialize_with = "values::interval_from::<1, _>")]
    answer_timeout: Option<Duration>,
    #[serde(deserialize_with = "values::interval_from::<1, _>")]
    grant_timeout: Option<Duration>,
    extra_hosts_limit: Option<usize>,
    placement: Option<Placement>,
    #[serde(deserialize_with = "values::size")]
    client_memory_limit: Option<u64>,
    client_leases_limit: Option<usize>,
    #[serde(deserialize_with = "values::size")]
    member_limit: Option<u64>,
    #[serde(deserialize_with = "values::share")]
    reserve_share: Option<f64>,
    #[serde(deserialize_with = "values::share")]
    confidence: Option<f64>,
    forecasts: Option<PathBuf>,
    quota_file: Option<PathBuf>,
    quota_textfile: Option<PathBuf>,
}

/// Settings of requests to hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSettings {
    /// Timeout of one host's answer.
    pub answer_timeout: Duration,
    /// Timeout of a whole request.
    pub grant_timeout: Duration,
    /// Maximum number of hosts that are asked for one request, in addition to one host for each copy.
    pub extra_hosts_limit: usize,
    /// Placement of requests that specify none.
    pub placement: Placement,
}

/// Configuration of the recruiter.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address for hosts, clients and readers, with TLS.
    pub listen: Option<(SocketAddr, ServerPaths)>,
    /// A loopback address without TLS, for programs of this machine.
    pub local_listen: Option<SocketAddr>,
    /// Rights of callers at the loopback address.
    pub local_access: LocalAccess,
    /// Maximum number of simultaneous connections.
    pub connections_limit: usize,
    /// Time after which a reader is disconnected if it reads nothing of its answer.
    pub reader_timeout: Duration,
    /// Settings of the registry.
    pub registry: registry::Settings,
    /// Settings of requests to hosts.
    pub asking: RequestSettings,
    /// Largest weight of a commons' member whose memory server announces less, in bytes.
    pub member_limit_bytes: u64,
    /// File of findings with forecasts.
    pub forecasts: Option<PathBuf>,
    /// File to write with all quotas, as JSON.
    pub quota_file: Option<PathBuf>,
    /// File to write with all quotas, for node_exporter's textfile collector.
    pub quota_textfile: Option<PathBuf>,
}

impl Config {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// Error in the arguments, the environment or the file.
    pub fn resolve(args: &RunArgs) -> Result<Self, ConfigError> {
        Self::load(args).map(|loaded| loaded.values)
    }

    /// Resolves the arguments as [`Self::resolve`] does, and returns the origin of the configuration
    /// too.
    ///
    /// # Errors
    /// The arguments, the environment or the file are wrong.
    pub fn load(args: &RunArgs) -> Result<LoadedConfig<Self>, ConfigError> {
        let LoadedConfig {
            values: file,
            origin,
        } = config::load::<ConfigFile>(DAEMON, args.config.as_deref())?;
        let (listen, local_listen) = listeners(args, &file, &origin)?;
        let values = Self {
            listen,
            local_listen,
            local_access: args.local_access.unwrap_or(file.local_access),
            connections_limit: file.connections_limit.unwrap_or(20_000),
            reader_timeout: file.reader_timeout.unwrap_or(Duration::from_secs(60)),
            registry: judging(&file),
            asking: asking(&file),
            member_limit_bytes: file.member_limit.unwrap_or(0),
            forecasts: args.forecasts.clone().or(file.forecasts),
            quota_file: file.quota_file,
            quota_textfile: file.quota_textfile,
        };
        Ok(LoadedConfig { values, origin })
    }

    /// URL at which a recruiter with this configuration answers without TLS; `None` if it has no such
    /// listener.
    ///
    /// # Errors
    /// The errors of [`Self::resolve`].
    pub fn local_url(config: Option<&Path>) -> Result<Option<String>, ConfigError> {
        let args = RunArgs {
            config: config.map(Path::to_owned),
            ..RunArgs::default()
        };
        let local = Self::resolve(&args)?.local_listen;
        Ok(local.map(|local| format!("http://{local}")))
    }

    /// Keys that have another value in `next` and take effect only after a restart.
    #[must_use]
    pub fn restart_keys(&self, next: &Self) -> Vec<&'static str> {
        let fixed = [
            (
                "listen, local_listen or certificates",
                (&self.listen, self.local_listen) != (&next.listen, next.local_listen),
            ),
            ("local_access", self.local_access != next.local_access),
            (
                "connections_limit",
                self.connections_limit != next.connections_limit,
            ),
            ("reader_timeout", self.reader_timeout != next.reader_timeout),
            ("forecasts", self.forecasts != next.forecasts),
            ("quota_file", self.quota_file != next.quota_file),
            ("quota_textfile", self.quota_textfile != next.quota_textfile),
        ];
        let left_out = fixed.into_iter().filter(|(_, differs)| *differs);
        left_out.map(|(key, _)| key).collect()
    }
}

/// Address of the listener with TLS, and address of the listener without TLS.
type Listeners = (Option<(SocketAddr, ServerPaths)>, Option<SocketAddr>);

fn listeners(args: &RunArgs, file: &ConfigFile, origin: &Origin) -> Result<Listeners, ConfigError> {
    let certificates = certificates(file, origin)?;
    let local_listen = file
        .local_listen
        .unwrap_or_else(|| DEFAULT_LOCAL_LISTEN.parse().ok());
    let Some(address) = args.listen.or(file.listen) else {
        return match local_listen {
            Some(local) => Ok((None, Some(local))),
            None => Err(origin.wrong(
                "local_listen",
                "nothing to listen on: set listen (TLS) or local_listen (loopback)",
            )),
        };
    };
    match certificates {
        Some(paths) => Ok((Some((address, paths)), local_listen)),
        // Without certificates, the address must be a loopback address. It then replaces `local_listen`.
        None => match (values::check_loopback(address), args.listen) {
            (Ok(()), _) => Ok((None, Some(address))),
            (Err(what), Some(_)) => Err(Origin::wrong_argument("--listen", what)),
            (Err(what), None) => Err(origin.wrong("listen", what)),
        },
    }
}

fn judging(file: &ConfigFile) -> registry::Settings {
    registry::Settings {
        announce_every_ms: file.announce_every.map_or(ANNOUNCE_EVERY_MS, ms),
        client_bytes: file.client_memory_limit,
        client_leases: file.client_leases_limit,
        reserve_share: file.reserve_share.unwrap_or(0.05),
        confidence: file.confidence.unwrap_or(0.8),
    }
}

fn asking(file: &ConfigFile) -> RequestSettings {
    RequestSettings {
        answer_timeout: file.answer_timeout.unwrap_or(Duration::from_secs(2)),
        grant_timeout: file.grant_timeout.unwrap_or(Duration::from_secs(5)),
        extra_hosts_limit: file.extra_hosts_limit.unwrap_or(8),
        placement: file.placement.unwrap_or_default(),
    }
}

fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// Paths of certificates; `None` if the file names none.
fn certificates(file: &ConfigFile, origin: &Origin) -> Result<Option<ServerPaths>, ConfigError> {
    let given = [&file.pki, &file.certificate, &file.key, &file.authority];
    if given.iter().all(|given| given.is_none()) {
        return Ok(None);
    }
    let named = |given: &Option<PathBuf>, in_pki: &str, key: &str| {
        let default = file.pki.as_ref().map(|pki| pki.join(in_pki));
        let missing = || {
            let what = "TLS needs it as well; or set pki = the folder of `gleaner pki init`";
            origin.wrong(key, what)
        };
        given.clone().or(default).ok_or_else(missing)
    };
    Ok(Some(ServerPaths {
        certificate: named(&file.certificate, "recruiter.crt", "certificate")?,
        key: named(&file.key, "recruiter.key", "key")?,
        authority: named(&file.authority, "authority.crt", "authority")?,
        revocation_list: named(&file.revocation_list, "revoked.crl", "revocation_list").ok(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recruiter.toml");
        std::fs::write(&path, text).unwrap();
        let args = RunArgs {
            config: Some(path),
            ..RunArgs::default()
        };
        Config::resolve(&args).map_err(|e| e.to_string())
    }

    #[test]
    fn the_documented_file_has_every_key_and_its_default() {
        let documented = include_str!("../../docs/recruiter.toml");
        let show = |text: &str| resolve(text).map(|config| format!("{config:?}"));
        config::check_documented::<ConfigFile>(documented, show).unwrap();
    }

    #[test]
    fn an_address_on_the_command_line_is_plain_unless_there_are_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recruiter.toml");
        let listen: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let with = |text: &str, listen| {
            std::fs::write(&path, text).unwrap();
            Config::resolve(&RunArgs {
                config: Some(path.clone()),
                listen: Some(listen),
                ..RunArgs::default()
            })
        };
        let plain = with("", listen).unwrap();
        assert_eq!(
            (plain.listen.is_none(), plain.local_listen),
            (true, Some(listen))
        );
        let tls = with("pki = \"/etc/gleaner/pki\"", listen).unwrap();
        let (address, paths) = tls.listen.unwrap();
        assert_eq!(address, listen);
        assert_eq!(paths.key, Path::new("/etc/gleaner/pki/recruiter.key"));
        assert_ne!(tls.local_listen, Some(listen));
        let world = with("", "0.0.0.0:1".parse().unwrap());
        let said = world.unwrap_err().to_string();
        assert!(
            said.starts_with("--listen: 0.0.0.0:1 is no loopback"),
            "{said}"
        );
    }
}
