//! The commons of a lab: a sealed folder of this machine, which every host shows. The hosts share its blocks.

use super::address::{self, COMMONS_PORT, Node};
use super::collector::{text, write};
use super::daemons;
use super::error::{LabError, Result, file};
use super::network;
use super::state::State;
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Memory of each host for blocks that it reads, and the same amount for blocks that it holds for others.
const MEMORY: &str = "64MiB";
/// Time for asking other hosts: long, since all hosts share this machine's processors, and links may be slow.
const PEER_TIMEOUT: &str = "5s";
/// Time that all hosts get to mount the folder.
const TO_MOUNT: Duration = Duration::from_secs(120);
const TO_ANSWER: Duration = Duration::from_secs(5);

/// Part of a host's status of the commons that the lab uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CommonsReads {
    pub(super) local_read_bytes: u64,
    pub(super) cluster_read_bytes: u64,
    pub(super) source_read_bytes: u64,
}

/// Seals `folder`, and records it in the lab's state. The collector's node has the catalog.
pub(super) fn seal(state: &mut State, folder: &Path) -> Result<()> {
    let folder = fs::canonicalize(folder).map_err(file("open", folder))?;
    let mut command = Command::new(daemons::program("gleaner-commons")?);
    command.arg("seal").arg(&folder).arg("-o");
    command.arg(catalog(state)).stdin(Stdio::null());
    network::must(command)?;
    state.commons = Some(folder);
    state.save()
}

/// Path of the catalog, which all hosts read.
fn catalog(state: &State) -> PathBuf {
    let folder = state.folder_of(&address::collector().namespace);
    folder.join("commons.catalog")
}

fn mount_point(state: &State, node: &Node) -> PathBuf {
    state.folder_of(&node.namespace).join("commons")
}

fn socket(state: &State, node: &Node) -> PathBuf {
    state.folder_of(&node.namespace).join("commons.sock")
}

/// Writes the configuration of a host's commons, which uses the certificate of the host's agent. All hosts
/// must have their ids already.
pub(super) fn prepare_host(state: &State, node: &Node, source: &Path) -> Result<()> {
    let point = mount_point(state, node);
    fs::create_dir_all(&point).map_err(file("create", &point))?;
    let members: Vec<String> = (1..)
        .zip(&state.host_ids)
        .map(|(number, id)| format!("\"{id}@{}:{COMMONS_PORT}\"", address::host(number).address))
        .collect();
    let folder = state.folder_of(&node.namespace);
    let enrolled = folder.join("ship");
    // The kernel caches nothing, so that the figures count every read.
    let config = format!(
        "name = \"lab\"
members = [{}]
local = \"{MEMORY}\"
hold = \"{MEMORY}\"
kernel_cache = false
peer_timeout = \"{PEER_TIMEOUT}\"
fetch_wait = \"{PEER_TIMEOUT}\"
listen = \"0.0.0.0:{COMMONS_PORT}\"
socket = {}
certificate = {certificate}
key = {certificate}
authority = {}
mounts = [{{ catalog = {}, folder = {}, source = {} }}]
",
        members.join(", "),
        text(&socket(state, node))?,
        text(&enrolled.join("authority.crt"))?,
        text(&catalog(state))?,
        text(&point)?,
        text(source)?,
        certificate = text(&enrolled.join("host.pem"))?,
    );
    write(&folder.join("commons.toml"), &config)
}

/// Waits until all hosts have mounted the folder. Fails if a daemon of the lab ends before.
pub(super) fn wait(state: &State, hosts: &[Node]) -> Result<()> {
    let begun = Instant::now();
    for node in hosts {
        let folder = state.folder_of(&node.namespace);
        let log = folder.join(format!("{}.log", daemons::COMMONS.name));
        while !has_mounted(&log) {
            daemons::check(state)?;
            if begun.elapsed() > TO_MOUNT {
                let point = mount_point(state, node);
                return Err(LabError::NoMount { point, log });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

fn has_mounted(log: &Path) -> bool {
    let said = fs::read_to_string(log).unwrap_or_default();
    said.lines().any(|line| line.starts_with("mounted "))
}

/// Path of a host's mount for root of this machine; `None` if the host has none. Each host has mounts of its
/// own, so the path leads through the daemon's process.
pub(super) fn path(state: &State, node: &Node) -> Option<PathBuf> {
    let is_it = |daemon: &str| daemon == daemons::COMMONS.name;
    let mut started = state.started.iter();
    let daemon = started.find(|s| s.namespace == node.namespace && is_it(&s.daemon))?;
    let point = fs::canonicalize(mount_point(state, node)).ok()?;
    let root = format!("/proc/{}/root", daemon.process.pid);
    Some(Path::new(&root).join(point.strip_prefix("/").ok()?))
}

/// Requests the status of a host's commons: the part that the lab uses, and the complete document.
pub(super) fn fetch_status(state: &State, node: &Node) -> Result<(CommonsReads, Value)> {
    let silent = |source| LabError::Silent {
        daemon: "the commons",
        source,
    };
    let answer = answer(&socket(state, node)).map_err(silent)?;
    let fault = |source| LabError::Document {
        subject: "the status of the commons",
        source,
    };
    let value: Value = serde_json::from_str(&answer).map_err(fault)?;
    let reads = CommonsReads::deserialize(&value).map_err(fault)?;
    Ok((reads, value))
}

fn answer(socket: &Path) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TO_ANSWER))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
