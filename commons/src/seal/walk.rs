//! Entries of the folder to be sealed, sorted by path.

use super::SealError;
use crate::catalog::{BLOCK_BYTES, EntryKind, NewEntry};
use std::fs::{self, FileType, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Maximum size of a file: the offsets of a catalog's blocks have 31 bits.
const MOST_FILE_BYTES: u64 = 100 << 40;
const _: () = assert!(MOST_FILE_BYTES / BLOCK_BYTES < i32::MAX as u64);

/// An entry of the folder, still without hashes.
pub(super) struct FolderEntry {
    pub(super) entry: NewEntry,
    pub(super) state: FileState,
}

/// Figures that differ once a file was written, replaced or renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    mtime: (i64, i64),
    ctime: (i64, i64),
    mode: u32,
}

impl FileState {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            ctime: (metadata.ctime(), metadata.ctime_nsec()),
            mode: metadata.mode(),
        }
    }
}

impl FolderEntry {
    pub(super) fn is_file(&self) -> bool {
        self.entry.kind == EntryKind::File
    }

    /// Path of the entry on this host.
    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        if self.entry.path.is_empty() {
            return folder.to_owned();
        }
        folder.join(std::ffi::OsStr::from_bytes(&self.entry.path))
    }
}

/// Finds all entries of `folder`, the folder itself first.
pub(super) fn walk(folder: &Path) -> Result<Vec<FolderEntry>, SealError> {
    let root = fs::symlink_metadata(folder).map_err(SealError::io("read", folder))?;
    if !root.is_dir() {
        let source = std::io::ErrorKind::NotADirectory.into();
        return Err(SealError::io("seal", folder)(source));
    }
    let mut found = vec![found_at(folder, Vec::new(), &root)?];
    // Paths of directories that were found and are not read yet.
    let mut unread = vec![Vec::new()];
    while let Some(directory) = unread.pop() {
        let path = folder.join(std::ffi::OsStr::from_bytes(&directory));
        for one in fs::read_dir(&path).map_err(SealError::io("read", &path))? {
            let one = one.map_err(SealError::io("read", &path))?;
            let path = one.path();
            let metadata = fs::symlink_metadata(&path).map_err(SealError::io("read", &path))?;
            let mut relative = directory.clone();
            if !relative.is_empty() {
                relative.push(b'/');
            }
            relative.extend_from_slice(one.file_name().as_bytes());
            if metadata.is_dir() {
                unread.push(relative.clone());
            }
            found.push(found_at(&path, relative, &metadata)?);
        }
    }
    found.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
    Ok(found)
}

fn found_at(path: &Path, relative: Vec<u8>, metadata: &Metadata) -> Result<FolderEntry, SealError> {
    let kind = kind_of(metadata.file_type()).map_err(|kind| SealError::Special {
        path: path.to_owned(),
        kind,
    })?;
    let bytes = if kind == EntryKind::File {
        metadata.size()
    } else {
        0
    };
    if bytes > MOST_FILE_BYTES {
        return Err(SealError::TooLarge {
            path: path.to_owned(),
            bytes,
        });
    }
    let target = match kind {
        EntryKind::Symlink => {
            let target = fs::read_link(path).map_err(SealError::io("read", path))?;
            Some(target.into_os_string().into_vec())
        }
        _ => None,
    };
    let mtime_ns = metadata.mtime().saturating_mul(1_000_000_000);
    let entry = NewEntry {
        path: relative,
        kind,
        mode: metadata.mode() & 0o777,
        mtime_ns: mtime_ns.saturating_add(metadata.mtime_nsec()),
        bytes,
        target,
        blake3: None,
        blocks: Vec::new(),
    };
    Ok(FolderEntry {
        entry,
        state: FileState::of(metadata),
    })
}

/// Kind of an entry; an error is the kind of a special file.
fn kind_of(kind: FileType) -> Result<EntryKind, &'static str> {
    match kind {
        kind if kind.is_dir() => Ok(EntryKind::Directory),
        kind if kind.is_file() => Ok(EntryKind::File),
        kind if kind.is_symlink() => Ok(EntryKind::Symlink),
        kind if kind.is_fifo() => Err("pipe"),
        kind if kind.is_socket() => Err("socket"),
        kind if kind.is_block_device() => Err("block device"),
        kind if kind.is_char_device() => Err("character device"),
        _ => Err("special file"),
    }
}

/// Checks that every entry is still as it was found: an entry that was added or removed changed its
/// directory.
pub(super) fn check_unchanged(folder: &Path, found: &[FolderEntry]) -> Result<(), SealError> {
    for one in found {
        let path = one.path(folder);
        let now = fs::symlink_metadata(&path).map(|metadata| FileState::of(&metadata));
        if !now.is_ok_and(|now| now == one.state) {
            return Err(SealError::Changed { path });
        }
    }
    Ok(())
}
