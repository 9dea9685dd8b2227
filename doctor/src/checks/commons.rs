//! Checks of the commons: FUSE, catalogs, and mounts that a daemon left behind.

use crate::command::within;
use crate::finding::Finding;
use crate::message::Message;
use crate::place::quoted;
use crate::user::{Access, FileUse, User, access};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for the answer of a mount, whose source may be slow.
const PATIENCE: Duration = Duration::from_secs(3);

/// A mount in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredMount {
    /// Path of the catalog, without the hash that pins it.
    pub(crate) catalog: PathBuf,
    /// Folder to mount at.
    pub(crate) folder: PathBuf,
}

/// State of the folder of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MountState {
    /// Folder that can be read, whether or not it is mounted.
    Readable,
    Missing,
    /// Mount whose daemon has ended.
    Dead,
    /// Folder that cannot be examined, with the reason.
    Unknown(String),
}

/// Returns the mounts of a configuration. Entries without catalog or folder are left out: `check-config` reports
/// them.
pub(crate) fn configured(table: &toml::Table) -> Vec<ConfiguredMount> {
    let entries = table.get("mounts").and_then(toml::Value::as_array);
    let mounts = entries.into_iter().flatten().filter_map(|entry| {
        let text = |key: &str| entry.get(key).and_then(toml::Value::as_str);
        let catalog = text("catalog")?;
        Some(ConfiguredMount {
            catalog: catalog
                .rsplit_once('#')
                .map_or(catalog, |(path, _)| path)
                .into(),
            folder: text("folder")?.into(),
        })
    });
    mounts.collect()
}

/// Judges whether this host has FUSE.
pub(crate) fn judge_fuse(has_fuse: bool) -> Finding {
    match has_fuse {
        true => Finding::ok("fuse", "/dev/fuse"),
        false => Finding::of(
            Message::NoFuse,
            "fuse",
            "this kernel has no FUSE (/dev/fuse)",
        )
        .remedy("sudo modprobe fuse"),
    }
}

/// Judges whether the daemon's user may read a catalog; `None` if the doctor may not look.
pub(crate) fn judge_catalog(user: &User, catalog: &Path) -> Option<Finding> {
    let shown = catalog.display();
    let of =
        |why: String| Finding::of(Message::CatalogUnread, "catalog", format!("{shown}: {why}"));
    match access(user, catalog, &[FileUse::Read]) {
        Access::Unseen(_) => None,
        Access::Missing => Some(of("there is none".to_owned())),
        Access::No(path, node) => {
            let denied = format!(
                "{} may not read {} (mode {:o})",
                user.name,
                path.display(),
                node.mode
            );
            let bits = if node.is_folder { "o+x" } else { "o+r" };
            Some(of(denied).remedy(format!("sudo chmod {bits} {}", quoted(&path))))
        }
        Access::Yes | Access::ReadOnly => Some(Finding::ok("catalog", shown.to_string())),
    }
}

/// Examines the folder of a mount.
pub(crate) fn read(folder: &Path) -> MountState {
    let path = folder.to_owned();
    match within(PATIENCE, move || fs::metadata(path)) {
        None => MountState::Unknown(format!("no answer within {} s", PATIENCE.as_secs())),
        Some(Ok(_)) => MountState::Readable,
        Some(Err(e)) => match e.kind() {
            ErrorKind::NotFound => MountState::Missing,
            ErrorKind::NotConnected => MountState::Dead,
            // Without `allow_other`, only the daemon's user may look at a mount.
            ErrorKind::PermissionDenied => MountState::Readable,
            _ => MountState::Unknown(e.to_string()),
        },
    }
}

/// Judges the folder of a mount; `start` is the command that restarts the daemon.
pub(crate) fn judge_mount(state: &MountState, folder: &Path, start: &str) -> Finding {
    let (shown, quoted) = (folder.display(), quoted(folder));
    match state {
        MountState::Readable => Finding::ok("mount", shown.to_string()),
        MountState::Missing => {
            let text = format!("{shown}: there is no such folder");
            Finding::of(Message::MountFails, "mount", text)
                .remedy(format!("sudo mkdir -p {quoted} && {start}"))
        }
        MountState::Dead => {
            let text = format!("{shown}: the process that served the mount has ended");
            Finding::of(Message::MountDead, "mount", text)
                .remedy(format!("sudo umount -l {quoted} && {start}"))
        }
        MountState::Unknown(why) => {
            Finding::of(Message::MountFails, "mount", format!("{shown}: {why}")).remedy(start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_from_the_configuration() {
        let table = "name = \"c\"\n[[mounts]]\ncatalog = \"/a.catalog#00\"\nfolder = \"/a\"\n\
            [[mounts]]\ncatalog = \"/b.catalog\"\nfolder = \"/b\"\n[[mounts]]\nfolder = \"/c\"";
        let mounts = configured(&table.parse().unwrap());
        let of = |catalog: &str, folder: &str| ConfiguredMount {
            catalog: catalog.into(),
            folder: folder.into(),
        };
        assert_eq!(mounts, [of("/a.catalog", "/a"), of("/b.catalog", "/b")]);
        assert_eq!(configured(&toml::Table::new()), []);
    }

    #[test]
    fn a_dead_mount_is_unmounted_before_the_daemon_starts() {
        let judged = |state: MountState| {
            let finding = judge_mount(&state, Path::new("/mnt/tools"), "start");
            (finding.message, finding.remedy)
        };
        assert_eq!(judged(MountState::Readable), (None, None));
        let umount = "sudo umount -l /mnt/tools && start".to_owned();
        assert_eq!(
            judged(MountState::Dead),
            (Some(Message::MountDead), Some(umount))
        );
        let missing = judged(MountState::Missing);
        assert_eq!(missing.0, Some(Message::MountFails));
        let slow = judged(MountState::Unknown("slow".to_owned()));
        assert_eq!(slow, (Some(Message::MountFails), Some("start".to_owned())));
    }

    #[test]
    fn folders_and_catalogs_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), MountState::Readable);
        assert_eq!(read(&folder.path().join("none")), MountState::Missing);
        let (me, catalog) = (User::me(), folder.path().join("tools.catalog"));
        let judged = || judge_catalog(&me, &catalog).unwrap().message;
        assert_eq!(judged(), Some(Message::CatalogUnread));
        fs::write(&catalog, "").unwrap();
        assert_eq!(judged(), None);
        assert_eq!(judge_fuse(true).message, None);
        assert_eq!(judge_fuse(false).message, Some(Message::NoFuse));
    }
}
