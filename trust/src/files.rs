//! Writes and reads files. After a power failure, a file that was being written is complete or missing.

use crate::{Result, TrustError, hex, random};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Mode of files that only their owner may read.
pub(crate) const SECRET: u32 = 0o600;
/// Mode of files that their owner and one group may read.
const GROUP_SECRET: u32 = 0o640;
/// Mode of files that everybody may read.
pub(crate) const PUBLIC: u32 = 0o644;

/// Flag that makes opening a symbolic link fail. Root may work in an authority's folder that belongs to
/// another user. Without the flag, this user could place a link there and so make root open, and reveal,
/// another file.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// Maximum length of a file. No certificate chain or revocation list of ours is longer: a list of 100,000
/// serial numbers has 5 MB.
const MOST_BYTES: u64 = 64 << 20;

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .and_then(|count| match u64::try_from(count) {
            Ok(count) if count <= MOST_BYTES => Ok(bytes),
            _ => Err(io::Error::other("larger than 64 MiB: not one of ours")),
        })
        .map_err(TrustError::io(path))
}

/// Reads a whole file; `None` if it does not exist.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(TrustError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Writes a file durably: writes a temporary file, syncs it, renames it, and syncs the folder.
///
/// The file gets the owner of its folder. An administrator's command, run by root, creates files in the
/// authority's folder, and the collector must be able to read them as a user of its own.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    write_with(path, bytes, mode, |_| Ok(()))
}

/// Writes a private key durably, readable by the folder's owner and by `group`, if given.
///
/// Without `group`, the key is readable by the group that could read the replaced key: after a renewal, the
/// service must still be able to read its key.
pub(crate) fn write_key(path: &Path, bytes: &[u8], group: Option<u32>) -> Result<()> {
    let group = match group {
        Some(group) => Some(group),
        None => reading_group(path)?,
    };
    write_with(path, bytes, SECRET, |file| {
        let Some(group) = group else { return Ok(()) };
        fchown(file, None, Some(group)).map_err(|e| {
            io::Error::new(
                e.kind(),
                format!("cannot give it to group {group}, which reads it ({e}): run this as root"),
            )
        })?;
        file.set_permissions(fs::Permissions::from_mode(GROUP_SECRET))
    })
}

/// Group that may read the file at this path; `None` if there is no file or no group may read it.
fn reading_group(path: &Path) -> Result<Option<u32>> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() && there.mode() & 0o040 != 0 => Ok(Some(there.gid())),
        Ok(_) => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(TrustError::io(path)(e)),
    }
}

fn write_with(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", hex::encode(&random::bytes::<8>()?)));
    let beside = PathBuf::from(beside);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)
        .and_then(|mut file| {
            chown_to_folder_owner(&file, folder_of(path))?;
            prepare(&file)?;
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside); // if removing fails too, only the first error is reported
    }
    written.map_err(TrustError::io(path))?;
    sync_folder_of(path)
}

fn chown_to_folder_owner(file: &File, folder: &Path) -> io::Result<()> {
    let (ours, owner) = (file.metadata()?, fs::metadata(folder)?);
    if (ours.uid(), ours.gid()) == (owner.uid(), owner.gid()) {
        return Ok(());
    }
    if !ours.is_dir() && ours.nlink() != 1 {
        return Err(io::Error::other(
            "it has a second name elsewhere: remove it, since root would give that away",
        ));
    }
    match fchown(file, Some(owner.uid()), Some(owner.gid())) {
        // Only root can give a file to another user; a file written by another user stays theirs.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Makes a rename or removal in the folder of `path` durable.
pub(crate) fn sync_folder_of(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(TrustError::io(folder))
}

/// Makes a folder that only its owner may enter, if it does not exist. Missing folders above it are made too,
/// and everybody may enter those.
pub(crate) fn make_private_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(folder_of(path)).map_err(TrustError::io(path))?;
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.map_err(TrustError::io(path)),
    }
}

/// Creates a folder that only its owner may enter. Its owner is the owner of the folder above it.
pub(crate) fn make_folder_for_owner(path: &Path) -> Result<()> {
    make_private_folder(path)?;
    OpenOptions::new()
        .read(true)
        .custom_flags(NO_LINK)
        .open(path)
        .and_then(|folder| chown_to_folder_owner(&folder, folder_of(path)))
        .map_err(TrustError::io(path))
}

/// Waits for the lock of a folder and takes it. The lock is released when the returned file is dropped, or
/// when the process ends.
pub(crate) fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("authority.lock");
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(SECRET)
        .custom_flags(NO_LINK)
        .open(&path)
        .and_then(|file| {
            chown_to_folder_owner(&file, folder)?;
            file.lock()?;
            Ok(file)
        })
        .map_err(TrustError::io(path))
}
