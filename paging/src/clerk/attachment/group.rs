//! A separate control group for the programs that the kernel swaps through.
//!
//! In the control group that is short of memory, such a program would deadlock: the kernel would make it free
//! memory by swapping, and only the program itself can serve that swapping.

use super::failure::{AttachError, at};
use super::folder::gone;
use super::mounts;
use super::process::Process;
use super::timeout::wait_for;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of the group's memory that the kernel does not reclaim (cgroup version 2 only). They suffice for
/// the process that shows the export, which needs 6 MiB, and for a clerk's own buffers.
const LEFT_ALONE: &str = "67108864";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Hierarchy of the memory controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    /// Version 1: the controller's own hierarchy.
    Memory(PathBuf),
    /// Version 2: the common hierarchy of all controllers.
    Unified(PathBuf),
}

/// Makes the group of `name` directly below the root, where no other limit applies. Returns `None` if the
/// kernel has no memory controller, and so no limits.
pub(crate) fn make(name: &str, notes: &mut Vec<String>) -> Result<Option<PathBuf>, AttachError> {
    let Some(hierarchy) = hierarchy()? else {
        return Ok(None);
    };
    let (root, settings) = match &hierarchy {
        Hierarchy::Memory(root) => (root, &[("memory.swappiness", "0")][..]),
        Hierarchy::Unified(root) => {
            // The controller is usually enabled already. If it cannot be enabled, the settings below fail and
            // report that.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
            let settings = &[("memory.swap.max", "0"), ("memory.min", LEFT_ALONE)][..];
            (root, settings)
        }
    };
    let path = root.join(format!("gleaner-clerk-{name}"));
    match fs::create_dir(&path) {
        // An empty group left by a crash can be used.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && members(&path)?.is_empty() => {}
        made => made.map_err(at(&path))?,
    }
    for (key, value) in settings {
        if let Err(e) = fs::write(path.join(key), value) {
            notes.push(format!("{}: {e}", path.join(key).display()));
        }
    }
    Ok(Some(path))
}

/// Returns the group's file to which a process writes `0` to join.
pub(crate) fn door(group: &Path) -> Result<File, AttachError> {
    let path = group.join("cgroup.procs");
    OpenOptions::new().write(true).open(&path).map_err(at(path))
}

/// Ends the group's processes, and removes the group.
pub(crate) fn remove(group: &Path) -> Result<(), AttachError> {
    for pid in members(group)? {
        if let Some(process) = Process::of("a process of the group", pid) {
            process.end()?;
        }
    }
    // The kernel takes a moment to notice that the processes have ended.
    wait_for("the control group's end", TIMEOUT, || {
        match gone(fs::remove_dir(group)) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Ok(None),
            removed => removed.map(Some).map_err(at(group)),
        }
    })
}

/// Ids of the group's processes; none if the group does not exist.
pub(crate) fn members(group: &Path) -> Result<Vec<u32>, AttachError> {
    let path = group.join("cgroup.procs");
    match fs::read_to_string(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        text => Ok(text
            .map_err(at(path))?
            .lines()
            .filter_map(|pid| pid.parse().ok())
            .collect()),
    }
}

/// Hierarchy with the memory controller, if the kernel has one.
pub(crate) fn hierarchy() -> Result<Option<Hierarchy>, AttachError> {
    Ok(among(&mounts::table()?))
}

fn among(mounts: &[mounts::Mount]) -> Option<Hierarchy> {
    let has = |mount: &mounts::Mount| mount.options.iter().any(|option| option == "memory");
    let of_its_own = mounts
        .iter()
        .find(|mount| mount.kind == "cgroup" && has(mount));
    if let Some(mount) = of_its_own {
        return Some(Hierarchy::Memory(mount.point.clone()));
    }
    let unified = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
    let controllers = fs::read_to_string(unified.point.join("cgroup.controllers")).ok()?;
    let has_memory = controllers.split_whitespace().any(|name| name == "memory");
    has_memory.then(|| Hierarchy::Unified(unified.point.clone()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn mount(kind: &str, point: &Path, options: &str) -> mounts::Mount {
        mounts::Mount {
            device: (0, 30),
            point: point.to_owned(),
            kind: kind.to_owned(),
            source: kind.into(),
            options: options.split(',').map(str::to_owned).collect(),
        }
    }

    #[test]
    fn the_memory_controller_is_found_in_both_versions_and_in_a_mix() {
        let folder = tempfile::tempdir().unwrap();
        let controllers = folder.path().join("cgroup.controllers");
        fs::write(&controllers, "cpuset cpu memory pids\n").unwrap();
        let unified = mount("cgroup2", folder.path(), "rw");
        let cpu = mount("cgroup", Path::new("/cpu"), "rw,cpu");
        let memory = mount("cgroup", Path::new("/memory"), "rw,memory");
        let found = among(&[unified.clone(), cpu.clone(), memory]);
        assert_eq!(found, Some(Hierarchy::Memory("/memory".into())));
        let found = among(&[cpu.clone(), unified.clone()]);
        assert_eq!(found, Some(Hierarchy::Unified(folder.path().to_owned())));
        fs::write(&controllers, "cpu pids\n").unwrap();
        assert_eq!(among(&[cpu, unified]), None);
    }
}
