//! Files beside the database, opened so that nobody can redirect the agent: the state folder belongs to the
//! service's user, but root runs commands there too.

use crate::Error;
use gleaner_daemon::folders::chown_to_folder_owner;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Opens the file at `path` itself, never the target of a link. The file is checked through its descriptor, so
/// that nothing can replace it between check and use.
///
/// # Errors
/// The error of the system; refused are links, special files, files with several names and files of other users.
pub(crate) fn open_no_follow(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Without O_NONBLOCK a FIFO would block the agent until another process opens its other end.
    let file = options
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(|e| match e.raw_os_error() {
            Some(libc::ELOOP) => refused("it is a symbolic link"),
            Some(libc::ENXIO) => refused("it is not a regular file"),
            _ => e,
        })?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(refused("it is not a regular file"));
    }
    if found.nlink() > 1 {
        return Err(refused("it has another name elsewhere (a hard link)"));
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = metadata(folder.unwrap_or(Path::new(".")))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != folder.uid() {
        return Err(refused("it belongs to another user than its folder"));
    }
    Ok(file)
}

/// Path of a file beside `path`, named as `path` followed by `ending`.
#[must_use]
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Locks the file beside the database at `path` that is named as `path` followed by `ending`; each purpose
/// has its own ending. Returns `None` if another process holds the lock.
pub(crate) fn lock_beside(path: &Path, ending: &str) -> Result<Option<File>, Error> {
    let path_of_lock = beside(path, ending);
    let failed = |source| Error::Write {
        path: path_of_lock.clone(),
        source,
    };
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o640);
    let file = open_no_follow(&path_of_lock, &mut options).map_err(failed)?;
    // After a command of root, the service must still be able to take the lock.
    chown_to_folder_owner(&file, &path_of_lock).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(e) => Err(failed(e.into())),
    }
}

fn refused(why: &str) -> io::Error {
    let text = format!("{why}: find out who put it there, and remove it");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::lock_beside;
    use crate::identity::FileIdKey;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    /// Content, owner and change time of a file that must stay unchanged.
    fn seen(path: &Path) -> (Vec<u8>, u32, i64, i64) {
        let found = fs::metadata(path).unwrap();
        let content = fs::read(path).unwrap();
        (content, found.uid(), found.ctime(), found.ctime_nsec())
    }

    #[test]
    fn links_in_the_state_folder_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, [7; 64]).unwrap();
        let database = dir.path().join("trace.db");
        let lock = dir.path().join("trace.db-lock");
        let before = seen(&victim);

        symlink(&victim, &lock).unwrap();
        let said = lock_beside(&database, "-lock").unwrap_err().to_string();
        assert!(said.contains("symbolic link"), "{said}");
        fs::remove_file(&lock).unwrap();
        symlink(dir.path().join("nowhere"), &lock).unwrap();
        lock_beside(&database, "-lock").unwrap_err();
        assert!(!dir.path().join("nowhere").exists());

        let key = dir.path().join("trace.db-key");
        symlink(&victim, dir.path().join("trace.db-key.new")).unwrap();
        FileIdKey::load_or_create(&key).unwrap(); // replaces the link
        assert!(key.symlink_metadata().unwrap().is_file());
        fs::remove_file(&key).unwrap();
        symlink(&victim, &key).unwrap();
        assert!(FileIdKey::load_or_create(&key).is_err());
        assert_eq!(seen(&victim), before);
    }

    #[test]
    fn only_regular_files_of_one_name_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("trace.db");
        let lock = dir.path().join("trace.db-lock");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &lock,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        lock_beside(&database, "-lock").unwrap_err();
        fs::remove_file(&lock).unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "").unwrap();
        fs::hard_link(&other, &lock).unwrap();
        let said = lock_beside(&database, "-lock").unwrap_err().to_string();
        assert!(said.contains("hard link"), "{said}");
        fs::remove_file(&lock).unwrap();
        assert!(lock_beside(&database, "-lock").unwrap().is_some());
    }
}
