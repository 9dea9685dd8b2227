//! State of a lab and its processes; it is stored in the lab's folder.

use super::error::{LabError, Result, file};
use super::link::Link;
use super::process::Process;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the folder, in the lab's folder, for the certificate authority and the certificates.
pub(super) const PKI: &str = "pki";

/// Default folder of a lab.
pub(super) const DEFAULT_FOLDER: &str = "/var/lib/gleaner/lab";
/// Symbolic link to the folder of the running lab. A reboot removes it, like the namespaces.
const CURRENT: &str = "/run/gleaner-lab";
const FILE: &str = "lab.json";
const FORMAT: u32 = 1;

/// State of a lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    format: u32,
    #[serde(skip)]
    pub(super) folder: PathBuf,
    pub(super) hosts: u32,
    pub(super) link: Link,
    /// Ids of the hosts, in the order of the hosts' numbers.
    pub(super) host_ids: Vec<String>,
    /// Folder that the hosts show as a commons, if the lab has one.
    #[serde(default)]
    pub(super) commons: Option<PathBuf>,
    pub(super) started: Vec<StartedDaemon>,
}

/// A daemon that the lab has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartedDaemon {
    /// Network namespace of the daemon's node.
    pub(super) namespace: String,
    /// Name of the daemon, as in the module `daemons`.
    pub(super) daemon: String,
    pub(super) process: Process,
}

impl State {
    /// Begins a lab in `folder`. The folder is created, or must be empty.
    pub(super) fn begin(folder: &Path, hosts: u32) -> Result<Self> {
        fs::create_dir_all(folder).map_err(file("create", folder))?;
        let folder = fs::canonicalize(folder).map_err(file("list", folder))?;
        let mut entries = fs::read_dir(&folder).map_err(file("list", &folder))?;
        if entries.next().is_some() {
            return Err(LabError::NotEmpty { folder });
        }
        let state = Self {
            format: FORMAT,
            folder,
            hosts,
            link: Link::default(),
            host_ids: Vec::new(),
            commons: None,
            started: Vec::new(),
        };
        state.save()?;
        let current = Path::new(CURRENT);
        remove_if_there(current)?;
        std::os::unix::fs::symlink(&state.folder, current).map_err(file("make", current))?;
        Ok(state)
    }

    /// The lab in `folder`. Without `folder`: the running lab, or else the lab in the default folder. `None`
    /// if there is no lab.
    pub(super) fn find(folder: Option<&Path>) -> Result<Option<Self>> {
        let current = || fs::read_link(CURRENT).ok();
        let folder = folder.map(Path::to_owned).or_else(current);
        let folder = folder.unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER));
        let path = folder.join(FILE);
        let text = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(file("read", &path))?,
        };
        match serde_json::from_slice::<Self>(&text) {
            Ok(state) if state.format == FORMAT => Ok(Some(Self { folder, ..state })),
            Ok(_) => Err(LabError::Version { path }),
            Err(source) => Err(LabError::State { path, source }),
        }
    }

    /// Writes the state atomically.
    pub(super) fn save(&self) -> Result<()> {
        let path = self.folder.join(FILE);
        let beside = self.folder.join("lab.json.new");
        let write = || {
            fs::write(&beside, serde_json::to_vec_pretty(self)?)?;
            fs::rename(&beside, &path)
        };
        write().map_err(file("write", &path))
    }

    /// Folder of a node, with its configuration, data and logs.
    pub(super) fn folder_of(&self, namespace: &str) -> PathBuf {
        self.folder.join(namespace)
    }

    /// Removes the lab's state. Also removes everything that the lab created in its folder, unless `keep` is set.
    pub(super) fn remove(&self, keep: bool) -> Result<()> {
        if !keep {
            let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
            for entry in entries {
                let name = entry.file_name();
                let is_node = name.to_str().is_some_and(super::address::is_of_a_lab);
                if is_node || name == PKI {
                    let path = entry.path();
                    fs::remove_dir_all(&path).map_err(file("remove", &path))?;
                }
            }
        }
        remove_if_there(&self.folder.join("lab.json.new"))?;
        remove_if_there(&self.folder.join(FILE))?;
        let _ = fs::remove_dir(&self.folder); // fails if something is kept or of others
        Ok(())
    }
}

/// Removes the link to the running lab: no lab is running any more.
pub(super) fn none_is_up() -> Result<()> {
    remove_if_there(Path::new(CURRENT))
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(file("remove", path)),
    }
}
