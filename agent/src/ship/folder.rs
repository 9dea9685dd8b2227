//! The folder that enrolment fills with everything that this host needs to reach its collector.

use crate::Error;
use gleaner_daemon::folders::chown_to_folder_owner;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Name of the file with the collector's address.
pub(crate) const COLLECTOR: &str = "collector.url";

/// Name of the file with key and request of an enrolment that is not answered yet.
pub(crate) const REQUEST: &str = "request.pem";

pub(crate) const SECRET: u32 = 0o600;
pub(crate) const PUBLIC: u32 = 0o644;

/// Mode bits of a folder whose contents the folder's group may read.
const GROUP_READS: u32 = 0o050;
/// Mode bit by which a file's group may read it.
const OF_GROUP: u32 = 0o040;

/// Creates the folder, accessible only to its owner, unless it exists.
///
/// # Errors
/// [`Error::Put`].
pub(crate) fn make(folder: &Path) -> Result<(), Error> {
    if folder.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let given = made.and_then(|()| chown_to_folder_owner(&File::open(folder)?, folder));
    given.map_err(Error::put(folder))
}

/// Writes a file atomically and durably: under another name first, then renamed.
///
/// The file gets the folder's owner, whichever user runs the command: an administrator enrols, the services
/// use the files. If the group may read the folder, it may read the file too: the memory server uses the
/// same certificate.
///
/// # Errors
/// [`Error::Put`].
pub(crate) fn put(path: &Path, content: &str, mode: u32) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let write = || -> io::Result<()> {
        let _ = std::fs::remove_file(&beside); // left by a killed process, perhaps with another mode
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside)?;
        share(&file, path, mode)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        path.parent()
            .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    write().map_err(Error::put(path))
}

fn share(file: &File, path: &Path, mode: u32) -> io::Result<()> {
    chown_to_folder_owner(file, path)?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = std::fs::metadata(folder.unwrap_or(Path::new(".")))?;
    if folder.mode() & GROUP_READS == GROUP_READS && folder.gid() == file.metadata()?.gid() {
        file.set_permissions(Permissions::from_mode(mode | OF_GROUP))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HOST;

    #[test]
    fn files_are_replaced_whole_and_keys_are_their_owners() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/ship");
        make(&folder).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        let path = folder.join(HOST);
        std::fs::write(folder.join("host.pem.new"), "left behind").unwrap();
        for content in ["one", "two"] {
            put(&path, content, SECRET).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
            assert_eq!(mode(&path), 0o600);
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn what_root_puts_there_is_the_folders_owners_and_their_groups() {
        let dir = tempfile::tempdir().unwrap();
        let (agent, shared) = (65_533, 65_532); // unused ids
        for (mode, expected) in [(0o750, 0o640), (0o700, 0o600), (0o710, 0o600)] {
            let folder = dir.path().join(format!("{mode:o}"));
            make(&folder).unwrap();
            std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(&folder, Some(agent), Some(shared)).unwrap();
            put(&folder.join(HOST), "key", SECRET).unwrap();
            let put = std::fs::metadata(folder.join(HOST)).unwrap();
            assert_eq!((put.uid(), put.gid()), (agent, shared));
            assert_eq!(put.mode() & 0o777, expected, "{mode:o}");
            let below = folder.join("below");
            make(&below).unwrap();
            assert_eq!(std::fs::metadata(&below).unwrap().uid(), agent);
        }
    }
}
