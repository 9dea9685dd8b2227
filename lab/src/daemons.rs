//! The daemons of a lab: on which node each runs, and how it is started.

use super::address::Node;
use super::collector;
use super::error::{LabError, Result, file};
use super::process::Process;
use super::state::{StartedDaemon, State};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A daemon. Its command is `PROGRAM ARGS --config FOLDER/CONFIG`; it runs in the namespace and folder of its node.
pub(super) struct Daemon {
    pub(super) name: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    config: &'static str,
    /// File in the node's folder that must exist before the daemon is started.
    after: Option<&'static str>,
}

/// The collector's daemon, on its own node.
pub(super) const COLLECTOR: Daemon = Daemon {
    name: "collector",
    program: "gleaner-collector",
    args: &["run"],
    config: "collector.toml",
    after: None,
};

/// The recruiter's daemon, also on the collector's node.
pub(super) const RECRUITER: Daemon = Daemon {
    name: "recruiter",
    program: "gleaner-recruiter",
    args: &["run"],
    config: "recruiter.toml",
    after: None,
};

/// The clerk's daemon, on its own node.
pub(super) const CLERK: Daemon = Daemon {
    name: "clerk",
    program: "gleaner-clerk",
    args: &["run"],
    config: "clerk.toml",
    after: None,
};

/// The daemon of each host's commons.
pub(super) const COMMONS: Daemon = Daemon {
    name: "commons",
    program: "gleaner-commons",
    args: &["run"],
    config: "commons.toml",
    after: None,
};

/// Daemons of every host, in the order in which they start. A new daemon is one more entry here.
pub(super) const OF_A_HOST: [Daemon; 3] = [
    Daemon {
        name: "run",
        program: "gleaner-agent",
        args: &["run"],
        config: "agent.toml",
        after: None,
    },
    Daemon {
        name: "ship",
        program: "gleaner-agent",
        args: &["ship"],
        config: "agent.toml",
        after: Some("trace.db"),
    },
    Daemon {
        name: "memoryd",
        program: "gleaner-memoryd",
        args: &["run"],
        config: "memoryd.toml",
        after: Some("agent.sock"),
    },
];

/// Maximum wait for the file that a daemon needs: long, for many hosts on a small machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a daemon on its node, and records its process in the lab's state.
pub(super) fn start(state: &mut State, node: &Node, daemon: &Daemon) -> Result<()> {
    let folder = state.folder_of(&node.namespace);
    if let Some(file) = daemon.after {
        let path = folder.join(file);
        let begun = Instant::now();
        while !path.exists() {
            if begun.elapsed() > PATIENCE {
                return Err(LabError::Late {
                    path,
                    logs: Some(folder),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let log = folder.join(format!("{}.log", daemon.name));
    let create = || -> io::Result<(File, File)> {
        let output = File::create(&log)?;
        Ok((output.try_clone()?, output))
    };
    let (output, errors) = create().map_err(file("create", &log))?;
    let child = on_node(node, daemon.program)?
        .args(daemon.args)
        .arg("--config")
        .arg(folder.join(daemon.config))
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0) // Ctrl-C here does not reach it
        .spawn()
        .map_err(|source| LabError::Start {
            command: format!("{} in {}", daemon.program, node.namespace),
            source,
        })?;
    if let Some(process) = Process::find(child.id()) {
        state.started.push(StartedDaemon {
            namespace: node.namespace.clone(),
            daemon: daemon.name.to_owned(),
            process,
        });
        state.save()?;
    }
    Ok(())
}

/// Enrols a host in the same way as its administrator would.
pub(super) fn enrol(state: &State, node: &Node, token: &str) -> Result<()> {
    let agent = &OF_A_HOST[0];
    let folder = state.folder_of(&node.namespace);
    let mut command = on_node(node, agent.program)?;
    command.args(["enroll", &collector::url(), token, "--config"]);
    command.arg(folder.join(agent.config)).current_dir(&folder);
    let output = command.output().map_err(|source| LabError::Start {
        command: "ip".to_owned(),
        source,
    })?;
    if !output.status.success() {
        return Err(LabError::Enrolment {
            host: node.namespace.clone(),
            output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(())
}

/// Command that runs one of our programs on a node: in the node's network namespace, with its machine id and host name.
///
/// `ip netns exec` mounts /etc/netns/NAMESPACE over /etc. Each program in the command line replaces itself
/// with the next: the last one has the process id of the command that is started here.
/// next, so that the last keeps the process id of the command started here.
fn on_node(node: &Node, name: &str) -> Result<Command> {
    let mut command = Command::new("ip");
    command
        .args([
            "netns",
            "exec",
            &node.namespace,
            "unshare",
            "--uts",
            "--",
            "sh",
            "-c",
        ])
        .arg("echo \"$0\" > /proc/sys/kernel/hostname && exec \"$@\"")
        .arg(&node.namespace)
        .arg(program(name)?)
        .stdin(Stdio::null());
    Ok(command)
}

/// Fails if a daemon of the lab has ended; the error has the last line of the daemon's log.
pub(super) fn check(state: &State) -> Result<()> {
    let mut ended = state.started.iter().filter(|s| !s.process.runs());
    if let Some(started) = ended.next() {
        let log = state
            .folder_of(&started.namespace)
            .join(format!("{}.log", started.daemon));
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        return Err(LabError::Ended {
            daemon: started.daemon.clone(),
            namespace: started.namespace.clone(),
            last: said.trim().lines().last().unwrap_or("nothing").to_owned(),
        });
    }
    Ok(())
}

/// Path of one of our programs; all are installed in the folder of the running one.
pub(super) fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|source| LabError::Own { source })?;
    let path = own.with_file_name(name);
    match path.exists() {
        true => Ok(path),
        false => Err(LabError::NoProgram { path }),
    }
}
