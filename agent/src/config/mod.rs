//! Resolved configuration: the command line overrides the environment, which overrides the file, which
//! overrides the defaults. Each room (top-level module) gets its own part of the configuration.

mod settings;
mod ship;

pub use settings::{Limits, Settings, Units};
pub use ship::ShipSettings;
pub(crate) use ship::{AUTHORITY, HOST};

use crate::Error;
use crate::args::GlobalArgs;
use gleaner_daemon::config::{self, ConfigError, LoadedConfig, Origin, values};
use gleaner_daemon::folders;
use gleaner_policy::quota;
use gleaner_trust::Address;
use serde::Deserialize;
use ship::ShipTable;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the daemon in the names of its file and of its environment variables.
pub const DAEMON: &str = "agent";

/// Default time between samples, the same as in the paper.
const DEFAULT_SAMPLE_INTERVAL: Duration = Duration::from_secs(90);

/// Default interval of reading MemAvailable: any dip that lasts longer is seen.
const DEFAULT_MEM_AVAILABLE_INTERVAL: Duration = Duration::from_secs(5);

/// Shortest time between samples; shorter ones would measure mostly the agent itself.
const SHORTEST_INTERVAL_MS: u64 = 100;

/// Default idle time of the owner after which the agent waits for their return. It is far below the five
/// minutes of the idle rule, so that the agent waits before anybody relies on the owner's absence; and far
/// above the pauses of a reader, since each return wakes the agent.
const DEFAULT_RETURN_WATCH_AFTER: Duration = Duration::from_secs(60);
/// Shortest retention: old records are deleted at most once per UTC day.
const SHORTEST_RETENTION_MS: u64 = 24 * 3_600_000;

/// Minimum size limit of the database: enough for a few days of an ordinary workstation.
const LEAST_DATABASE_LIMIT_BYTES: u64 = 8 << 20;

/// Privacy level: says whether paths (of files and control groups) are recorded, and so may leave the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Privacy {
    /// No paths: files are identified by a keyed hash.
    #[default]
    Hashed,
    /// Paths are recorded as well.
    Plain,
}

impl Privacy {
    /// Name of the level, as the database stores it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hashed => "hashed",
            Self::Plain => "plain",
        }
    }
}

/// The configuration file as written; unknown keys are errors.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    #[serde(deserialize_with = "values::interval_from::<SHORTEST_INTERVAL_MS, _>")]
    sample_interval: Option<Duration>,
    #[serde(deserialize_with = "values::interval_from::<SHORTEST_INTERVAL_MS, _>")]
    mem_available_interval: Option<Duration>,
    database: Option<PathBuf>,
    socket: Option<PathBuf>,
    #[serde(deserialize_with = "values::interval")]
    return_watch_after: Option<Duration>,
    privacy: Privacy,
    #[serde(deserialize_with = "values::share")]
    headroom_share: Option<f64>,
    always_active: Vec<String>,
    guest_processes: Vec<String>,
    #[serde(deserialize_with = "values::interval_from::<SHORTEST_RETENTION_MS, _>")]
    retention: Option<Duration>,
    #[serde(deserialize_with = "values::size_from::<LEAST_DATABASE_LIMIT_BYTES, _>")]
    database_limit: Option<u64>,
    #[serde(deserialize_with = "cgroup_paths")]
    always_active_cgroups: Vec<String>,
    damon: bool,
    opens: bool,
    ship: ShipTable,
}

/// Configuration of the agent.
#[derive(Clone, Debug)]
pub struct Config {
    /// Path of the trace's database.
    pub database: PathBuf,
    /// Socket for local listeners; `None`: no socket.
    pub socket: Option<PathBuf>,
    /// Idle time of the owner after which the agent waits for their return.
    pub return_watch_after: Duration,
    /// Time between samples.
    pub sample_interval: Duration,
    /// Interval of reading MemAvailable.
    pub mem_available_interval: Duration,
    /// Privacy level of the records.
    pub privacy: Privacy,
    /// Limits on the records kept.
    pub limits: Limits,
    /// Settings of sampling.
    pub settings: Settings,
    /// Settings of shipping.
    pub ship: ShipSettings,
}

impl Config {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// The arguments, the environment or the file are wrong.
    pub fn resolve(args: GlobalArgs) -> Result<Self, ConfigError> {
        Self::load(args).map(|loaded| loaded.values)
    }

    /// Resolves the arguments as [`Self::resolve`] does, and returns the origin of the configuration too.
    ///
    /// # Errors
    /// The arguments, the environment or the file are wrong.
    pub fn load(args: GlobalArgs) -> Result<LoadedConfig<Self>, ConfigError> {
        let LoadedConfig {
            values: file,
            origin,
        } = config::load::<ConfigFile>(DAEMON, args.config.as_deref())?;
        if let Some(interval) = args.sample_interval {
            let least = Duration::from_millis(SHORTEST_INTERVAL_MS);
            let checked = values::check_interval(interval, least);
            checked.map_err(|what| Origin::wrong_argument("--sample-interval", what))?;
        }
        let values = Self::of(args, file);
        if let Some(Err(error)) = values.ship.collector.as_deref().map(Address::parse) {
            return Err(origin.wrong("ship.collector", Error::from(error).to_string()));
        }
        Ok(LoadedConfig { values, origin })
    }

    fn of(args: GlobalArgs, file: ConfigFile) -> Self {
        let kept = Limits::default();
        let default_units = Units {
            page_size_bytes: rustix::param::page_size() as u64,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
        };
        let database = args.database.or(file.database);
        let database = database.unwrap_or_else(|| folders::state("").join("trace.db"));
        Self {
            ship: file.ship.resolve(&database),
            database,
            socket: match args.socket.or(file.socket) {
                Some(none) if ["", "none"].map(Path::new).contains(&none.as_path()) => None,
                Some(path) => Some(path),
                None => folders::runtime().map(|folder| folder.join("agent.sock")),
            },
            return_watch_after: file
                .return_watch_after
                .unwrap_or(DEFAULT_RETURN_WATCH_AFTER),
            sample_interval: args
                .sample_interval
                .or(file.sample_interval)
                .unwrap_or(DEFAULT_SAMPLE_INTERVAL),
            mem_available_interval: file
                .mem_available_interval
                .unwrap_or(DEFAULT_MEM_AVAILABLE_INTERVAL),
            privacy: file.privacy,
            limits: Limits {
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
                    .unwrap_or(quota::Limits::default().headroom_share),
                always_active: file.always_active,
                guest_processes: file.guest_processes,
                always_active_cgroups: file.always_active_cgroups,
                damon: file.damon,
                opens: file.opens,
            },
        }
    }

    /// Merges `next` into this configuration: keys that need a restart keep their present values. Returns the
    /// result and the keys whose new values wait for a restart.
    #[must_use]
    pub fn followed_by(&self, next: Self) -> (Self, Vec<&'static str>) {
        let fixed = [
            ("database", self.database != next.database),
            ("socket", self.socket != next.socket),
            ("ship", self.ship != next.ship),
        ];
        let left_out = fixed.into_iter().filter(|(_, differs)| *differs);
        let left_out = left_out.map(|(key, _)| key).collect();
        let taken_up = Self {
            database: self.database.clone(),
            socket: self.socket.clone(),
            ship: self.ship.clone(),
            ..next
        };
        (taken_up, left_out)
    }

    /// Time between samples in ms, as stored.
    #[must_use]
    pub fn sample_interval_ms(&self) -> i64 {
        milliseconds(self.sample_interval)
    }

    /// [`Self::return_watch_after`] in milliseconds.
    #[must_use]
    pub fn return_watch_after_ms(&self) -> i64 {
        milliseconds(self.return_watch_after)
    }
}

fn milliseconds(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
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
        let text = "sample_interval = \"1m\"\ndatabase = \"/x/t.db\"\nprivacy = \"plain\"\nheadroom_share = 0.2\n\
            always_active = [\"backup\"]\nguest_processes = [\"memcached\"]\nmem_available_interval = \"2s\"\ndamon = true\nopens = true\n\
            always_active_cgroups = [\"/system.slice/cron.service\"]\nsocket = \"/x/s\"\nreturn_watch_after = \"3s\"\n\
             retention = \"7d\"\ndatabase_limit = \"64MiB\"\n[ship]\ncollector = \"https://c:7443\"\n\
             key = \"/k\"\nbatch_interval = \"5m\"\ntimeout = \"9s\"\nrate = \"64KiB\"\n";
        let config = resolve(text, GlobalArgs::default()).unwrap();
        assert_eq!(config.sample_interval, Duration::from_secs(60));
        assert_eq!(config.mem_available_interval, Duration::from_secs(2));
        assert_eq!(config.database, Path::new("/x/t.db"));
        assert_eq!(config.socket.as_deref(), Some(Path::new("/x/s")));
        assert_eq!(config.return_watch_after_ms(), 3000);
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
        assert_eq!(config.ship.batch_interval, Duration::from_secs(300));
        assert_eq!(config.ship.timeout, Duration::from_secs(9));
        assert_eq!(config.ship.rate_bytes, Some(64 << 10));

        let typed = GlobalArgs {
            sample_interval: Some(Duration::from_secs(5)),
            database: Some("/y/t.db".into()),
            socket: Some("none".into()),
            ..GlobalArgs::default()
        };
        let config = resolve(text, typed).unwrap();
        assert_eq!(config.socket, None);
        assert_eq!(config.sample_interval, Duration::from_secs(5));
        assert_eq!(config.database, Path::new("/y/t.db"));

        let config = resolve("", GlobalArgs::default()).unwrap();
        assert_eq!(config.sample_interval, DEFAULT_SAMPLE_INTERVAL);
        assert_eq!(config.mem_available_interval, Duration::from_secs(5));
        assert_eq!(config.return_watch_after_ms(), 60_000);
        let socket = folders::runtime().map(|folder| folder.join("agent.sock"));
        assert_eq!(config.socket, socket);
        assert_eq!(
            resolve("socket = \"\"", GlobalArgs::default())
                .unwrap()
                .socket,
            None
        );
        assert_eq!(config.privacy, Privacy::Hashed);
        assert_eq!(config.settings.headroom_share, 0.15);
        assert_eq!(config.limits, Limits::default());
        assert!(!config.settings.damon && !config.settings.opens);
    }

    #[test]
    fn the_documented_file_has_every_key_and_its_default() {
        let as_root = |text: &str| {
            let args = GlobalArgs {
                database: Some("/var/lib/gleaner/trace.db".into()),
                ..GlobalArgs::default()
            };
            let mut config = resolve(text, args)?;
            config.socket = Some(config.socket.unwrap_or("/run/gleaner/agent.sock".into()));
            Ok(format!("{config:?}"))
        };
        let documented = include_str!("../../../docs/agent.toml");
        config::check_documented::<ConfigFile>(documented, as_root).unwrap();
        let of_user = |text: &str| format!("{:?}", resolve(text, GlobalArgs::default()).unwrap());
        assert_eq!(of_user(documented), of_user(""));
    }

    #[test]
    fn what_only_a_restart_changes_stays_and_is_named() {
        let config = |text| resolve(text, GlobalArgs::default()).unwrap();
        let before = config("sample_interval = \"2s\"\ndatabase = \"/x/t.db\"");
        let next = config("sample_interval = \"3s\"\ndatabase = \"/y/t.db\"\nprivacy = \"plain\"");
        let (taken_up, left_out) = before.followed_by(next);
        assert_eq!(left_out, ["database", "ship"]);
        assert_eq!(taken_up.sample_interval, Duration::from_secs(3));
        assert_eq!(taken_up.privacy, Privacy::Plain);
        assert_eq!(taken_up.database, Path::new("/x/t.db"));
        assert_eq!(taken_up.ship, before.ship);
        assert_eq!(before.followed_by(before.clone()).1, [""; 0]);
    }
}
