//! Namespaces and what lies in them, by iproute2 and iptables.

use super::address::{BRIDGE, INTERFACE, LAB, Node, PREFIX_LENGTH, is_of_a_lab};
use super::error::{LabError, Result, file};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folder of the names of `ip netns`.
const NAMES: &str = "/run/netns";
/// Files here lie over those in /etc for what `ip netns exec` starts.
const OVER_ETC: &str = "/etc/netns";

/// `ip` for what lies in `namespace`.
pub(super) fn ip(namespace: &str, args: &[&str]) -> Command {
    command("ip", &[&["-n", namespace], args].concat())
}

/// `tc` for what lies in `namespace`.
pub(super) fn tc(namespace: &str, args: &[&str]) -> Command {
    command("tc", &[&["-n", namespace], args].concat())
}

/// `iptables` in `namespace`.
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

/// Returns true if a program is installed in a usual folder.
pub(super) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Runs a command; whether it succeeded. What it says is of no interest.
pub(super) fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs a command that must succeed.
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

/// Makes the bridge, alone in its namespace.
pub(super) fn make_bridge() -> Result<()> {
    must(command("ip", &["netns", "add", LAB]))?;
    must(ip(LAB, &["link", "add", BRIDGE, "type", "bridge"]))?;
    must(ip(LAB, &["link", "set", BRIDGE, "up"]))
}

/// Makes a node: a namespace with an interface whose other end is a port of the bridge.
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

/// Gives what runs in `namespace` a machine id of its own.
pub(super) fn give_machine_id(namespace: &str, machine_id: &str) -> Result<()> {
    let folder = Path::new(OVER_ETC).join(namespace);
    let path = folder.join("machine-id");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, format!("{machine_id}\n")))
        .map_err(file("write", &path))
}

/// Namespaces of a lab that are there, whoever made them.
pub(super) fn namespaces() -> Vec<String> {
    names_in(Path::new(NAMES))
}

/// The file that stands for a namespace.
pub(super) fn handle(namespace: &str) -> PathBuf {
    Path::new(NAMES).join(namespace)
}

/// Processes in a namespace.
pub(super) fn processes_in(namespace: &str) -> Vec<u32> {
    let output = command("ip", &["netns", "pids", namespace]).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    text.unwrap_or_default()
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

/// Removes a namespace, and with it every interface, address, queue and rule inside.
pub(super) fn remove_namespace(namespace: &str) -> Result<()> {
    must(command("ip", &["netns", "delete", namespace]))
}

/// Removes what lies over /etc for namespaces of a lab, and the folder of it when it is empty then.
pub(super) fn remove_machine_ids() -> Result<()> {
    let folder = Path::new(OVER_ETC);
    for name in names_in(folder) {
        let path = folder.join(name);
        std::fs::remove_dir_all(&path).map_err(file("remove", &path))?;
    }
    let _ = std::fs::remove_dir(folder); // not empty: somebody else's
    Ok(())
}

/// Files that a lab has left over /etc.
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
