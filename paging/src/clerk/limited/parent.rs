//! Choice of the control group in which a program's group is made.

use super::failure::LimitError;
use crate::attachment::failure::at;
use crate::attachment::group::{Hierarchy, hierarchy};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Group of this process within a delegated group of version 2: a group with settings for its children may have
/// no processes itself.
const SUPERVISOR: &str = "gleaner-supervisor";
const OWN: &str = "/proc/self/cgroup";

/// Returns the folder in which to make the program's group: `wanted`, or as root the hierarchy's root, or else
/// this process's own group if that is delegated to its user.
pub(super) fn parent(wanted: Option<&Path>) -> Result<PathBuf, LimitError> {
    let hierarchy = hierarchy()?.ok_or(LimitError::NoController)?;
    if let Some(wanted) = wanted {
        if let Hierarchy::Unified(_) = hierarchy {
            enable(wanted)?;
        }
        return Ok(wanted.to_owned());
    }
    let is_root = rustix::process::geteuid().is_root();
    match hierarchy {
        Hierarchy::Memory(root) if is_root => Ok(root),
        Hierarchy::Memory(root) => Err(LimitError::NeedsRoot(root.join("mine"))),
        Hierarchy::Unified(root) if is_root => {
            enable(&root)?;
            Ok(root)
        }
        Hierarchy::Unified(root) => {
            let text = fs::read_to_string(OWN).map_err(at(OWN))?;
            let own = own(&text).ok_or(LimitError::NoController)?;
            delegated(root.join(own))
        }
    }
}

/// Path of the process's group of version 2 below the hierarchy's root, from /proc/self/cgroup's text.
fn own(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(line.trim_start_matches('/'))
}

/// Moves this process out of its own group into one below, so that the group may have settings for its children.
fn delegated(own: PathBuf) -> Result<PathBuf, LimitError> {
    let supervisor = own.join(SUPERVISOR);
    let made = match fs::create_dir(&supervisor) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    };
    let moved = made.and_then(|()| fs::write(supervisor.join("cgroup.procs"), "0"));
    moved.map_err(|why| not_delegated(&supervisor, why))?;
    enable(&own)?;
    Ok(own)
}

/// Enables the memory controller for the groups below a group of version 2.
fn enable(group: &Path) -> Result<(), LimitError> {
    let path = group.join("cgroup.subtree_control");
    fs::write(&path, "+memory").map_err(|why| not_delegated(&path, why))
}

fn not_delegated(path: &Path, why: io::Error) -> LimitError {
    LimitError::NotDelegated {
        path: path.to_owned(),
        why,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_of_version_2_is_found_among_those_of_version_1() {
        let text = "4:memory:/a\n0::/user.slice/run-1.scope\n";
        assert_eq!(own(text), Some("user.slice/run-1.scope"));
        assert_eq!(own("0::/\n"), Some(""));
        assert_eq!(own("4:memory:/a\n"), None);
    }

    #[test]
    fn a_group_that_is_not_delegated_names_the_command_that_helps() {
        let said = delegated("/nowhere".into()).unwrap_err().to_string();
        assert!(said.contains("/nowhere/gleaner-supervisor"), "{said}");
        assert!(
            said.contains("systemd-run --user --scope -p Delegate=yes"),
            "{said}"
        );
    }

    #[test]
    fn a_delegated_group_has_this_process_below_and_the_controller_enabled() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().to_owned();
        assert_eq!(delegated(own.clone()).unwrap(), own);
        let read = |name: &str| fs::read_to_string(own.join(name)).unwrap();
        assert_eq!(read("gleaner-supervisor/cgroup.procs"), "0");
        assert_eq!(read("cgroup.subtree_control"), "+memory");
        // A second start in the same group finds the folder.
        delegated(own).unwrap();
    }
}
