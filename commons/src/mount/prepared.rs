//! Mounts that the service makes with privileges and serves without them. Until a session serves a mount, its
//! readers wait.

use super::remover::Remover;
use super::{MountError, check_mount_point, kernel};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A mount that no session serves yet. The [`Remover`] unmounts it.
pub struct PreparedMount {
    pub(super) point: PathBuf,
    /// Connection to the kernel.
    pub(super) device: OwnedFd,
    /// Setting of the kernel's readahead, opened while that was permitted.
    pub(super) readahead: io::Result<File>,
}

/// Users of prepared mounts.
#[derive(Clone, Copy, Debug)]
pub struct MountUsers {
    /// User and group that will serve the mounts.
    pub owner: (u32, u32),
    /// True if all users may use the mounts, within the files' permissions.
    pub allows_others: bool,
}

/// Mounts at all these folders. `used` are files and folders that the service opens later: none may lie in a
/// mount, because the service would wait for itself.
///
/// # Errors
/// [`MountError`]; what was mounted is unmounted when `remover` is dropped.
pub fn prepare(
    folders: &[&Path],
    used: &[&Path],
    users: MountUsers,
    remover: &mut Remover,
) -> Result<Vec<PreparedMount>, MountError> {
    let mut points = Vec::new();
    for folder in folders {
        clear(folder)?;
        points.push(
            fs::canonicalize(folder).map_err(|source| MountError::Point {
                point: (*folder).to_owned(),
                source,
            })?,
        );
    }
    check_covers(&points, used)?;
    let prepared = points.into_iter().map(|point| one(point, users, remover));
    prepared.collect()
}

/// Checks a mount point, and unmounts what a killed service left there.
fn clear(point: &Path) -> Result<(), MountError> {
    match check_mount_point(point) {
        Err(MountError::Stale { .. }) => {
            kernel::detach(point).map_err(|source| MountError::Unmount {
                point: point.to_owned(),
                source,
            })?;
            let point = point.display();
            eprintln!("gleaner-commons: unmounted {point}, whose process had ended");
        }
        checked => return checked,
    }
    check_mount_point(point)
}

fn check_covers(points: &[PathBuf], used: &[&Path]) -> Result<(), MountError> {
    for (number, point) in points.iter().enumerate() {
        let others = points.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != number);
        let inner = others.find(|(_, other)| other.starts_with(point));
        let inner = inner.map(|(_, other)| other.as_path());
        let is_covered = |path: &&&Path| {
            let canonical = fs::canonicalize(path);
            path.starts_with(point) || canonical.is_ok_and(|path| path.starts_with(point))
        };
        if let Some(path) = inner.or_else(|| used.iter().find(is_covered).copied()) {
            return Err(MountError::Covered {
                path: path.to_owned(),
                point: point.clone(),
            });
        }
    }
    Ok(())
}

fn one(
    point: PathBuf,
    users: MountUsers,
    remover: &mut Remover,
) -> Result<PreparedMount, MountError> {
    let failed = |source| MountError::Mount {
        point: point.clone(),
        source,
    };
    let mounted = kernel::mount(&point, users.owner, users.allows_others);
    let device = mounted.map_err(failed)?;
    let number = kernel::device(&point).map_err(failed)?;
    remover.add(number, &point).map_err(failed)?;
    let readahead = kernel::readahead(number);
    Ok(PreparedMount {
        point,
        device,
        readahead,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mount_would_cover_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        let at = |name: &str| folder.join(name);
        for name in ["a/b", "ab", "source"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        let covered = |points: &[&str], used: &str| {
            let points: Vec<_> = points.iter().map(|name| at(name)).collect();
            match check_covers(&points, &[at(used).as_path()]) {
                Err(MountError::Covered { path, point }) => Some((path, point)),
                _ => None,
            }
        };
        assert_eq!(covered(&["a", "ab"], "source"), None);
        let missing = Some((at("a/none"), at("a")));
        assert_eq!(covered(&["a", "ab"], "a/none"), missing);
        assert_eq!(covered(&["a"], "a/b"), Some((at("a/b"), at("a"))));
        assert_eq!(
            covered(&["source"], "source"),
            Some((at("source"), at("source")))
        );
        assert_eq!(covered(&["a/b", "a"], "source"), Some((at("a/b"), at("a"))));
        assert_eq!(covered(&["a", "a"], "source"), Some((at("a"), at("a"))));
    }
}
