//! Files that are complete or missing, even after a power cut.

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

/// Flag for `custom_flags`. Root may work in an authority's folder that belongs to another user, who could place a link there and
/// so make root open, and reveal, another file.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// Maximum length of a file, more than any certificate chain or revocation list of ours: a list of 100,000 serials has 5 MB.
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

/// Writes a file durably: under another name, synced, renamed, and the folder synced.
///
/// The file gets the owner of its folder: the collector, under a user of its own, must be able to read files that an
/// administrator's command creates in the authority's folder.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    write_with(path, bytes, mode, |_| Ok(()))
}

/// Writes a private key durably, readable by the folder's owner and, if given, by a group.
///
/// If the replaced key was readable by its group, the new one is too: a renewal must not lock the service out.
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

/// Group that may read the file at this path; `None` without a file.
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
        let _ = fs::remove_file(&beside); // the error that follows is the one to report
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
        // Only root can give files away; for other users the file stays their own.
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

/// Makes a folder that only its owner may enter, if it does not exist; everybody may enter folders above it.
pub(crate) fn make_private_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(folder_of(path)).map_err(TrustError::io(path))?;
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.map_err(TrustError::io(path)),
    }
}

/// Creates a private folder inside another folder, with the other folder's owner.
pub(crate) fn make_folder_for_owner(path: &Path) -> Result<()> {
    make_private_folder(path)?;
    OpenOptions::new()
        .read(true)
        .custom_flags(NO_LINK)
        .open(path)
        .and_then(|folder| chown_to_folder_owner(&folder, folder_of(path)))
        .map_err(TrustError::io(path))
}

/// Waits for the lock of a folder and takes it. It is released when dropped, or when the process ends.
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
