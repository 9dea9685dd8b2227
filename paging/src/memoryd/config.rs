//! The resolved configuration: the command line overrides the environment, which overrides the file,
//! which overrides the defaults.

use crate::args::GlobalArgs;
use gleaner_daemon::config::{self, ConfigError, LoadedConfig, Origin, values};
use gleaner_daemon::folders;
use gleaner_paging::store::Options;
use gleaner_policy::lending::Settings;
use gleaner_schemas::lending::{ANNOUNCE_EVERY_MS, Mode};
use gleaner_trust::Address;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default limit of connections for the clients of all leases together; each client opens a few.
const MOST_CONNECTIONS: u64 = 256;
/// Maximum length of a Unix socket's path, as the kernel has it.
const MOST_SOCKET_BYTES: usize = 107;
/// IANA's port for NBD.
const PAGES_PORT: u16 = 10809;

/// Name of the daemon, as used in the names of its file and of its environment variables.
pub(crate) const DAEMON: &str = "memoryd";

/// The configuration file as written; unknown keys are errors.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    mode: Mode,
    #[serde(deserialize_with = "values::share")]
    headroom_share: Option<f64>,
    #[serde(deserialize_with = "values::share")]
    spare_headroom_share: Option<f64>,
    leases_limit: Option<usize>,
    #[serde(deserialize_with = "values::size_or_none::<0, _>")]
    cap: Option<Option<u64>>,
    grants_leases: Option<bool>,
    agent_socket: Option<PathBuf>,
    socket: Option<PathBuf>,
    state_folder: Option<PathBuf>,
    #[serde(deserialize_with = "values::interval")]
    rise_after: Option<Duration>,
    #[serde(deserialize_with = "values::interval")]
    max_term: Option<Duration>,
    #[serde(deserialize_with = "values::interval")]
    outage_grace: Option<Duration>,
    #[serde(deserialize_with = "values::interval")]
    pressure_pause: Option<Duration>,
    #[serde(deserialize_with = "values::size")]
    shrink_step: Option<u64>,
    #[serde(deserialize_with = "values::interval")]
    shrink_every: Option<Duration>,
    huge_pages: Option<bool>,
    lock_pages: LockPages,
    #[serde(deserialize_with = "addresses")]
    recruiters: Vec<String>,
    #[serde(deserialize_with = "values::interval")]
    announce_every: Option<Duration>,
    #[serde(deserialize_with = "values::host_id")]
    host_id: Option<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
    #[serde(deserialize_with = "listen")]
    listen: Listen,
    #[serde(deserialize_with = "address")]
    address: Option<String>,
    #[serde(deserialize_with = "pages_socket")]
    pages_socket: Option<PathBuf>,
    connections_limit: Option<u64>,
}

/// Configured address for serving the pages of leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Listen {
    /// [`PAGES_PORT`] at every address if a recruiter is on another machine; else nowhere.
    #[default]
    Auto,
    Nowhere,
    At(SocketAddr),
}

impl Listen {
    fn resolve(self, recruiters: &[String], grants_leases: bool) -> Option<SocketAddr> {
        let is_offered = grants_leases && is_any_secret(recruiters);
        match self {
            Self::Auto => is_offered.then_some((Ipv4Addr::UNSPECIFIED, PAGES_PORT).into()),
            Self::Nowhere => None,
            Self::At(address) => Some(address),
        }
    }
}

/// Setting whether guests' pages are locked in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LockPages {
    /// Locks if there are huge pages. Without them, giving back locked pages takes 1.5 times as long as
    /// unlocked ones.
    #[default]
    Auto,
    /// Locks if the system allows it.
    Always,
    Never,
}

/// Settings of the links to recruiters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recruiters {
    /// URLs of recruiters: `https://HOST:PORT`, or `http://` on this machine only.
    pub(crate) urls: Vec<String>,
    /// Id of this host; `None` without /etc/machine-id.
    pub(crate) host_id: Option<String>,
    /// File of the host's certificate, followed by the intermediate certificates up to its authority.
    pub(crate) certificate: PathBuf,
    /// File of the private key; normally the same file as the certificate's.
    pub(crate) key: PathBuf,
    /// File of the trusted authority.
    pub(crate) authority: PathBuf,
}

/// Settings for serving the pages of leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageServerSettings {
    /// Address to listen at; `None`: pages are not served.
    pub(crate) listen: Option<SocketAddr>,
    /// True if a recruiter may lease memory of this host to clients.
    pub(crate) is_offered: bool,
    /// True if a recruiter requires certificates of this host. The host has them once it is enrolled.
    pub(crate) has_certificates: bool,
    /// Address announced to clients as `HOST:PORT`, if it differs from `listen`.
    pub(crate) address: Option<String>,
    /// Unix socket for the leases of this host itself; `None`: they are not served.
    pub(crate) pages_socket: Option<PathBuf>,
    /// Limit of simultaneous connections; further ones are closed immediately.
    pub(crate) most_connections: u64,
}

impl PageServerSettings {
    fn fixed(&self) -> (Option<SocketAddr>, Option<&str>, Option<&Path>, u64) {
        let (address, socket) = (self.address.as_deref(), self.pages_socket.as_deref());
        (self.listen, address, socket, self.most_connections)
    }

    /// Returns a warning if memory is offered whose pages no client could read or write.
    pub(crate) fn note(&self) -> Option<&'static str> {
        let is_served = self.listen.is_some() || self.pages_socket.is_some();
        (self.is_offered && !is_served).then_some(
            "no address serves pages, so recruiters place no lease here: set `listen` in memoryd.toml, like \"0.0.0.0:10809\" \
             (\"127.0.0.1:10809\" where clients run on this machine), or `grants_leases = false`",
        )
    }
}

/// Configuration of the memory server.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Settings for lending.
    pub(crate) settings: Settings,
    /// Settings for the memory that holds guests' pages.
    pub(crate) store: Options,
    /// Path of the agent's socket.
    pub(crate) agent_socket: PathBuf,
    /// Path of the socket for the owner's commands.
    pub(crate) socket: PathBuf,
    /// Folder of the owner's wishes and of the log.
    pub(crate) state_folder: PathBuf,
    pub(crate) recruiters: Recruiters,
    pub(crate) serving: PageServerSettings,
    /// Time between two announcements if nothing changes.
    pub(crate) announce_every_ms: i64,
}

impl Config {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// The arguments, the environment or the file have an error; or there is no runtime folder.
    pub(crate) fn load(args: &GlobalArgs) -> Result<LoadedConfig<Self>, ConfigError> {
        let LoadedConfig {
            values: file,
            origin,
        } = config::load::<ConfigFile>(DAEMON, args.config.as_deref())?;
        let values = Self::of(args, file, &origin)?;
        Ok(LoadedConfig { values, origin })
    }

    fn of(args: &GlobalArgs, file: ConfigFile, origin: &Origin) -> Result<Self, ConfigError> {
        let in_runtime = |typed: Option<&PathBuf>, given: Option<&PathBuf>, name: &str| {
            let default = || Some(folders::runtime()?.join(format!("{name}.sock")));
            typed.or(given).cloned().or_else(default)
        };
        let nowhere = |key| {
            let what = "XDG_RUNTIME_DIR is not set: name the agent's socket with --agent, and ours with --socket";
            origin.wrong(key, what)
        };
        let agent_socket = in_runtime(
            args.agent_socket.as_ref(),
            file.agent_socket.as_ref(),
            "agent",
        );
        let socket = in_runtime(args.socket.as_ref(), file.socket.as_ref(), "memoryd");
        let state_folder = args.state_folder.clone().or(file.state_folder.clone());
        Ok(Self {
            settings: settings(&file),
            store: Options {
                wants_huge: file.huge_pages.unwrap_or(true),
                wants_locked: match file.lock_pages {
                    LockPages::Auto => file.huge_pages.unwrap_or(true) && has_huge_pages(),
                    LockPages::Always => true,
                    LockPages::Never => false,
                },
            },
            agent_socket: agent_socket.ok_or_else(|| nowhere("agent_socket"))?,
            socket: socket.ok_or_else(|| nowhere("socket"))?,
            state_folder: state_folder.unwrap_or_else(|| folders::state("memoryd")),
            announce_every_ms: file.announce_every.map_or(ANNOUNCE_EVERY_MS, ms).max(1),
            serving: PageServerSettings {
                listen: file
                    .listen
                    .resolve(&file.recruiters, file.grants_leases.unwrap_or(true)),
                is_offered: file.grants_leases.unwrap_or(true) && !file.recruiters.is_empty(),
                has_certificates: is_any_secret(&file.recruiters),
                address: file.address.clone(),
                pages_socket: file.pages_socket.clone(),
                most_connections: file.connections_limit.unwrap_or(MOST_CONNECTIONS),
            },
            recruiters: recruiters(file),
        })
    }

    /// Returns the keys that differ in `next` and take effect only after a restart.
    pub(crate) fn restart_keys(&self, next: &Self) -> Vec<&'static str> {
        let (ours, theirs) = (&self.recruiters, &next.recruiters);
        let fixed = [
            ("agent_socket", self.agent_socket != next.agent_socket),
            ("socket", self.socket != next.socket),
            ("state_folder", self.state_folder != next.state_folder),
            ("huge_pages, lock_pages", self.store != next.store),
            ("recruiters", ours.urls != theirs.urls),
            ("host_id", ours.host_id != theirs.host_id),
            ("certificate", ours.certificate != theirs.certificate),
            ("key", ours.key != theirs.key),
            ("authority", ours.authority != theirs.authority),
            (
                "listen, address, pages_socket, connections_limit",
                self.serving.fixed() != next.serving.fixed(),
            ),
            (
                "announce_every",
                self.announce_every_ms != next.announce_every_ms,
            ),
        ];
        let left_out = fixed.into_iter().filter(|(_, differs)| *differs);
        left_out.map(|(key, _)| key).collect()
    }
}

fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

fn settings(file: &ConfigFile) -> Settings {
    let mut settings = Settings::default();
    settings.limits.mode = file.mode;
    settings.limits.cap_bytes = file.cap.flatten();
    settings.limits.headroom_share = file
        .headroom_share
        .unwrap_or(settings.limits.headroom_share);
    settings.limits.spare_headroom_share = file
        .spare_headroom_share
        .unwrap_or(settings.limits.spare_headroom_share);
    settings.most_leases_count = file.leases_limit.unwrap_or(settings.most_leases_count);
    settings.grants_leases = file.grants_leases.unwrap_or(settings.grants_leases);
    settings.rise_after_ms = file.rise_after.map_or(settings.rise_after_ms, ms);
    settings.max_term_ms = file.max_term.map_or(settings.max_term_ms, ms);
    settings.outage_grace_ms = file.outage_grace.map_or(settings.outage_grace_ms, ms);
    settings.pressure_pause_ms = file.pressure_pause.map_or(settings.pressure_pause_ms, ms);
    settings.shrink_every_ms = file.shrink_every.map_or(settings.shrink_every_ms, ms);
    settings.shrink_step_bytes = file.shrink_step.unwrap_or(settings.shrink_step_bytes);
    settings
}

fn recruiters(file: ConfigFile) -> Recruiters {
    // Certificate that `gleaner-agent enroll` received; a host has only one certificate.
    let enrolled = folders::state_of_another("ship");
    let host = enrolled.join("host.pem");
    let named = |given: Option<PathBuf>| given.filter(|path| path != Path::new(""));
    let certificate = named(file.certificate).unwrap_or(host);
    Recruiters {
        urls: file.recruiters,
        host_id: file
            .host_id
            .filter(|id| !id.is_empty())
            .or_else(gleaner_trust::this_host_id),
        key: named(file.key).unwrap_or_else(|| certificate.clone()),
        certificate,
        authority: named(file.authority).unwrap_or_else(|| enrolled.join("authority.crt")),
    }
}

/// Returns true if the kernel provides huge pages on request.
fn has_huge_pages() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|enabled| !enabled.contains("[never]"))
}

/// Returns true if any recruiter is reached through TLS. The URLs were checked before.
fn is_any_secret(recruiters: &[String]) -> bool {
    let is_secret = |url: &String| Address::parse(url).is_ok_and(|address| address.is_secret());
    recruiters.iter().any(is_secret)
}

fn addresses<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    let urls = Vec::<String>::deserialize(value)?;
    for url in &urls {
        Address::parse(url).map_err(D::Error::custom)?;
    }
    Ok(urls)
}

fn listen<'de, D: Deserializer<'de>>(value: D) -> Result<Listen, D::Error> {
    let text = String::deserialize(value)?;
    let wrong =
        |_| D::Error::custom("an address with a port, like 0.0.0.0:10809, \"auto\", or \"\"");
    match &text[..] {
        "" => Ok(Listen::Nowhere),
        "auto" => Ok(Listen::Auto),
        text => text.parse().map(Listen::At).map_err(wrong),
    }
}

fn address<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(value)?;
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if text.is_empty() || matches!(port, Some(Ok(1..))) {
        return Ok(Some(text).filter(|text| !text.is_empty()));
    }
    Err(D::Error::custom("HOST:PORT, or \"\""))
}

fn pages_socket<'de, D: Deserializer<'de>>(value: D) -> Result<Option<PathBuf>, D::Error> {
    let text = String::deserialize(value)?;
    if text.is_empty() {
        return Ok(None);
    }
    if text.starts_with('/') && text.len() <= MOST_SOCKET_BYTES {
        return Ok(Some(text.into()));
    }
    Err(D::Error::custom(
        "an absolute path of at most 107 bytes, like /run/gleaner/pages.sock, or \"\"",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memoryd.toml");
        std::fs::write(&path, text).unwrap();
        let args = GlobalArgs {
            config: Some(path),
            agent_socket: Some("/x/agent.sock".into()),
            ..GlobalArgs::default()
        };
        let loaded = Config::load(&args).map_err(|e| e.to_string())?;
        Ok(loaded.values)
    }

    #[test]
    fn the_documented_file_has_every_key_and_its_default() {
        let documented = include_str!("../../../docs/memoryd.toml");
        let show = |text: &str| resolve(text).map(|config| format!("{config:?}"));
        config::check_documented::<ConfigFile>(documented, show).unwrap();
        for key in config::uncommented(documented) {
            resolve(&key.text).unwrap();
        }
    }

    #[test]
    fn a_host_that_offers_leases_to_other_machines_serves_them_unless_told_otherwise() {
        let listen = |text: &str| resolve(text).unwrap().serving.listen;
        let far = "recruiters = [\"https://recruiter.example:7444\"]\n";
        let every = Some(SocketAddr::from(([0, 0, 0, 0], 10809)));
        assert_eq!(listen(far), every);
        assert_eq!(listen(&format!("{far}listen = \"auto\"")), every);
        assert_eq!(listen(&format!("{far}listen = \"\"")), None);
        assert_eq!(listen(&format!("{far}grants_leases = false")), None);
        assert_eq!(
            listen(&format!("{far}listen = \"192.0.2.1:1\"")),
            Some(SocketAddr::from(([192, 0, 2, 1], 1)))
        );
        assert_eq!(listen("recruiters = [\"http://127.0.0.1:7490\"]"), None);
        assert_eq!(listen(""), None);
    }

    #[test]
    fn the_socket_of_own_leases_is_an_absolute_path() {
        let socket = |path: &str| {
            let text = format!("pages_socket = {path:?}");
            resolve(&text).map(|config| config.serving.pages_socket)
        };
        assert_eq!(socket(""), Ok(None));
        assert_eq!(socket("/x/pages.sock"), Ok(Some("/x/pages.sock".into())));
        let long = format!("/{}", "x".repeat(MOST_SOCKET_BYTES));
        for wrong in ["pages.sock", &long] {
            assert!(
                socket(wrong).unwrap_err().contains("absolute path"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_file_is_taken_at_its_word() {
        let text = "mode = \"paper\"\ncap = \"4GiB\"\nlock_pages = \"never\"\nhuge_pages = false\ncertificate = \"/c\"\n\
            rise_after = \"1s\"\nhost_id = \"00000000000000000000000000000001\"\nrecruiters = [\"http://127.0.0.1:7490\"]";
        let config = resolve(text).unwrap();
        assert_eq!(config.settings.limits.cap_bytes, Some(4 << 30));
        assert_eq!(config.settings.rise_after_ms, 1000);
        assert!(!config.store.wants_locked && !config.store.wants_huge);
        assert_eq!(config.recruiters.key, Path::new("/c"));
        assert_eq!(config.recruiters.host_id.unwrap().len(), 32);
        assert_eq!(config.agent_socket, Path::new("/x/agent.sock"));
    }
}
