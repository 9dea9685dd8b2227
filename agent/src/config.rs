//! The configuration, resolved: the command line over the file over the defaults.

use crate::Error;
use crate::args::GlobalArgs;
use crate::interval;
use crate::sample::processes::Units;
use crate::sample::sampler::Settings;
use crate::ship::settings::{ShipSettings, ShipTable};
use crate::trace::retention;
use gleaner_policy::quota::Limits;
use gleaner_schemas::units;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The paper's interval.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(90);

/// Between looks at MemAvailable: a dip that lasts longer is seen.
const DEFAULT_MEM_AVAILABLE_INTERVAL: Duration = Duration::from_secs(5);

/// Read where no other file is named.
const DEFAULT_FILE: &str = "/etc/gleaner/agent.toml";

/// Sampling more often would measure the agent.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// The owner is waited for once they have been idle for so long. Far below the five minutes of the idle
/// rule, so that they are waited for before anybody counts on their absence; far above the pauses of one
/// who reads or thinks, each of which would cost a wake.
const DEFAULT_OWNER_QUIET: Duration = Duration::from_secs(60);
/// The trace is cut at most once a UTC day.
const SHORTEST_RETENTION: Duration = Duration::from_secs(24 * 3600);

/// Room for a few days of an ordinary workstation.
const LEAST_DATABASE_LIMIT_BYTES: u64 = 8 << 20;

/// What may leave the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Privacy {
    /// No paths: files are known by a keyed hash.
    #[default]
    Hashed,
    /// Paths as well.
    Plain,
}

impl Privacy {
    /// As stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hashed => "hashed",
            Self::Plain => "plain",
        }
    }
}

/// The file as written; unknown keys are refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    #[serde(deserialize_with = "interval_text")]
    interval: Option<Duration>,
    #[serde(deserialize_with = "interval_text")]
    mem_available_interval: Option<Duration>,
    database: Option<PathBuf>,
    socket: Option<PathBuf>,
    #[serde(deserialize_with = "interval_text")]
    owner_quiet: Option<Duration>,
    privacy: Privacy,
    #[serde(deserialize_with = "share")]
    headroom_share: Option<f64>,
    always_active: Vec<String>,
    guest_processes: Vec<String>,
    #[serde(deserialize_with = "retention_text")]
    retention: Option<Duration>,
    #[serde(deserialize_with = "limit_text")]
    database_limit: Option<u64>,
    #[serde(deserialize_with = "cgroup_paths")]
    always_active_cgroups: Vec<String>,
    damon: bool,
    opens: bool,
    ship: ShipTable,
}

/// What the agent is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// The trace.
    pub database: PathBuf,
    /// Where local daemons listen; nowhere when absent.
    pub socket: Option<PathBuf>,
    /// How long the owner is idle before their return is waited for.
    pub owner_quiet: Duration,
    /// Time between samples.
    pub interval: Duration,
    /// Time between looks at MemAvailable.
    pub mem_available_interval: Duration,
    /// What may leave the host.
    pub privacy: Privacy,
    /// How much of the trace is kept.
    pub limits: retention::Limits,
    /// What to sample.
    pub settings: Settings,
    /// Where to ship it.
    pub ship: ShipSettings,
}

impl Config {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::Config`] about the configuration file, [`Error::Interval`].
    pub fn resolve(args: GlobalArgs) -> Result<Self, Error> {
        let default = Path::new(DEFAULT_FILE);
        let default = default.exists().then_some(default);
        let file = args
            .config
            .as_deref()
            .or(default)
            .map_or_else(|| Ok(ConfigFile::default()), read)?;
        let interval = args.interval.or(file.interval).unwrap_or(DEFAULT_INTERVAL);
        let mem_available_interval = file
            .mem_available_interval
            .unwrap_or(DEFAULT_MEM_AVAILABLE_INTERVAL);
        for interval in [interval, mem_available_interval] {
            if interval < SHORTEST_INTERVAL {
                return Err(Error::Interval {
                    interval,
                    least: SHORTEST_INTERVAL,
                });
            }
        }
        let kept = retention::Limits::default();
        let default_units = Units {
            page_size_bytes: rustix::param::page_size() as u64,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
        };
        let database = args
            .database
            .or(file.database)
            .unwrap_or_else(default_database);
        Ok(Self {
            ship: file.ship.resolve(&database),
            database,
            socket: match args.socket.or(file.socket) {
                Some(none) if ["", "none"].map(Path::new).contains(&none.as_path()) => None,
                Some(path) => Some(path),
                None => default_socket(),
            },
            owner_quiet: file.owner_quiet.unwrap_or(DEFAULT_OWNER_QUIET),
            interval,
            mem_available_interval,
            privacy: file.privacy,
            limits: retention::Limits {
                age: file.retention.unwrap_or(kept.age),
                database_bytes: file.database_limit.unwrap_or(kept.database_bytes),
            },
            settings: Settings {
                proc_root: args.proc_root,
                sys_root: args.sys_root,
                dev_root: args.dev_root,
                run_root: args.run_root,
                units: Units {
                    page_size_bytes: args.page_size.unwrap_or(default_units.page_size_bytes),
                    ticks_per_second: args.ticks.unwrap_or(default_units.ticks_per_second),
                },
                headroom_share: file
                    .headroom_share
                    .unwrap_or(Limits::default().headroom_share),
                always_active: file.always_active,
                guest_processes: file.guest_processes,
                always_active_cgroups: file.always_active_cgroups,
                damon: file.damon,
                opens: file.opens,
            },
        })
    }

    /// The interval as stored.
    #[must_use]
    pub fn interval_ms(&self) -> i64 {
        milliseconds(self.interval)
    }

    /// [`Self::owner_quiet`] in milliseconds.
    #[must_use]
    pub fn owner_quiet_ms(&self) -> i64 {
        milliseconds(self.owner_quiet)
    }
}

fn read(path: &Path) -> Result<ConfigFile, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|e| Error::Config {
        path: path.to_owned(),
        message: e.to_string().trim_end().to_owned(),
    })
}

fn default_database() -> PathBuf {
    let state = if rustix::process::geteuid().is_root() {
        PathBuf::from("/var/lib")
    } else {
        let home =
            || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".local/state");
        std::env::var_os("XDG_STATE_HOME").map_or_else(home, PathBuf::from)
    };
    state.join("gleaner/trace.db")
}

/// `None` without a runtime folder.
fn default_socket() -> Option<PathBuf> {
    let runtime = if rustix::process::geteuid().is_root() {
        PathBuf::from("/run")
    } else {
        PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?)
    };
    Some(runtime.join("gleaner/agent.sock"))
}

fn milliseconds(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

fn interval_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(value)?;
    interval::parse(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

fn retention_text<'de, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<Duration>, D::Error> {
    match interval_text(value)? {
        Some(age) if age < SHORTEST_RETENTION => Err(serde::de::Error::custom(format!(
            "{} is too short: {} is the least that can be kept",
            interval::format(age),
            interval::format(SHORTEST_RETENTION)
        ))),
        age => Ok(age),
    }
}

fn limit_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(value)?;
    match units::parse_bytes(&text) {
        Some(bytes) if bytes >= LEAST_DATABASE_LIMIT_BYTES => Ok(Some(bytes)),
        Some(_) => Err(serde::de::Error::custom(format!(
            "{text} is too little: {} is the least",
            units::Bytes::from(LEAST_DATABASE_LIMIT_BYTES)
        ))),
        None => Err(serde::de::Error::custom(format!(
            "`{text}` is no size: write it like 512MiB or 2GiB"
        ))),
    }
}

fn share<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<f64>, D::Error> {
    let share = f64::deserialize(value)?;
    if (0.0..=1.0).contains(&share) {
        Ok(Some(share))
    } else {
        Err(serde::de::Error::custom("a share lies between 0 and 1"))
    }
}

fn cgroup_paths<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    let paths = Vec::<String>::deserialize(value)?;
    if paths.iter().all(|path| path.starts_with('/')) {
        Ok(paths)
    } else {
        let message = "a control group is named by its path, like \"/system.slice/cron.service\"";
        Err(serde::de::Error::custom(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str, args: GlobalArgs) -> Result<Config, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let config = Some(file.path().to_owned());
        Config::resolve(GlobalArgs { config, ..args }).map_err(|e| e.to_string())
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_the_file_over_the_defaults() {
        let text = "interval = \"1m\"\ndatabase = \"/x/t.db\"\nprivacy = \"plain\"\nheadroom_share = 0.2\n\
            always_active = [\"backup\"]\nguest_processes = [\"memcached\"]\nmem_available_interval = \"2s\"\ndamon = true\nopens = true\n\
            always_active_cgroups = [\"/system.slice/cron.service\"]\nsocket = \"/x/s\"\nowner_quiet = \"3s\"\n\
             retention = \"7d\"\ndatabase_limit = \"64MiB\"\n[ship]\ncollector = \"https://c:7443\"\n\
             key = \"/k\"\ninterval = \"5m\"\ntimeout = \"9s\"\nrate = \"64KiB\"\n";
        let config = resolve(text, GlobalArgs::default()).unwrap();
        assert_eq!(config.interval, Duration::from_secs(60));
        assert_eq!(config.mem_available_interval, Duration::from_secs(2));
        assert_eq!(config.database, Path::new("/x/t.db"));
        assert_eq!(config.socket.as_deref(), Some(Path::new("/x/s")));
        assert_eq!(config.owner_quiet_ms(), 3000);
        assert_eq!(config.privacy, Privacy::Plain);
        assert_eq!(config.settings.headroom_share, 0.2);
        assert_eq!(config.settings.always_active, ["backup"]);
        assert_eq!(config.settings.guest_processes, ["memcached"]);
        assert_eq!(config.limits.age, Duration::from_secs(7 * 86_400));
        assert_eq!(config.limits.database_bytes, 64 << 20);
        assert_eq!(
            config.settings.always_active_cgroups,
            ["/system.slice/cron.service"]
        );
        assert!(config.settings.damon && config.settings.opens);

        assert_eq!(config.ship.collector.as_deref(), Some("https://c:7443"));
        assert_eq!(config.ship.key, Path::new("/k"));
        assert_eq!(config.ship.certificate, Path::new("/x/ship/host.pem"));
        assert_eq!(config.ship.interval, Duration::from_secs(300));
        assert_eq!(config.ship.timeout, Duration::from_secs(9));
        assert_eq!(config.ship.rate_bytes, Some(64 << 10));

        let typed = GlobalArgs {
            interval: Some(Duration::from_secs(5)),
            database: Some("/y/t.db".into()),
            socket: Some("none".into()),
            ..GlobalArgs::default()
        };
        let config = resolve(text, typed).unwrap();
        assert_eq!(config.socket, None);
        assert_eq!(config.interval, Duration::from_secs(5));
        assert_eq!(config.database, Path::new("/y/t.db"));

        let config = resolve("", GlobalArgs::default()).unwrap();
        assert_eq!(config.interval, DEFAULT_INTERVAL);
        assert_eq!(config.mem_available_interval, Duration::from_secs(5));
        assert_eq!(config.owner_quiet_ms(), 60_000);
        assert_eq!(config.socket, default_socket());
        assert_eq!(
            resolve("socket = \"\"", GlobalArgs::default())
                .unwrap()
                .socket,
            None
        );
        assert_eq!(config.privacy, Privacy::Hashed);
        assert_eq!(config.settings.headroom_share, 0.15);
        assert_eq!(config.limits, retention::Limits::default());
        assert!(!config.settings.damon && !config.settings.opens);
    }

    /// The file that documents every key has the values that an empty one gives.
    #[test]
    fn the_documented_values_are_the_defaults() {
        let documented = include_str!("../../docs/agent.toml");
        let keys = documented.parse::<toml::Table>().unwrap();
        let as_root = ["database", "socket"]; // another user's lie elsewhere
        let mut rest: toml::Table = keys
            .into_iter()
            .filter(|(key, _)| !as_root.contains(&key.as_str()))
            .collect();
        let ship = rest["ship"].as_table_mut().unwrap();
        assert_eq!(ship.len(), 8);
        let folder = ship.remove("folder").unwrap();
        let root = resolve(
            "database = \"/var/lib/gleaner/trace.db\"",
            GlobalArgs::default(),
        );
        assert_eq!(
            Some(root.unwrap().ship.folder.as_path()),
            folder.as_str().map(Path::new)
        );
        let text = toml::to_string(&rest).unwrap();
        let documented = resolve(&text, GlobalArgs::default()).unwrap();
        let empty = resolve("", GlobalArgs::default()).unwrap();
        assert_eq!(format!("{documented:?}"), format!("{empty:?}"));
        assert_eq!(rest.len(), 13);
    }

    #[test]
    fn wrong_keys_and_values_are_named_with_their_line() {
        for (text, line, word) in [
            ("\nintervall = \"90s\"\n", "line 2", "intervall"),
            ("interval = \"soon\"\n", "line 1", "soon"),
            ("headroom_share = 15\n", "line 1", "headroom_share"),
            ("privacy = \"open\"\n", "line 1", "open"),
            ("retention = \"23h\"\n", "line 1", "1d is the least"),
            ("database_limit = \"512\"\n", "line 1", "512MiB or 2GiB"),
            (
                "database_limit = \"7MiB\"\n",
                "line 1",
                "8.0 MiB is the least",
            ),
            ("[ship]\nrate = \"fast\"\n", "line 2", "64KiB"),
            ("[ship]\ninterval = \"5ms\"\n", "line 2", "too short"),
            ("[ship]\nurl = \"https://c\"\n", "line 2", "url"),
            (
                "always_active_cgroups = [\"cron\"]\n",
                "line 1",
                "by its path",
            ),
        ] {
            let message = resolve(text, GlobalArgs::default()).unwrap_err();
            assert!(
                message.contains(line) && message.contains(word),
                "{message}"
            );
        }
        let message = resolve("interval = \"99ms\"", GlobalArgs::default()).unwrap_err();
        assert!(message.contains("99ms is too short"), "{message}");
        let message =
            resolve("mem_available_interval = \"5ms\"", GlobalArgs::default()).unwrap_err();
        assert!(message.contains("5ms is too short"), "{message}");
    }
}
