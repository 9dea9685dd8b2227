//! The resolved configuration: the command line overrides the environment, which overrides the file,
//! which overrides the defaults.

use crate::args::RunArgs;
use gleaner_daemon::config::{self, ConfigError, LoadedConfig, Origin, values};
use gleaner_daemon::folders;
use gleaner_paging::device::{PAGE, Settings};
use gleaner_paging::nbd::client::Source;
use gleaner_policy::choice::Choice;
use gleaner_policy::eviction::Policy;
use gleaner_policy::shutdown::Revocation;
use gleaner_schemas::lending::Placement;
use gleaner_schemas::units::Bytes;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the daemon, as used in the names of its file and of its environment variables.
pub(crate) const DAEMON: &str = "clerk";

/// Maximum number of pages: page numbers have 32 bits, two values of which have another meaning.
const MOST_PAGES: u64 = u32::MAX as u64 - 2;
/// Minimum size of a lease, one slab of 2 MiB.
const LEAST_LEASE: u64 = 2 << 20;
/// Minimum size of the buffer: in a smaller one, writes would wait for pages in transit.
const LEAST_BUFFER: u64 = 1 << 20;

/// Maximum number of requests in progress to a server.
const MOST_REQUESTS: u32 = 1024;

/// The configuration file as written; unknown keys are errors.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    #[serde(deserialize_with = "values::size")]
    size: Option<u64>,
    listen: Option<PathBuf>,
    status_socket: Option<PathBuf>,
    disk_folder: Option<PathBuf>,
    copies: Option<usize>,
    eviction: Option<String>,
    servers: Option<Vec<String>>,
    recruiters: Option<Vec<String>>,
    client_name: Option<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
    placement: Option<String>,
    #[serde(deserialize_with = "values::size_from::<LEAST_LEASE, _>")]
    lease_size: Option<u64>,
    on_revocation: Revocation,
    choice: Choice,
    window: Option<u32>,
    #[serde(deserialize_with = "values::size_from::<LEAST_BUFFER, _>")]
    buffer_size: Option<u64>,
    #[serde(deserialize_with = "values::interval")]
    answer_timeout: Option<Duration>,
    #[serde(deserialize_with = "values::interval")]
    request_timeout: Option<Duration>,
    #[serde(deserialize_with = "values::interval")]
    refraction_period: Option<Duration>,
    lock_memory: Option<bool>,
}

/// Settings for borrowing from recruiters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BorrowSettings {
    /// URLs of recruiters: `https://HOST:PORT`, or `http://` on this machine only.
    pub(crate) urls: Vec<String>,
    /// Client name, needed if no certificate has it.
    pub(crate) client_name: Option<String>,
    /// Paths of certificate, key and authority, needed if recruiters and servers use TLS.
    pub(crate) certificate: Option<(PathBuf, PathBuf, PathBuf)>,
    /// Placement of leases; `None`: the recruiter's default.
    pub(crate) placement: Option<Placement>,
    /// Size of one lease, in bytes.
    pub(crate) lease_bytes: u64,
}

/// Configuration of the clerk.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Settings of the device.
    pub(crate) device: Settings,
    /// Socket for NBD clients of this machine.
    pub(crate) listen: PathBuf,
    /// Socket for the status.
    pub(crate) status_socket: PathBuf,
    /// Folder of the copy on disk; `None`: there is none.
    pub(crate) disk_folder: Option<PathBuf>,
    /// Servers that are used without leases.
    pub(crate) servers: Vec<Source>,
    pub(crate) borrowing: BorrowSettings,
    /// Time for which a server that altered pages is avoided.
    pub(crate) refraction_period: Duration,
    /// True to lock the whole process in memory.
    pub(crate) lock_memory: bool,
}

impl Config {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// The arguments, the environment or the file have an error; or there is no runtime folder.
    pub(crate) fn load(args: &RunArgs) -> Result<LoadedConfig<Self>, ConfigError> {
        let LoadedConfig {
            values: file,
            origin,
        } = config::load::<ConfigFile>(DAEMON, args.device.config.as_deref())?;
        let values = Self::of(args, file, &origin)?;
        Ok(LoadedConfig { values, origin })
    }

    fn of(args: &RunArgs, file: ConfigFile, origin: &Origin) -> Result<Self, ConfigError> {
        let runtime = folders::runtime();
        let in_runtime = |typed: &Option<PathBuf>, given: Option<PathBuf>, name: &str| {
            let default = || Some(runtime.as_ref()?.join(name));
            typed.clone().or(given).or_else(default).ok_or_else(|| {
                origin.wrong(
                    "listen",
                    "XDG_RUNTIME_DIR is not set: name the device's socket with --listen, and the other with --status-socket",
                )
            })
        };
        let size = args.device.size.or(file.size).unwrap_or(1 << 30);
        let pages = size / PAGE as u64;
        if !(1..=MOST_PAGES).contains(&pages) {
            let most = Bytes((MOST_PAGES * PAGE as u64) as f64);
            return Err(origin.wrong("size", format!("from 4KiB to {most}")));
        }
        let copies = args.device.copies.or(file.copies).unwrap_or(1);
        if !(1..=2).contains(&copies) {
            return Err(origin.wrong("copies", "1, or 2 on different hosts"));
        }
        let named = |name: String| name.parse::<Policy>();
        let eviction = file.eviction.map(named).transpose();
        let eviction = eviction.map_err(|e| origin.wrong("eviction", e.to_string()))?;
        let named = |name: String| name.parse::<Placement>();
        let placement = file.placement.filter(|name| !name.is_empty());
        let placement = placement.map(named).transpose();
        let placement = placement.map_err(|e| origin.wrong("placement", e.to_string()))?;
        let disk_folder = args.device.disk_folder.clone().or(file.disk_folder);
        let disk_folder = disk_folder.unwrap_or_else(|| folders::state(DAEMON));
        let disk_folder = (disk_folder != Path::new("none")).then_some(disk_folder);
        if disk_folder.is_none() && file.on_revocation == Revocation::Disk {
            let what = "\"disk\" needs a copy on disk: name a folder as `disk_folder`";
            return Err(origin.wrong("on_revocation", what));
        }
        let window_requests = file.window.unwrap_or(0);
        if window_requests > MOST_REQUESTS {
            let what = format!("0 (adaptive), or 1 to {MOST_REQUESTS} requests");
            return Err(origin.wrong("window", what));
        }
        let frames = file.buffer_size.unwrap_or(16 << 20) / PAGE as u64;
        let ms = |given: Option<Duration>, default: i64| {
            given.map_or(default, |given| {
                i64::try_from(given.as_millis()).unwrap_or(i64::MAX)
            })
        };
        let urls = match &args.device.server[..] {
            [] => file.servers.unwrap_or_default(),
            typed => typed.to_vec(),
        };
        let servers: Result<Vec<Source>, _> =
            urls.iter().map(|url| Source::from_url(url)).collect();
        let servers = servers.map_err(|e| origin.wrong("servers", e.to_string()))?;
        let named = |given: Option<PathBuf>| given.filter(|path| path != Path::new(""));
        let certificate = match (named(file.certificate), named(file.authority)) {
            (Some(certificate), Some(authority)) => {
                let key = named(file.key).unwrap_or_else(|| certificate.clone());
                Some((certificate, key, authority))
            }
            (None, None) => None,
            _ => {
                let what = "certificate and authority belong together: name both, or none";
                return Err(origin.wrong("certificate", what));
            }
        };
        Ok(Self {
            device: Settings {
                pages: pages as u32,
                copies,
                has_disk: disk_folder.is_some(),
                frames: frames.min(1 << 20) as u32,
                eviction: args.device.eviction.or(eviction).unwrap_or(Policy::Lru),
                on_revocation: file.on_revocation,
                choice: file.choice,
                window_requests,
                answer_timeout_ms: ms(file.answer_timeout, 2000).max(1),
                request_timeout_ms: ms(file.request_timeout, 10_000),
            },
            listen: in_runtime(&args.listen, file.listen, "clerk.sock")?,
            status_socket: in_runtime(
                &args.status_socket,
                file.status_socket,
                "clerk-status.sock",
            )?,
            disk_folder,
            servers,
            borrowing: BorrowSettings {
                urls: match &args.device.recruiter[..] {
                    [] => file.recruiters.unwrap_or_default(),
                    typed => typed.to_vec(),
                },
                client_name: file.client_name.filter(|name| !name.is_empty()),
                certificate,
                placement,
                lease_bytes: file.lease_size.unwrap_or(256 << 20),
            },
            refraction_period: file.refraction_period.unwrap_or(Duration::from_secs(60)),
            lock_memory: file.lock_memory.unwrap_or(true),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::args::DeviceArgs;

    fn resolve(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clerk.toml");
        std::fs::write(&path, text).unwrap();
        let args = RunArgs {
            device: DeviceArgs {
                config: Some(path),
                ..DeviceArgs::default()
            },
            listen: Some("/x/clerk.sock".into()),
            status_socket: Some("/x/status.sock".into()),
        };
        let loaded = Config::load(&args).map_err(|e| e.to_string())?;
        Ok(loaded.values)
    }

    #[test]
    fn the_documented_file_has_every_key_and_its_default() {
        let documented = include_str!("../../../../docs/clerk.toml");
        let show = |text: &str| resolve(text).map(|config| format!("{config:?}"));
        config::check_documented::<ConfigFile>(documented, show).unwrap();
        for key in config::uncommented(documented) {
            resolve(&key.text).unwrap();
        }
    }
}
