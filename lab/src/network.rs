//! Creates, lists and removes network namespaces and their contents, through iproute2 and iptables.

use super::address::{BRIDGE, INTERFACE, LAB, Node, PREFIX_LENGTH, is_of_a_lab};
use super::error::{LabError, Result, file};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folder in which `ip netns` has a file for each namespace.
const NAMES: &str = "/run/netns";
/// Folder with files that `ip netns exec` mounts over those in /etc.
const OVER_ETC: &str = "/etc/netns";

/// Command that runs `ip` in `namespace`.
pub(super) fn ip(namespace: &str, args: &[&str]) -> Command {
    command("ip", &[&["-n", namespace], args].concat())
}

/// Command that runs `tc` in `namespace`.
pub(super) fn tc(namespace: &str, args: &[&str]) -> Command {
    command("tc", &[&["-n", namespace], args].concat())
}

/// Command that runs `iptables` in `namespace`.
pub(super) fn iptables(namespace: &str, args: &[&str]) -> Command {
    command(
        "ip",
        &[&["netns", "exec", namespace, "iptables"], args].concat(),
    )
}

fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    command
}

/// Returns true if a program is in one of the folders of PATH.
pub(super) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Runs a command, and returns true if it succeeded. Its output is discarded.
pub(super) fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs a command. If the command fails, returns an error.
pub(super) fn must(mut command: Command) -> Result<()> {
    let output = command.output().map_err(|source| LabError::Start {
        command: format!("{command:?}"),
        source,
    })?;
    if !output.status.success() {
        return Err(LabError::Command {
            command: format!("{command:?}"),
            output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(())
}

/// Creates the bridge, in a namespace of its own.
pub(super) fn make_bridge() -> Result<()> {
    must(command("ip", &["netns", "add", LAB]))?;
    must(ip(LAB, &["link", "add", BRIDGE, "type", "bridge"]))?;
    must(ip(LAB, &["link", "set", BRIDGE, "up"]))
}

/// Creates a node: a namespace, and in it an interface whose other end is a port of the bridge.
pub(super) fn make_node(node: &Node) -> Result<()> {
    let Node {
        namespace, port, ..
    } = node;
    let address = format!("{}/{PREFIX_LENGTH}", node.address);
    must(command("ip", &["netns", "add", namespace]))?;
    let pair = [
        "link", "add", port, "type", "veth", "peer", "name", INTERFACE, "netns", namespace,
    ];
    must(ip(LAB, &pair))?;
    must(ip(LAB, &["link", "set", port, "master", BRIDGE, "up"]))?;
    must(ip(namespace, &["addr", "add", &address, "dev", INTERFACE]))?;
    must(ip(namespace, &["link", "set", "lo", "up"]))?;
    must(ip(namespace, &["link", "set", INTERFACE, "up"]))
}

/// Gives the programs that run in `namespace` their own machine id.
pub(super) fn give_machine_id(namespace: &str, machine_id: &str) -> Result<()> {
    let folder = Path::new(OVER_ETC).join(namespace);
    let path = folder.join("machine-id");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, format!("{machine_id}\n")))
        .map_err(file("write", &path))
}

/// Names of the existing namespaces that have a lab's names, whoever created them.
pub(super) fn namespaces() -> Vec<String> {
    names_in(Path::new(NAMES))
}

/// Path of the file that represents a namespace.
pub(super) fn handle(namespace: &str) -> PathBuf {
    Path::new(NAMES).join(namespace)
}

/// Ids of the processes in a namespace.
pub(super) fn processes_in(namespace: &str) -> Vec<u32> {
    let output = command("ip", &["netns", "pids", namespace]).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    text.unwrap_or_default()
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

/// Removes a namespace, and with it every interface, address, queue and rule in it.
pub(super) fn remove_namespace(namespace: &str) -> Result<()> {
    must(command("ip", &["netns", "delete", namespace]))
}

/// Removes the files that are mounted over /etc in a lab's namespaces, and their folder if it is then empty.
pub(super) fn remove_machine_ids() -> Result<()> {
    let folder = Path::new(OVER_ETC);
    for name in names_in(folder) {
        let path = folder.join(name);
        std::fs::remove_dir_all(&path).map_err(file("remove", &path))?;
    }
    let _ = std::fs::remove_dir(folder); // fails if other files are in it
    Ok(())
}

/// Names of a lab's namespaces that have files to mount over /etc.
pub(super) fn machine_ids() -> Vec<String> {
    names_in(Path::new(OVER_ETC))
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_of_a_lab(name)).collect();
    names.sort_unstable();
    names
}
