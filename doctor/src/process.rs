//! Processes of daemons, and their privileges.

use super::daemon::Daemon;
use super::place::Place;
use std::fs;
use std::path::Path;

/// Numbers of the capabilities that daemons need (capabilities(7)).
pub(super) const IPC_LOCK: u32 = 14;
pub(super) const SYS_NICE: u32 = 23;
pub(super) const SYS_RESOURCE: u32 = 24;

/// If a daemon was started with one of these options, it does not belong to this host's installation, but to
/// a test, a lab or an experiment.
const ELSEWHERE: [&str; 6] = [
    "--config",
    "--database",
    "--socket",
    "--state-folder",
    "--data-folder",
    "--listen",
];

/// A running daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Id of the effective user.
    pub(super) uid: Option<u32>,
    /// Effective capabilities, one bit each.
    pub(super) capabilities: Option<u64>,
    /// Hard limits. The outer `None` means unknown, the inner one unlimited.
    pub(super) files_limit: Option<Option<u64>>,
    pub(super) locked_limit_bytes: Option<Option<u64>>,
    pub(super) priority_limit: Option<Option<u64>>,
}

impl Process {
    /// Returns true if the process has this capability; `None` if unknown.
    pub(super) fn may(&self, capability: u32) -> Option<bool> {
        self.capabilities.map(|bits| bits >> capability & 1 == 1)
    }

    fn read(folder: &Path, pid: u32) -> Self {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        Self::parse(pid, &text("status"), &text("limits"))
    }

    fn parse(pid: u32, status: &str, limits: &str) -> Self {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches(':').trim())
        };
        let limit = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
            match line.split_whitespace().nth(1)? {
                "unlimited" => Some(None),
                number => number.parse().ok().map(Some),
            }
        };
        Self {
            pid,
            uid: field("Uid").and_then(|uids| uids.split_whitespace().nth(1)?.parse().ok()),
            capabilities: field("CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok()),
            files_limit: limit("Max open files"),
            locked_limit_bytes: limit("Max locked memory"),
            priority_limit: limit("Max realtime priority"),
        }
    }
}

/// Finds the process of a daemon: the main process of its unit, or a process with its name and this
/// configuration.
pub(super) fn find(place: &Place, daemon: Daemon, main_pid: Option<u32>) -> Option<Process> {
    let folder = |pid: u32| place.proc_root.join(pid.to_string());
    if let Some(pid) = main_pid.filter(|pid| folder(*pid).exists()) {
        return Some(Process::read(&folder(pid), pid));
    }
    let wanted = place.configuration_of(daemon).display().to_string();
    let numbers = fs::read_dir(&place.proc_root).ok()?;
    let mut pids: Vec<u32> = numbers
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    let pid = pids.into_iter().find(|pid| {
        let name = fs::read_to_string(folder(*pid).join("comm")).unwrap_or_default();
        let arguments = fs::read(folder(*pid).join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        let arguments: Vec<&str> = arguments.split('\0').collect();
        let is_of_place = match place.is_usual() {
            true => !ELSEWHERE.iter().any(|option| arguments.contains(option)),
            false => arguments.contains(&wanted.as_str()),
        };
        is_daemon(daemon, name.trim(), &arguments)
            && is_of_place
            && !is_in_another_namespace(&place.proc_root, *pid)
    })?;
    Some(Process::read(&folder(pid), pid))
}

/// Returns true for a process in a container or in a lab's network: its process or network namespace differs
/// from the doctor's. Returns false if this user may not read the namespaces.
fn is_in_another_namespace(proc_root: &Path, pid: u32) -> bool {
    let namespace =
        |who: &str, kind: &str| fs::read_link(proc_root.join(who).join("ns").join(kind)).ok();
    ["pid", "net"].into_iter().any(|kind| {
        let (ours, theirs) = (namespace("self", kind), namespace(&pid.to_string(), kind));
        ours.is_some() && theirs.is_some() && ours != theirs
    })
}

/// Returns true if a process with this name and these arguments is the daemon. The kernel truncates names to
/// 15 bytes.
fn is_daemon(daemon: Daemon, name: &str, arguments: &[&str]) -> bool {
    let program = daemon.program();
    name == program.get(..15).unwrap_or(program) && arguments.contains(&daemon.command())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_capabilities_are_the_kernels() {
        let status = "Name:\tgleaner-memoryd\nUid:\t1\t994\t1\t1\nCapEff:\t0000000000804000\n";
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max locked memory         8388608              8388608              bytes     \n\
            Max open files            1024                 unlimited            files     \n\
            Max realtime priority     0                    1                    \n";
        let process = Process::parse(7, status, limits);
        assert_eq!(
            (
                process.uid,
                process.may(IPC_LOCK),
                process.may(SYS_NICE),
                process.may(21)
            ),
            (Some(994), Some(true), Some(true), Some(false))
        );
        assert_eq!(process.locked_limit_bytes, Some(Some(8 << 20)));
        assert_eq!(
            (process.files_limit, process.priority_limit),
            (Some(None), Some(Some(1)))
        );
        let torn = Process::parse(7, "Uid:\nCapEff:\tx", "Max open files");
        assert_eq!(
            torn,
            Process {
                pid: 7,
                ..Process::default()
            }
        );
    }

    #[test]
    fn daemons_are_known_by_name_and_command() {
        assert!(is_daemon(
            Daemon::Collector,
            "gleaner-collect",
            &["gleaner-collector", "run", ""]
        ));
        assert!(is_daemon(
            Daemon::Ship,
            "gleaner-agent",
            &["/usr/bin/gleaner-agent", "ship"]
        ));
        assert!(!is_daemon(
            Daemon::Agent,
            "gleaner-agent",
            &["gleaner-agent", "ship"]
        ));
        assert!(!is_daemon(
            Daemon::Memoryd,
            "gleaner-agent",
            &["gleaner-memoryd", "run"]
        ));
    }

    #[test]
    fn a_daemon_of_another_namespace_is_anothers() {
        let proc_root = tempfile::tempdir().unwrap();
        let namespaces = |who: &str, net: &str| {
            let folder = proc_root.path().join(who).join("ns");
            fs::create_dir_all(&folder).unwrap();
            std::os::unix::fs::symlink("pid:[1]", folder.join("pid")).unwrap();
            std::os::unix::fs::symlink(net, folder.join("net")).unwrap();
        };
        namespaces("self", "net:[2]");
        namespaces("7", "net:[3]");
        namespaces("8", "net:[2]");
        let anothers = [7, 8, 9].map(|pid| is_in_another_namespace(proc_root.path(), pid));
        assert_eq!(anothers, [true, false, false]); // this user may not read the namespaces of process 9
    }

    proptest::proptest! {
        #[test]
        fn no_process_is_too_strange(text in "(?s).{0,200}") {
            let _ = Process::parse(1, &text, &text);
            let _ = Process::parse(1, &format!("Uid:{text}\nCapEff:{text}"), &format!("Max open files{text}"));
            let _ = is_daemon(Daemon::Agent, &text, &[&text]);
        }
    }
}
