//! Hashes of one file.

use super::SealError;
use super::walk::{FileState, FolderEntry};
use crate::catalog::{BLOCK_BYTES, Hash, blocks_of};
use rustix::fs::{Mode, OFlags, openat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Hashes of a file.
pub(super) struct Hashes {
    pub(super) whole: Hash,
    pub(super) blocks: Vec<Hash>,
}

/// Hashes a file below `root`, whose path is `folder`. The file must be as it was found, before and after.
pub(super) fn hash(
    root: &OwnedFd,
    folder: &Path,
    found: &FolderEntry,
) -> Result<Hashes, SealError> {
    let path = found.path(folder);
    let changed = || SealError::Changed { path: path.clone() };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let relative = Path::new(OsStr::from_bytes(&found.entry.path));
    let file = openat(root, relative, flags, Mode::empty());
    let file = file.map_err(|e| SealError::io("open", &path)(e.into()))?;
    let mut file = File::from(file);
    let state = |file: &File| {
        let metadata = file.metadata().map_err(SealError::io("read", &path))?;
        Ok(FileState::of(&metadata))
    };
    if state(&file)? != found.state {
        return Err(changed());
    }
    let blocks = blocks_of(found.entry.bytes);
    let mut hashes = Vec::with_capacity(usize::try_from(blocks).unwrap_or(0));
    let mut whole = blake3::Hasher::new();
    let mut buffer = vec![0; BLOCK_BYTES as usize];
    let mut bytes: u64 = 0;
    loop {
        let length = fill(&mut file, &mut buffer).map_err(SealError::io("read", &path))?;
        let block = buffer.get(..length).unwrap_or_default();
        bytes += length as u64;
        if block.is_empty() || bytes > found.entry.bytes {
            break;
        }
        hashes.push(blake3::hash(block).into());
        whole.update(block);
    }
    if bytes != found.entry.bytes || state(&file)? != found.state {
        return Err(changed());
    }
    Ok(Hashes {
        whole: whole.finalize().into(),
        blocks: hashes,
    })
}

/// Reads until the buffer is full or the file ends; returns the number of bytes.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
