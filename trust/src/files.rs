//! Files that are there whole or not at all, also after a power cut.

use crate::{Result, TrustError, hex, random};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Readable by its owner alone.
pub(crate) const SECRET: u32 = 0o600;
/// Readable by its owner and one group.
const GROUP_SECRET: u32 = 0o640;
/// Readable by all.
pub(crate) const PUBLIC: u32 = 0o644;

/// For `custom_flags`. The authority's folder is another user's where root works in it, who may have put a link there by which root
/// would open, and give away, something elsewhere.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// More than any certificate chain or revocation list of ours: a list of 100,000 serials is 5 MB.
const MOST_BYTES: u64 = 64 << 20;

/// The whole of a file.
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

/// The whole of a file, or nothing where there is none.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(TrustError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Writes a file durably: beside, flushed, renamed, and the folder flushed.
///
/// The file is its folder's owner's: what an administrator's command leaves in the authority's folder,
/// the collector must be able to read under a user of its own.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    write_with(path, bytes, mode, |_| Ok(()))
}

/// Writes a private key durably, for the folder's owner and, where there is one, a group that may read it.
///
/// A key that replaces one which its group could read stays readable to that group: a renewal must not lock the service out.
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

/// The group that may read the file at this path; none where there is no file.
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
            give_to_owner(&file, folder_of(path))?;
            prepare(&file)?;
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside); // the error that follows is the one that matters
    }
    written.map_err(TrustError::io(path))?;
    sync_folder_of(path)
}

fn give_to_owner(file: &File, folder: &Path) -> io::Result<()> {
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
        // Only root gives files away; others keep their own, as anywhere.
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

/// Makes a rename or a removal in the folder of `path` durable.
pub(crate) fn sync_folder_of(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(TrustError::io(folder))
}

/// Makes a folder that its owner alone may enter, if it is not there; those above it, anybody may.
pub(crate) fn make_private_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(folder_of(path)).map_err(TrustError::io(path))?;
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.map_err(TrustError::io(path)),
    }
}

/// Creates a private folder inside another one, with that one's owner.
pub(crate) fn make_folder_for_owner(path: &Path) -> Result<()> {
    make_private_folder(path)?;
    OpenOptions::new()
        .read(true)
        .custom_flags(NO_LINK)
        .open(path)
        .and_then(|folder| give_to_owner(&folder, folder_of(path)))
        .map_err(TrustError::io(path))
}

/// Waits for and takes the lock of a folder; dropped, it is free again, as it is when the process ends.
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
            give_to_owner(&file, folder)?;
            file.lock()?;
            Ok(file)
        })
        .map_err(TrustError::io(path))
}
