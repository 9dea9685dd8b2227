//! Users and their file permissions, from owner, group and mode (path_resolution(7)). Access control lists
//! are ignored.

use gleaner_daemon::accounts::{Account, group_file, groups};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A user who runs a daemon, or the doctor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Ids of the supplementary groups.
    pub(super) groups: Vec<u32>,
}

/// Returns the number of the group with this name, from /etc/group.
#[must_use]
pub fn group_id(name: &str) -> Option<u32> {
    let text = group_file();
    groups(&text)
        .find(|group| group.0 == name)
        .map(|group| group.1)
}

impl User {
    /// User who runs this program.
    pub(super) fn me() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let groups = rustix::process::getgroups().unwrap_or_default();
        let known = Self::of(uid);
        Self {
            gid: rustix::process::getegid().as_raw(),
            groups: groups.into_iter().map(|gid| gid.as_raw()).collect(),
            ..known
        }
    }

    /// User with this number. If /etc/passwd has no entry for the number, the number is also the name.
    pub(super) fn of(uid: u32) -> Self {
        let unknown = || Self {
            name: uid.to_string(),
            uid,
            ..Self::default()
        };
        Self::found(|_, of_user| of_user == uid).unwrap_or_else(unknown)
    }

    /// User with this name, from /etc/passwd.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::found(|of_user, _| of_user == name)
    }

    /// The same user with more groups, each given by name or number.
    pub(super) fn with_groups(mut self, names: &[String]) -> Self {
        let text = group_file();
        for name in names {
            let named = groups(&text)
                .find(|group| group.0 == name)
                .map(|group| group.1);
            self.groups.extend(named.or_else(|| name.parse().ok()));
        }
        self
    }

    fn found(is_wanted: impl Fn(&str, u32) -> bool) -> Option<Self> {
        let account = Account::find(is_wanted)?;
        Some(Self {
            name: account.name,
            uid: account.uid,
            gid: account.gid,
            groups: account.groups,
        })
    }

    /// Returns true if there is a group of this name and the user is a member.
    pub(super) fn shares_a_group(&self, name: &str) -> bool {
        let text = group_file();
        let mut named = groups(&text).filter(|group| group.0 == name);
        named.any(|group| group.1 == self.gid || self.groups.contains(&group.1))
    }

    pub(super) const fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// Kind of access to a file, as a bit of its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileUse {
    Read = 4,
    Write = 2,
    Enter = 1,
}

/// Owner and mode of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u32,
    pub(super) is_folder: bool,
}

impl Node {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let file = fs::metadata(path)?;
        Ok(Self {
            uid: file.uid(),
            gid: file.gid(),
            mode: file.mode() & 0o7777,
            is_folder: file.is_dir(),
        })
    }

    /// Returns true if the mode allows `user` this access. Root may do everything, except execute a file that
    /// nobody may execute.
    pub(super) fn lets(self, user: &User, want: FileUse) -> bool {
        let shift = match () {
            () if user.is_root() => return true,
            () if user.uid == self.uid => 6,
            () if user.gid == self.gid || user.groups.contains(&self.gid) => 3,
            () => 0,
        };
        self.mode >> shift & want as u32 != 0
    }
}

/// Result of a check of access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Yes,
    /// The file, or a folder above it, does not exist.
    Missing,
    /// This file or folder, with its owner and mode, denies access.
    No(PathBuf, Node),
    /// The file system is mounted read-only.
    ReadOnly,
    /// The doctor may not look into this folder.
    Unseen(PathBuf),
}

/// Checks whether `user` may use `path` in these ways, and may enter all folders above it.
pub(super) fn access(user: &User, path: &Path, wants: &[FileUse]) -> Access {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let entered = above.into_iter().filter(|folder| *folder != Path::new(""));
    let asked = entered.map(|folder| (folder, FileUse::Enter));
    let asked = asked.chain(wants.iter().map(|want| (path, *want)));
    for (path, want) in asked {
        match Node::of(path) {
            Ok(node) if !node.lets(user, want) => return Access::No(path.to_owned(), node),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                return Access::Unseen(path.to_owned());
            }
            Err(_) => return Access::Missing,
        }
    }
    let flags = rustix::fs::statvfs(path).map(|disk| disk.f_flag);
    let is_read_only = flags.is_ok_and(|f| f.contains(rustix::fs::StatVfsMountFlags::RDONLY));
    match is_read_only && wants.contains(&FileUse::Write) {
        true => Access::ReadOnly,
        false => Access::Yes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_let_the_owner_the_group_and_the_others() {
        let user = |uid, gid, groups: &[u32]| User {
            name: String::new(),
            uid,
            gid,
            groups: groups.to_vec(),
        };
        let node = |mode| Node {
            uid: 10,
            gid: 20,
            mode,
            is_folder: false,
        };
        for (mode, who, read, write) in [
            (0o640, user(10, 1, &[]), true, true),
            (0o640, user(11, 20, &[]), true, false),
            (0o640, user(11, 1, &[3, 20]), true, false),
            (0o640, user(11, 1, &[]), false, false),
            (0o640, user(0, 0, &[]), true, true),
            (0o046, user(10, 20, &[]), false, false), // only the owner's bits count for the owner
            (0o046, user(11, 20, &[]), true, false),
            (0o046, user(11, 1, &[]), true, true),
        ] {
            assert_eq!(
                node(mode).lets(&who, FileUse::Read),
                read,
                "{mode:o} {who:?}"
            );
            assert_eq!(
                node(mode).lets(&who, FileUse::Write),
                write,
                "{mode:o} {who:?}"
            );
        }
    }

    #[test]
    fn all_folders_above_must_be_entered() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("closed/open");
        fs::create_dir_all(&below).unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap()
        };
        set(folder.path(), 0o755);
        set(&folder.path().join("closed"), 0o700);
        set(&below, 0o777);
        let stranger = User {
            name: "stranger".to_owned(),
            uid: 54_321,
            gid: 54_321,
            groups: Vec::new(),
        };
        let found = access(&stranger, &below, &[FileUse::Write]);
        assert!(
            matches!(&found, Access::No(path, _) if path.ends_with("closed")),
            "{found:?}"
        );
        set(&folder.path().join("closed"), 0o711);
        assert_eq!(
            access(
                &stranger,
                &below,
                &[FileUse::Read, FileUse::Write, FileUse::Enter]
            ),
            Access::Yes
        );
        assert_eq!(
            access(&stranger, &below.join("no"), &[FileUse::Read]),
            Access::Missing
        );
    }
}
