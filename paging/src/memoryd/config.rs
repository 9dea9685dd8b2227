//! The configuration, resolved: the command line over the file over the defaults.

use crate::args::GlobalArgs;
use gleaner_paging::store::Options;
use gleaner_policy::lending::Settings;
use gleaner_schemas::lending::{ANNOUNCE_EVERY_MS, Mode};
use gleaner_schemas::{interval, units};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Read where no other file is named.
const DEFAULT_FILE: &str = "/etc/gleaner/memoryd.toml";

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It cannot be read.
    #[error("read {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// It says what cannot be; by name and line.
    #[error("{}: {message}", path.display())]
    Wrong { path: PathBuf, message: String },
    /// Neither root nor a user with a runtime folder.
    #[error(
        "where is the agent? XDG_RUNTIME_DIR is not set: name its socket with --agent, and ours with --socket"
    )]
    NoRuntimeFolder,
}

/// The file as written; unknown keys are refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    mode: Mode,
    headroom_share: Option<f64>,
    spare_headroom_share: Option<f64>,
    leases_limit: Option<usize>,
    #[serde(deserialize_with = "cap_text")]
    cap: Option<Option<u64>>,
    grants: Option<bool>,
    agent: Option<PathBuf>,
    socket: Option<PathBuf>,
    state: Option<PathBuf>,
    #[serde(deserialize_with = "interval_text")]
    rise_after: Option<Duration>,
    #[serde(deserialize_with = "interval_text")]
    longest_term: Option<Duration>,
    #[serde(deserialize_with = "interval_text")]
    outage_grace: Option<Duration>,
    #[serde(deserialize_with = "interval_text")]
    pressure_pause: Option<Duration>,
    #[serde(deserialize_with = "size_text")]
    shrink_step: Option<u64>,
    #[serde(deserialize_with = "interval_text")]
    shrink_every: Option<Duration>,
    huge_pages: Option<bool>,
    lock: Lock,
    recruiters: Vec<String>,
    #[serde(deserialize_with = "interval_text")]
    announce_every: Option<Duration>,
    host_id: Option<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
}

/// Whether guests' pages are locked in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Lock {
    /// Where there are huge pages. Small ones, locked, take half as long again to give back.
    #[default]
    Auto,
    /// Where it is allowed.
    Always,
    Never,
}

/// How recruiters are spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recruiters {
    /// URLs: `https://HOST:PORT`, or `http://` on this machine alone.
    pub(crate) urls: Vec<String>,
    /// This host's name there; `None`: it has no /etc/machine-id.
    pub(crate) host_id: Option<String>,
    /// The host's certificate, with what leads to its authority.
    pub(crate) certificate: PathBuf,
    /// Its key; the same file as a rule.
    pub(crate) key: PathBuf,
    /// Whose certificates are believed.
    pub(crate) authority: PathBuf,
}

/// What the daemon is to do.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// How memory is lent.
    pub(crate) settings: Settings,
    /// How memory is held.
    pub(crate) store: Options,
    /// The agent's socket.
    pub(crate) agent: PathBuf,
    /// The owner's socket.
    pub(crate) socket: PathBuf,
    /// Folder of the owner's wishes and of the log.
    pub(crate) state: PathBuf,
    pub(crate) recruiters: Recruiters,
    /// Time between two announcements when nothing happens.
    pub(crate) announce_every_ms: i64,
}

impl Config {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// [`Error`], about the file or for want of a runtime folder.
    pub(crate) fn resolve(args: &GlobalArgs) -> Result<Self, Error> {
        let default = Path::new(DEFAULT_FILE);
        let path = args.config.clone();
        let path = path.or_else(|| default.exists().then(|| default.to_owned()));
        let file = match &path {
            Some(path) => read(path)?,
            None => ConfigFile::default(),
        };
        let wrong = |message: &str| Error::Wrong {
            path: path.clone().unwrap_or_default(),
            message: message.to_owned(),
        };
        for share in [file.headroom_share, file.spare_headroom_share] {
            if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return Err(wrong(
                    "headroom_share, spare_headroom_share: a share lies between 0 and 1",
                ));
            }
        }
        let is_id = |id: &String| {
            id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        if file
            .host_id
            .as_ref()
            .is_some_and(|id| !id.is_empty() && !is_id(id))
        {
            return Err(wrong(
                "host_id: 32 lower-case hex digits, or \"\" for the agent's name of this host",
            ));
        }
        let in_runtime = |given: Option<&PathBuf>, name: &str| {
            let default = || Some(runtime()?.join(name));
            given
                .cloned()
                .or_else(default)
                .ok_or(Error::NoRuntimeFolder)
        };
        Ok(Self {
            settings: settings(&file),
            store: Options {
                wants_huge: file.huge_pages.unwrap_or(true),
                wants_locked: match file.lock {
                    Lock::Auto => file.huge_pages.unwrap_or(true) && has_huge_pages(),
                    Lock::Always => true,
                    Lock::Never => false,
                },
            },
            agent: in_runtime(args.agent.as_ref().or(file.agent.as_ref()), "agent.sock")?,
            socket: in_runtime(
                args.socket.as_ref().or(file.socket.as_ref()),
                "memoryd.sock",
            )?,
            state: args
                .state
                .clone()
                .or(file.state.clone())
                .unwrap_or_else(|| state().join("memoryd")),
            announce_every_ms: file.announce_every.map_or(ANNOUNCE_EVERY_MS, ms).max(1),
            recruiters: recruiters(file),
        })
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
    settings.grants = file.grants.unwrap_or(settings.grants);
    settings.rise_after_ms = file.rise_after.map_or(settings.rise_after_ms, ms);
    settings.most_term_ms = file.longest_term.map_or(settings.most_term_ms, ms);
    settings.outage_grace_ms = file.outage_grace.map_or(settings.outage_grace_ms, ms);
    settings.pressure_pause_ms = file.pressure_pause.map_or(settings.pressure_pause_ms, ms);
    settings.shrink_every_ms = file.shrink_every.map_or(settings.shrink_every_ms, ms);
    settings.shrink_step_bytes = file.shrink_step.unwrap_or(settings.shrink_step_bytes);
    settings
}

fn recruiters(file: ConfigFile) -> Recruiters {
    // What `gleaner-agent enroll` got: the host has one certificate.
    let enrolled = state().join("ship");
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

/// Whether the kernel makes huge pages where they are asked for.
fn has_huge_pages() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|enabled| !enabled.contains("[never]"))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// `None` without a runtime folder.
fn runtime() -> Option<PathBuf> {
    let runtime = if is_root() {
        PathBuf::from("/run")
    } else {
        PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?)
    };
    Some(runtime.join("gleaner"))
}

fn state() -> PathBuf {
    let state = if is_root() {
        PathBuf::from("/var/lib")
    } else {
        let home =
            || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".local/state");
        std::env::var_os("XDG_STATE_HOME").map_or_else(home, PathBuf::from)
    };
    state.join("gleaner")
}

fn read(path: &Path) -> Result<ConfigFile, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|e| Error::Wrong {
        path: path.to_owned(),
        message: e.to_string().trim_end().to_owned(),
    })
}

fn cap_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Option<u64>>, D::Error> {
    let text = String::deserialize(value)?;
    if text == "none" {
        return Ok(Some(None));
    }
    parsed_size(&text).map(|bytes| Some(Some(bytes)))
}

fn size_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(value)?;
    parsed_size(&text).map(Some)
}

fn parsed_size<E: serde::de::Error>(text: &str) -> Result<u64, E> {
    let wrong = || E::custom(format!("`{text}` is no size: write it like 512MiB or 2GiB"));
    units::parse_bytes(text).ok_or_else(wrong)
}

fn interval_text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(value)?;
    let parsed = interval::parse(&text).map_err(serde::de::Error::custom)?;
    Ok(Some(parsed))
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
            agent: Some("/x/agent.sock".into()),
            ..GlobalArgs::default()
        };
        Config::resolve(&args).map_err(|e| e.to_string())
    }

    #[test]
    fn the_documented_file_has_every_key_and_its_default() {
        let documented = include_str!("../../../docs/memoryd.toml");
        let (as_is, empty) = (resolve(documented).unwrap(), resolve("").unwrap());
        assert_eq!(format!("{as_is:?}"), format!("{empty:?}"));
        let keys = documented
            .lines()
            .filter(|line| !line.starts_with('#') && line.contains(" = "));
        assert_eq!(keys.count(), 23);
    }

    #[test]
    fn what_is_wrong_is_said_by_name_and_line() {
        for (text, expected) in [
            ("\nquota = 4", "unknown field `quota`"),
            ("\nquota = 4", "line 2"),
            ("cap = \"much\"", "`much` is no size"),
            ("mode = \"greedy\"", "unknown variant `greedy`"),
            ("headroom_share = 1.5", "between 0 and 1"),
            ("host_id = \"otter\"", "32 lower-case hex digits"),
            ("rise_after = \"soon\"", "soon"),
        ] {
            let said = resolve(text).err().unwrap_or_default();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn the_file_is_taken_at_its_word() {
        let text = "mode = \"paper\"\ncap = \"4GiB\"\nlock = \"never\"\nhuge_pages = false\ncertificate = \"/c\"\n\
            rise_after = \"1s\"\nhost_id = \"00000000000000000000000000000001\"\nrecruiters = [\"http://127.0.0.1:7490\"]";
        let config = resolve(text).unwrap();
        assert_eq!(config.settings.limits.cap_bytes, Some(4 << 30));
        assert_eq!(config.settings.rise_after_ms, 1000);
        assert!(!config.store.wants_locked && !config.store.wants_huge);
        assert_eq!(config.recruiters.key, Path::new("/c"));
        assert_eq!(config.recruiters.host_id.unwrap().len(), 32);
        assert_eq!(config.agent, Path::new("/x/agent.sock"));
    }
}
