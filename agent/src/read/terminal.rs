//! Terminals: the time when somebody last typed on one.
//!
//! Only terminals that control a process matter; a read from one sets its node's access time. The kernel
//! sets access times in steps of 8 seconds, so that typing speed is not revealed.

use rustix::fs::{AtFlags, CWD, FileType, makedev, statat};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Major numbers of pseudo-terminals (`Documentation/admin-guide/devices.txt`), 256 terminals each.
const PSEUDO_TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

/// Result of reading the terminals' access times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminals {
    /// Newest access, wall clock; `None` if no terminal was examined.
    pub newest_ms: Option<i64>,
    /// Number of terminals examined.
    pub count: usize,
    /// Number of terminals without a node here, such as those of another mount namespace.
    pub vanished: usize,
}

/// Returns true if this host has any terminals.
#[must_use]
pub fn exist(dev_root: &Path) -> bool {
    dev_root.join("pts").is_dir() || dev_root.join("tty").exists()
}

/// Examines the terminals with these (major, minor) numbers.
#[must_use]
pub fn last_access(
    dev_root: &Path,
    sys_root: &Path,
    terminals: &BTreeSet<(u32, u32)>,
) -> Terminals {
    let mut seen = Terminals::default();
    for &(major, minor) in terminals {
        let access_ms = node(dev_root, sys_root, major, minor)
            .and_then(|path| access_ms(&path, makedev(major, minor)));
        match access_ms {
            Some(time_ms) => {
                seen.count += 1;
                seen.newest_ms = seen.newest_ms.max(Some(time_ms));
            }
            None => seen.vanished += 1,
        }
    }
    seen
}

/// Existing nodes of these terminals, to be watched for reads.
#[must_use]
pub fn nodes(dev_root: &Path, sys_root: &Path, terminals: &BTreeSet<(u32, u32)>) -> Vec<PathBuf> {
    let here = |&(major, minor): &(u32, u32)| {
        let path = node(dev_root, sys_root, major, minor)?;
        access_ms(&path, makedev(major, minor))?;
        Some(path)
    };
    terminals.iter().filter_map(here).collect()
}

fn node(dev_root: &Path, sys_root: &Path, major: u32, minor: u32) -> Option<PathBuf> {
    if PSEUDO_TERMINALS.contains(&major) {
        let number = (major - PSEUDO_TERMINALS.start()) * 256 + minor;
        return Some(dev_root.join("pts").join(number.to_string()));
    }
    let file = sys_root.join(format!("dev/char/{major}:{minor}/uevent"));
    let uevent = std::fs::read_to_string(file).ok()?;
    let name = uevent
        .lines()
        .find_map(|line| line.strip_prefix("DEVNAME="))?;
    let is_plain = Path::new(name)
        .components()
        .all(|c| matches!(c, std::path::Component::Normal(_)));
    is_plain.then(|| dev_root.join(name))
}

fn access_ms(path: &Path, device: u64) -> Option<i64> {
    let stat = statat(CWD, path, AtFlags::empty()).ok()?;
    // A captured tree has plain files in place of nodes.
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
    if is_device && stat.st_rdev != device {
        return None;
    }
    let milliseconds = (stat.st_atime_nsec / 1_000_000) as i64;
    Some(
        stat.st_atime
            .saturating_mul(1000)
            .saturating_add(milliseconds),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_newest_access_of_the_controlling_terminals() {
        let root = tempfile::tempdir().unwrap();
        let (dev, sys) = (root.path().join("dev"), root.path().join("sys"));
        std::fs::create_dir_all(dev.join("pts")).unwrap();
        std::fs::create_dir_all(sys.join("dev/char/4:65")).unwrap();
        std::fs::write(
            sys.join("dev/char/4:65/uevent"),
            "MAJOR=4\nMINOR=65\nDEVNAME=ttyS1\n",
        )
        .unwrap();
        for (name, seconds) in [
            ("pts/3", 500),
            ("pts/260", 400),
            ("pts/9", 900),
            ("ttyS1", 600),
        ] {
            let file = File::create(dev.join(name)).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            file.set_times(FileTimes::new().set_accessed(time)).unwrap();
        }
        let seen = |terminals: &[(u32, u32)]| {
            let seen = last_access(&dev, &sys, &terminals.iter().copied().collect());
            (seen.newest_ms, seen.count, seen.vanished)
        };
        assert_eq!(seen(&[]), (None, 0, 0));
        assert_eq!(seen(&[(136, 3), (137, 4)]), (Some(500_000), 2, 0)); // pts/9 controls no process
        assert_eq!(seen(&[(136, 3), (4, 65), (4, 66)]), (Some(600_000), 2, 1));
        assert!(exist(&dev) && !exist(&sys));
        let here = nodes(
            &dev,
            &sys,
            &BTreeSet::from([(136, 3), (4, 65), (4, 66), (136, 8)]),
        );
        assert_eq!(here, [dev.join("ttyS1"), dev.join("pts/3")]);
    }
}
