//! The resolved configuration of the service. The environment overrides the file, which overrides the
//! defaults.

mod file;
mod global;
mod sharing;

use crate::catalog::CatalogAddress;
use crate::directory::MembershipSource;
use crate::source::SourceAddress;
use file::{ConfigFile, MountTable};
use gleaner_daemon::config::{self, ConfigError, LoadedConfig, Origin};
use gleaner_daemon::folders;
use gleaner_policy::global::settings::{MemoryPolicy, Settings};
use gleaner_trust::{ClientPaths, ServerPaths};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the daemon, as used in the names of its file and of its environment variables.
pub const DAEMON: &str = "commons";
/// Default address of metrics, for this machine only.
const LOCAL_LISTEN: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 7485);
/// Default size of local memory, in bytes.
const LOCAL_BYTES: u64 = 256 << 20;

/// Rule by which hosts share blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharingPolicy {
    /// Each host reads the source alone.
    None,
    /// The home of a block, found by its hash, keeps a copy of it.
    Hash,
    /// A host forwards an evicted block without other copies to a random host, a few times.
    NChance,
    /// A host puts an evicted block to the hosts with the oldest blocks, by the recruiters' weights.
    Gms,
}

impl SharingPolicy {
    /// Name of the policy in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.memory_policy().name()
    }

    /// The same policy of global memory.
    #[must_use]
    pub const fn memory_policy(self) -> MemoryPolicy {
        match self {
            Self::None => MemoryPolicy::None,
            Self::Hash => MemoryPolicy::Hash,
            Self::NChance => MemoryPolicy::NChance,
            Self::Gms => MemoryPolicy::Gms,
        }
    }

    /// Returns true if the policy needs members that a recruiter lists.
    const fn needs_recruiters(self) -> bool {
        matches!(self, Self::NChance | Self::Gms)
    }
}

/// Folder that the service shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountConfig {
    /// Catalog of the folder.
    pub catalog: CatalogAddress,
    /// Folder to mount at.
    pub folder: PathBuf,
    /// Source of the files.
    pub source: SourceAddress,
}

/// Settings of the exchange of blocks with other hosts.
#[derive(Clone, Debug)]
pub struct SharingConfig {
    /// Address for the other members.
    pub listen: SocketAddr,
    /// Certificates of this host as a server.
    pub server_paths: ServerPaths,
    /// Certificates of this host as a client.
    pub client_paths: ClientPaths,
    /// Source of the list of members.
    pub members: MembershipSource,
    /// Address that the recruiters tell other members, `HOST:PORT`; `None`: this host's address on the link, with
    /// the port of `listen`.
    pub address: Option<String>,
    /// Time for all exchanges about one block with other hosts, except for waiting for a fetch.
    pub peer_timeout: Duration,
    /// Longest wait for another host's fetch of a block.
    pub fetch_wait: Duration,
    /// Maximum number of simultaneous connections.
    pub connections_limit: usize,
}

/// Configuration of the service.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the commons.
    pub name: String,
    /// Id of this host; `None` without /etc/machine-id.
    pub host_id: Option<String>,
    /// Rule by which hosts share blocks; without members and recruiters it has no effect.
    pub policy: SharingPolicy,
    /// Settings of global memory, for members that recruiters list.
    pub global: Settings,
    /// Exchange of blocks; `None` under the policy `none`, and without members and recruiters.
    pub sharing: Option<SharingConfig>,
    /// Loopback address of metrics; `None`: no metrics.
    pub local_listen: Option<SocketAddr>,
    /// Maximum bytes of blocks in local memory.
    pub local_bytes: u64,
    /// Maximum bytes of other hosts' blocks; with recruiters, of leases of this host's own memory.
    pub hold_bytes: u64,
    /// True if the kernel caches what was read.
    pub kernel_cache: bool,
    /// User that the service becomes after mounting; `None`: it stays the user who started it.
    pub user: Option<String>,
    /// True if all users may use the mounts; `None`: if the service may mount without fusermount3.
    pub allows_others: Option<bool>,
    /// Time after which a read fails.
    pub source_timeout: Duration,
    /// Socket for `gleaner-commons status`.
    pub socket: PathBuf,
    /// Folders to show.
    pub mounts: Vec<MountConfig>,
}

impl Config {
    /// Reads the configuration: the file at `path`, or the default one if it exists.
    ///
    /// # Errors
    /// The environment or the file are wrong, or there is no runtime folder.
    pub fn load(path: Option<&Path>) -> Result<LoadedConfig<Self>, ConfigError> {
        let LoadedConfig {
            values: file,
            origin,
        } = config::load::<ConfigFile>(DAEMON, path)?;
        let values = Self::of(file, &origin)?;
        Ok(LoadedConfig { values, origin })
    }

    fn of(file: ConfigFile, origin: &Origin) -> Result<Self, ConfigError> {
        let given_id = file.host_id.clone().filter(|id| !id.is_empty());
        let host_id = given_id.or_else(gleaner_trust::this_host_id);
        let policy = sharing::policy(&file, origin)?;
        let global = global::settings(&file, policy, origin)?;
        let sharing = sharing::sharing(&file, policy, host_id.as_deref(), origin)?;
        // Leases are bounded by the host's quota as well.
        let most_held = if file.recruiters.is_empty() {
            0
        } else {
            u64::MAX
        };
        let default_socket = || Some(folders::runtime()?.join("commons.sock"));
        let socket = file
            .socket
            .or_else(default_socket)
            .ok_or_else(|| origin.wrong("socket", "XDG_RUNTIME_DIR is not set: name the socket"))?;
        let mounts = file.mounts.iter().map(|mount| resolve(mount, origin));
        Ok(Self {
            name: file.name.unwrap_or_else(|| DAEMON.to_owned()),
            host_id,
            policy,
            global,
            sharing,
            local_listen: file
                .local_listen
                .unwrap_or_else(|| Some(LOCAL_LISTEN.into())),
            local_bytes: file.local.unwrap_or(LOCAL_BYTES),
            hold_bytes: file.hold.unwrap_or(most_held),
            kernel_cache: file.kernel_cache.unwrap_or(true),
            user: file.user.filter(|user| !user.is_empty()),
            allows_others: file.allow_other,
            source_timeout: file.source_timeout.unwrap_or(Duration::from_secs(10)),
            socket,
            mounts: mounts.collect::<Result<_, _>>()?,
        })
    }
}

fn resolve(mount: &MountTable, origin: &Origin) -> Result<MountConfig, ConfigError> {
    let missing = |key: &str| origin.wrong("mounts", format!("each mount needs the key {key}"));
    let text = mount.catalog.as_ref().ok_or_else(|| missing("catalog"))?;
    let catalog = CatalogAddress::parse(text).map_err(|what| origin.wrong("mounts", what))?;
    let text = mount.source.as_ref().ok_or_else(|| missing("source"))?;
    let source = SourceAddress::parse(text);
    Ok(MountConfig {
        catalog,
        folder: mount.folder.clone().ok_or_else(|| missing("folder"))?,
        source: source.map_err(|e| origin.wrong("mounts", e.to_string()))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_policy::global::settings::{Swap, Victim};

    fn load(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("commons.toml");
        std::fs::write(&path, format!("{text}\n")).unwrap();
        let loaded = Config::load(Some(&path)).map_err(|e| e.to_string())?;
        Ok(loaded.values)
    }

    #[test]
    fn the_documented_file_has_every_key_and_its_default() {
        let documented = include_str!("../../../docs/commons.toml");
        let show = |text: &str| load(text).map(|config| format!("{config:?}"));
        config::check_documented::<ConfigFile>(documented, show).unwrap();
    }

    #[test]
    fn members_need_this_host_and_mounts_need_all_keys() {
        let (own, other) = ("0a".repeat(16), "0b".repeat(16));
        let socket = "socket = \"/x\"\n";
        let members = format!("members = [\"{own}@a:1\", \"{other}@b:1\"]\n");
        let text = format!("{socket}host_id = \"{own}\"\n{members}");
        let config = load(&text).unwrap();
        let sharing = config.sharing.unwrap();
        assert_eq!(
            sharing.listen,
            "0.0.0.0:7445".parse::<SocketAddr>().unwrap()
        );
        assert_eq!(sharing.members.members().len(), 2);
        assert!(
            load(&format!("{text}policy = \"none\""))
                .unwrap()
                .sharing
                .is_none()
        );
        assert!(load(socket).unwrap().sharing.is_none());
        let wrong = load(&format!("{text}policy = \"gms\"")).unwrap_err();
        assert!(wrong.contains("recruiters"), "{wrong}");
        let alien = load(&format!(
            "{socket}host_id = \"{}\"\n{members}",
            "0c".repeat(16)
        ));
        assert!(alien.unwrap_err().contains("is not among the members"));
        let mount = "[[mounts]]\ncatalog = \"/a.catalog\"\nfolder = \"/mnt/a\"\n";
        let incomplete = load(&format!("{socket}{mount}")).unwrap_err();
        assert!(incomplete.contains("needs the key source"), "{incomplete}");
        let mounts = load(&format!("{socket}{mount}source = \"/srv/a\""))
            .unwrap()
            .mounts;
        assert_eq!(mounts[0].folder, Path::new("/mnt/a"));
        let wrong = load(&format!("{socket}{mount}sauce = \"/srv/a\"")).unwrap_err();
        assert!(wrong.contains("unknown field"), "{wrong}");
    }

    #[test]
    fn rules_of_global_memory_are_those_of_gms() {
        let own = "0a".repeat(16);
        let with_recruiter = |line: &str| {
            load(&format!(
                "socket = \"/x\"\nhost_id = \"{own}\"\nrecruiters = [\"https://r.example:7444\"]\n{line}"
            ))
        };
        let settings = with_recruiter("policy = \"gms\"").unwrap().global;
        assert_eq!(settings, Settings::default());
        let lines =
            "policy = \"gms\"\nvictim = \"global-first\"\nswap = \"weights\"\nboost_quarters = 8";
        let settings = with_recruiter(lines).unwrap().global;
        let wanted = Settings {
            victim: Victim::GlobalFirst,
            swap: Swap::Weights,
            boost_quarters: 8,
            ..Settings::default()
        };
        assert_eq!(settings, wanted);
        for (lines, words) in [
            ("victim = \"newest\"", "unknown variant"),
            ("swap = \"none\"", "unknown variant"),
            ("boost_quarters = 0", "0 is not within"),
            ("boost_quarters = 1001", "1 to 1000"),
            ("boost_quarters = 8", "the policy is hash"),
            (
                "policy = \"hash\"\nswap = \"weights\"",
                "the policy is hash",
            ),
            (
                "policy = \"n-chance\"\nvictim = \"global-first\"",
                "only the policy gms",
            ),
        ] {
            let wrong = with_recruiter(lines).unwrap_err();
            assert!(wrong.contains(words), "{lines}: {wrong}");
        }
        let without = load("socket = \"/x\"\nboost_quarters = 4").unwrap_err();
        assert!(without.contains("the policy is hash"), "{without}");
        let defaults =
            "policy = \"n-chance\"\nvictim = \"oldest\"\nswap = \"return\"\nboost_quarters = 5";
        assert!(with_recruiter(defaults).is_ok());
    }

    #[test]
    fn recruiters_replace_members() {
        let own = "0a".repeat(16);
        let text = format!(
            "socket = \"/x\"\nhost_id = \"{own}\"\nrecruiters = [\"https://r.example:7444\"]\n"
        );
        let config = load(&text).unwrap();
        let sharing = config.sharing.unwrap();
        assert_eq!(config.policy, SharingPolicy::Hash);
        assert_eq!(config.hold_bytes, u64::MAX);
        assert_eq!(sharing.members.recruiters().len(), 1);
        assert_eq!(sharing.address, None);
        let more = |line: &str| load(&format!("{text}{line}"));
        for policy in ["none", "hash", "n-chance", "gms"] {
            let config = more(&format!("policy = \"{policy}\"")).unwrap();
            assert_eq!(config.policy.name(), policy);
            assert_eq!(config.sharing.is_some(), policy != "none");
        }
        let sharing = more("address = \"ws1.example:7445\"").unwrap().sharing;
        assert_eq!(
            sharing.unwrap().address.as_deref(),
            Some("ws1.example:7445")
        );
        for (line, words) in [
            ("policy = \"exact\"", "unknown variant"),
            ("address = \"ws1\"", "write it like"),
            ("name = \".x\"", "begins with a dot"),
            (
                "members = [\"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b@b:1\"]",
                "list the members",
            ),
        ] {
            let wrong = more(line).unwrap_err();
            assert!(wrong.contains(words), "{wrong}");
        }
        let clear = load("socket = \"/x\"\nrecruiters = [\"http://r.example:7444\"]").unwrap_err();
        assert!(clear.contains("https://"), "{clear}");
    }
}
