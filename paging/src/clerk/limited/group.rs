//! The control group of one program: its limit, its figures, its end.
//!
//! The group's folder is locked while its supervisor or its remover lives. The folder of a group that nobody has
//! locked is therefore left over from a crash, whichever PID namespace made it.

use super::areas;
use super::decision::{Look, MOST_RAISED_BYTES, STEP_BYTES};
use super::failure::LimitError;
use crate::attachment::failure::{AttachError, at};
use crate::attachment::group::members;
use crate::attachment::timeout::wait_for;
use gleaner_trust::{hex, random};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Start of the names of groups; random hexadecimal digits follow.
const PREFIX: &str = "gleaner-run-";
/// Number of names tried. A new group is lost if another start takes it for a left one before it is locked.
const TRIES: usize = 8;
/// Time limit of ending the programs. A program that waits for a missing server ends when its request fails.
const TO_END: Duration = Duration::from_secs(60);
const MEMINFO: &str = "/proc/meminfo";
const OOM_CONTROL: &str = "memory.oom_control";

/// Version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Version 1: a limit, and programs that wait at it.
    Limit,
    /// Version 2: the kernel slows programs above `memory.high` down and frees their memory; it ends none there.
    High,
}

/// Control group of one program.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    lock: File,
    version: Version,
}

impl Group {
    /// Makes a group below `parent` with `local_bytes` of memory, after removing groups left by crashes.
    pub(super) fn make(parent: &Path, local_bytes: u64) -> Result<Self, LimitError> {
        remove_left(parent)?;
        let (path, lock) = make_locked(parent)?;
        let version = if path.join("memory.limit_in_bytes").exists() {
            Version::Limit
        } else {
            Version::High
        };
        let group = Self {
            path,
            lock,
            version,
        };
        group.set_up(parent, local_bytes).inspect_err(|_| {
            let _ = fs::remove_dir(&group.path);
        })?;
        Ok(group)
    }

    fn set_up(&self, parent: &Path, local_bytes: u64) -> Result<(), LimitError> {
        match self.version {
            Version::Limit => {
                // The kernel never swaps for a group whose swappiness is 0.
                let swappiness = self.number("memory.swappiness");
                if swappiness == Some(0) {
                    self.write("memory.swappiness", "60")?;
                }
                self.set_limit(local_bytes)?;
                self.write(OOM_CONTROL, "1")?;
            }
            Version::High => {
                if !self.path.join("memory.high").exists() {
                    return Err(LimitError::NoGroup(parent.to_owned()));
                }
                self.write("memory.high", &local_bytes.to_string())?;
                let most = local_bytes.saturating_add(MOST_RAISED_BYTES);
                self.write("memory.max", &most.to_string())?;
            }
        }
        Ok(())
    }

    /// Folder of the group.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Open folder, whose lock shows that the group is in use.
    pub(super) fn lock(&self) -> &File {
        &self.lock
    }

    /// Version of the group's settings.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Sets the limit of version 1.
    pub(super) fn set_limit(&self, bytes: u64) -> Result<(), AttachError> {
        self.write("memory.limit_in_bytes", &bytes.to_string())
    }

    /// Lets the kernel end programs at `local_bytes`.
    pub(super) fn allow_kills(&self, local_bytes: u64) -> Result<(), AttachError> {
        match self.version {
            Version::Limit => self.write(OOM_CONTROL, "0"),
            Version::High => {
                self.write("memory.high", "max")?;
                self.write("memory.max", &local_bytes.to_string())
            }
        }
    }

    /// Reads the state of the group and of swap.
    pub(super) fn look(&self, local_bytes: u64) -> Result<Look, AttachError> {
        let is_short = match self.version {
            Version::Limit => value(&self.read(OOM_CONTROL)?, "under_oom") == Some(1),
            Version::High => {
                let used_bytes = self.number("memory.current").unwrap_or(0);
                used_bytes > local_bytes.saturating_add(STEP_BYTES)
            }
        };
        let meminfo = fs::read_to_string(MEMINFO).map_err(at(MEMINFO))?;
        Ok(Look {
            is_short,
            free_swap_bytes: areas::free_bytes(&meminfo),
        })
    }

    /// Bytes of the group in swap now.
    pub(super) fn swap_bytes(&self) -> Option<u64> {
        match self.version {
            Version::Limit => value(&self.read("memory.stat").ok()?, "total_swap"),
            Version::High => self.number("memory.swap.current"),
        }
    }

    /// Largest number of bytes in memory so far; version 2 since Linux 5.19.
    pub(super) fn peak_local_bytes(&self) -> Option<u64> {
        self.number(match self.version {
            Version::Limit => "memory.max_usage_in_bytes",
            Version::High => "memory.peak",
        })
    }

    /// Page faults that waited for a device.
    pub(super) fn major_faults(&self) -> Option<u64> {
        let stat = self.read("memory.stat").ok()?;
        value(
            &stat,
            match self.version {
                Version::Limit => "total_pgmajfault",
                Version::High => "pgmajfault",
            },
        )
    }

    /// Number of processes that the kernel ended for lack of memory.
    pub(super) fn kills(&self) -> Option<u64> {
        let file = match self.version {
            Version::Limit => OOM_CONTROL,
            Version::High => "memory.events",
        };
        value(&self.read(file).ok()?, "oom_kill")
    }

    fn number(&self, file: &str) -> Option<u64> {
        self.read(file).ok()?.trim().parse().ok()
    }

    fn read(&self, file: &str) -> Result<String, AttachError> {
        let path = self.path.join(file);
        fs::read_to_string(&path).map_err(at(path))
    }

    fn write(&self, file: &str, value: &str) -> Result<(), AttachError> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(at(path))
    }
}

/// Value after a key, in a file with a key and a number in each line.
fn value(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
}

fn make_locked(parent: &Path) -> Result<(PathBuf, File), LimitError> {
    for _ in 0..TRIES {
        let digits = random::bytes::<4>().map_err(io::Error::other);
        let digits = digits.map_err(LimitError::Supervise)?;
        let path = parent.join(format!("{PREFIX}{}", hex::encode(&digits)));
        fs::create_dir(&path).map_err(at(&path))?;
        if let Some(lock) = locked(&path)
            && path.exists()
        {
            return Ok((path, lock));
        }
    }
    let busy = io::Error::from(io::ErrorKind::ResourceBusy);
    Err(at(parent)(busy).into())
}

/// Locks a group's folder; `None` if another process has locked or removed it.
fn locked(path: &Path) -> Option<File> {
    let folder = File::open(path).ok()?;
    let free = flock(&folder, FlockOperation::NonBlockingLockExclusive);
    free.is_ok().then_some(folder)
}

/// Removes the groups below `parent` whose supervisors have ended without removing them.
fn remove_left(parent: &Path) -> Result<(), AttachError> {
    for entry in fs::read_dir(parent).map_err(at(parent))?.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && let Some(_lock) = locked(&entry.path()) {
            // Another user's group cannot be removed, and is none of this start's business.
            let _ = remove(&entry.path());
        }
    }
    Ok(())
}

/// Kills all processes of a group, and removes the group with the groups inside it.
pub(super) fn remove(group: &Path) -> Result<(), AttachError> {
    wait_for(
        "the end of the programs of the control group",
        TO_END,
        || {
            kill(group)?;
            for entry in fs::read_dir(group).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    remove(&entry.path())?;
                }
            }
            match fs::remove_dir(group) {
                Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Ok(None),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Some(())),
                removed => removed.map(Some).map_err(at(group)),
            }
        },
    )
}

fn kill(group: &Path) -> Result<(), AttachError> {
    // Version 2 since Linux 5.14: the kernel ends all processes at once, also those being forked.
    if group.join("cgroup.kill").exists() && fs::write(group.join("cgroup.kill"), "1").is_ok() {
        return Ok(());
    }
    for pid in members(group)? {
        let handle = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let handle = handle.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // The second look makes sure that the id still belonged to the group after the handle was opened.
        if let Some(handle) = handle
            && members(group)?.contains(&pid)
        {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, Group) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let version = if files.iter().any(|(name, _)| *name == "memory.high") {
            Version::High
        } else {
            Version::Limit
        };
        let group = Group {
            path: folder.path().to_owned(),
            lock: File::open(folder.path()).unwrap(),
            version,
        };
        (folder, group)
    }

    #[test]
    fn version_1_waits_at_the_limit_and_reports_shortage() {
        let (_folder, group) = made(&[
            ("memory.swappiness", "0\n"),
            (OOM_CONTROL, "oom_kill_disable 1\nunder_oom 1\noom_kill 3\n"),
            (
                "memory.stat",
                "swap 1\npgmajfault 2\ntotal_swap 8192\ntotal_pgmajfault 7\n",
            ),
            ("memory.max_usage_in_bytes", "4096\n"),
        ]);
        assert!(group.look(1 << 20).unwrap().is_short);
        assert_eq!(group.kills(), Some(3));
        assert_eq!(group.swap_bytes(), Some(8192));
        assert_eq!(group.major_faults(), Some(7));
        assert_eq!(group.peak_local_bytes(), Some(4096));
        group.set_up(Path::new("/"), 1 << 20).unwrap();
        assert_eq!(group.read("memory.swappiness").unwrap(), "60");
        assert_eq!(group.read("memory.limit_in_bytes").unwrap(), "1048576");
        assert_eq!(group.read(OOM_CONTROL).unwrap(), "1");
        group.allow_kills(1 << 20).unwrap();
        assert_eq!(group.read(OOM_CONTROL).unwrap(), "0");
    }

    #[test]
    fn version_2_is_slowed_down_at_the_limit_and_ended_far_above_it() {
        let (_folder, group) = made(&[
            ("memory.high", "max\n"),
            ("memory.current", "3145729\n"),
            ("memory.events", "low 0\nhigh 5\nmax 0\noom 1\noom_kill 2\n"),
            ("memory.stat", "anon 1\npgmajfault 9\n"),
            ("memory.swap.current", "12288\n"),
        ]);
        assert!(group.look(2 << 20).unwrap().is_short);
        assert!(!group.look(3 << 20).unwrap().is_short);
        assert_eq!(group.kills(), Some(2));
        assert_eq!(group.swap_bytes(), Some(12288));
        assert_eq!(group.major_faults(), Some(9));
        // A kernel before 5.19 has no peak: it is absent, not 0.
        assert_eq!(group.peak_local_bytes(), None);
        group.set_up(Path::new("/"), 2 << 20).unwrap();
        assert_eq!(group.read("memory.high").unwrap(), "2097152");
        assert_eq!(group.read("memory.max").unwrap(), "69206016");
        group.allow_kills(2 << 20).unwrap();
        assert_eq!(group.read("memory.high").unwrap(), "max");
        assert_eq!(group.read("memory.max").unwrap(), "2097152");
    }

    #[test]
    fn a_folder_without_a_memory_controller_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = Group::make(folder.path(), 1 << 20).unwrap_err();
        assert!(matches!(refused, LimitError::NoGroup(_)), "{refused}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_locked_group_is_no_left_one() {
        let folder = tempfile::tempdir().unwrap();
        let [held, left] = ["gleaner-run-1", "gleaner-run-2"].map(|name| folder.path().join(name));
        for path in [&held, &left, &folder.path().join("other")] {
            fs::create_dir(path).unwrap();
        }
        let lock = locked(&held).unwrap();
        remove_left(folder.path()).unwrap();
        assert!(held.exists() && !left.exists() && folder.path().join("other").exists());
        drop(lock);
        remove_left(folder.path()).unwrap();
        assert!(!held.exists());
    }
}
