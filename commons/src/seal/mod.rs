//! Sealing: reads a folder once and writes its catalog.

mod error;
mod hash;
#[cfg(test)]
mod tests;
mod walk;

pub use error::SealError;

use crate::catalog::{CatalogTotals, CatalogWriter, Hash, NewEntry, blocks_of};
use hash::Hashes;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use walk::FolderEntry;

/// Number of files whose hashes wait for those of an earlier file, per thread.
const WAITING_PER_THREAD: usize = 16;

/// Result of sealing a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedFolder {
    /// Hash of the catalog's file.
    pub hash: Hash,
    /// Numbers of files, bytes and blocks.
    pub totals: CatalogTotals,
}

/// Seals `folder` into the catalog `output`, with `threads` threads. `progress` gets the number of bytes that
/// are to be read, and then of those that have been read.
///
/// # Errors
/// [`SealError`], which names the path. A catalog that exists at `output` then stays as it was.
pub fn seal(
    folder: &Path,
    output: &Path,
    threads: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<SealedFolder, SealError> {
    let folder = fs::canonicalize(folder).map_err(SealError::io("open", folder))?;
    let target = absolute(output)?;
    if target.starts_with(&folder) {
        return Err(SealError::OutputInside {
            output: output.to_owned(),
            folder,
        });
    }
    let found = walk::walk(&folder)?;
    let temporary = Temporary::create(&target)?;
    let written = write(&folder, &found, temporary.file()?, threads, progress)?;
    walk::check_unchanged(&folder, &found)?;
    temporary.publish(&target)?;
    Ok(written)
}

/// Absolute path of the catalog, without symbolic links in its folder's path.
fn absolute(output: &Path) -> Result<PathBuf, SealError> {
    let parent = output.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let parent = fs::canonicalize(parent).map_err(SealError::io("open", parent))?;
    let name = output.file_name().ok_or_else(|| SealError::NoName {
        output: output.to_owned(),
    })?;
    Ok(parent.join(name))
}

fn write(
    folder: &Path,
    found: &[FolderEntry],
    file: File,
    threads: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<SealedFolder, SealError> {
    let all_bytes = found.iter().map(|f| f.entry.bytes).sum();
    let root = rustix::fs::open(
        folder,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    let root = root.map_err(|e| SealError::io("open", folder)(e.into()))?;
    let files: Vec<usize> = (0..found.len()).filter(|i| found[*i].is_file()).collect();
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let threads = threads.max(1);
    thread::scope(|scope| {
        let (sender, hashed) = sync_channel(threads * WAITING_PER_THREAD);
        for _ in 0..threads {
            let sender: SyncSender<(usize, Result<Hashes, SealError>)> = sender.clone();
            let (files, root, next, has_failed) = (&files, &root, &next, &has_failed);
            scope.spawn(move || {
                while !has_failed.load(Ordering::Relaxed) {
                    let Some(index) = files.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    let hashes = hash::hash(root, folder, &found[*index]);
                    if sender.send((*index, hashes)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut report = |bytes| progress(all_bytes, bytes);
        let written = write_rows(found, &hashed, file, &mut report);
        has_failed.store(written.is_err(), Ordering::Relaxed);
        drop(hashed); // threads that wait to send then end
        written
    })
}

/// Writes the rows in their order, as their hashes become known.
fn write_rows(
    found: &[FolderEntry],
    hashed: &Receiver<(usize, Result<Hashes, SealError>)>,
    file: File,
    progress: &mut dyn FnMut(u64),
) -> Result<SealedFolder, SealError> {
    let failed = |source| SealError::Write { source };
    let mut writer = CatalogWriter::new(BufWriter::new(file)).map_err(failed)?;
    let mut known: BTreeMap<usize, Hashes> = BTreeMap::new();
    let mut totals = CatalogTotals::default();
    for (index, one) in found.iter().enumerate() {
        let mut entry: NewEntry = one.entry.clone();
        if one.is_file() {
            let hashes = loop {
                if let Some(hashes) = known.remove(&index) {
                    break hashes;
                }
                let (index, hashes) = hashed.recv().map_err(|_| SealError::Interrupted)?;
                known.insert(index, hashes?);
            };
            entry.blake3 = Some(hashes.whole);
            entry.blocks = hashes.blocks;
            totals.files += 1;
            totals.bytes += entry.bytes;
            totals.blocks += blocks_of(entry.bytes);
            progress(totals.bytes);
        }
        writer.add(&entry).map_err(failed)?;
    }
    let (buffered, hash) = writer.finish().map_err(failed)?;
    let file = buffered.into_inner().map_err(|e| failed(e.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(SealedFolder { hash, totals })
}

/// The new catalog under another name, in the same folder. It is removed unless it is published.
struct Temporary {
    path: PathBuf,
    is_published: bool,
}

impl Temporary {
    fn create(target: &Path) -> Result<Self, SealError> {
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.new", std::process::id()));
        let temporary = Self {
            path: target.with_file_name(name),
            is_published: false,
        };
        match fs::symlink_metadata(target) {
            Ok(existing) if !existing.is_file() => Err(SealError::NotAFile {
                output: target.to_owned(),
            }),
            _ => Ok(temporary),
        }
    }

    fn file(&self) -> Result<File, SealError> {
        File::create(&self.path).map_err(SealError::io("write", &self.path))
    }

    fn publish(mut self, target: &Path) -> Result<(), SealError> {
        fs::rename(&self.path, target).map_err(SealError::io("write", target))?;
        self.is_published = true;
        let folder = target.parent().unwrap_or(Path::new("/"));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(SealError::io("sync", folder))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_published {
            let _ = fs::remove_file(&self.path); // it may not exist
        }
    }
}

/// Writes a line with the catalog's pinned address, and its totals.
///
/// # Errors
/// Errors of `to`.
pub fn print(to: &mut dyn Write, output: &Path, sealed: &SealedFolder) -> io::Result<()> {
    use gleaner_schemas::units::{Bytes, thousands};
    let CatalogTotals {
        files,
        bytes,
        blocks,
    } = sealed.totals;
    let (path, hash) = (output.display(), gleaner_trust::hex::encode(&sealed.hash));
    writeln!(to, "{path}#{hash}")?;
    writeln!(
        to,
        "{} files, {}, {} blocks",
        thousands(files),
        Bytes::from(bytes),
        thousands(blocks)
    )
}
