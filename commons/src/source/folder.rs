//! A folder of this host as a source: local, or of a file server.

use super::{FilePart, differs, missing, native, unavailable};
use crate::store::FetchError;
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of files that stay open for further reads.
const MOST_OPEN: usize = 128;

pub(super) struct Folder {
    /// The folder itself, so that it may be mounted over.
    root: OwnedFd,
    open: Mutex<OpenFiles>,
}

#[derive(Default)]
struct OpenFiles {
    files: HashMap<u64, Arc<File>>,
    /// Rows in the order in which they were opened.
    order: VecDeque<u64>,
}

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self {
            root,
            open: Mutex::default(),
        })
    }

    pub(super) fn fetch(&self, part: &FilePart<'_>) -> Result<Vec<u8>, FetchError> {
        let file = self.file(part)?;
        let length = usize::try_from(part.bytes).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, part.offset + filled as u64) {
                Ok(0) => {
                    self.forget(part.row);
                    let end = part.offset + filled as u64;
                    let wanted = part.file_bytes;
                    return Err(differs(format!(
                        "the file ends at byte {end}, not at {wanted}"
                    )));
                }
                Ok(count) => filled += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
                Err(e) => {
                    self.forget(part.row);
                    return Err(unavailable(e));
                }
            }
        }
        Ok(bytes)
    }

    pub(super) fn check_size(&self, path: &[u8], wanted: u64) -> Result<(), FetchError> {
        let (_, found) = self.open_file(path)?;
        if found != wanted {
            return Err(differs(format!("the file has {found} bytes, not {wanted}")));
        }
        Ok(())
    }

    /// The file of a row. It is opened again if its size was not the catalog's.
    fn file(&self, part: &FilePart<'_>) -> Result<Arc<File>, FetchError> {
        if let Some(file) = self.lock().files.get(&part.row) {
            return Ok(Arc::clone(file));
        }
        let (file, found) = self.open_file(part.path)?;
        let file = Arc::new(file);
        if found != part.file_bytes {
            return Ok(file); // reading shows where it differs; the next reader opens the file anew
        }
        let mut open = self.lock();
        if open.files.insert(part.row, Arc::clone(&file)).is_none() {
            open.order.push_back(part.row);
        }
        while open.order.len() > MOST_OPEN {
            let Some(oldest) = open.order.pop_front() else {
                break;
            };
            open.files.remove(&oldest);
        }
        Ok(file)
    }

    /// Opens a regular file; returns its size, too. A pipe or a device is never waited for.
    fn open_file(&self, path: &[u8]) -> Result<(File, u64), FetchError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&self.root, native(path), flags, Mode::empty());
        let file = file.map_err(|e| match e {
            Errno::MFILE | Errno::NFILE | Errno::IO | Errno::STALE | Errno::TIMEDOUT => {
                unavailable(e)
            }
            other => missing(other),
        })?;
        let status = fstat(&file).map_err(unavailable)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(missing("it is no regular file"));
        }
        let bytes = u64::try_from(status.st_size).unwrap_or(0);
        Ok((File::from(file), bytes))
    }

    /// Closes a row's file, which may have been replaced by another.
    fn forget(&self, row: u64) {
        let mut open = self.lock();
        open.files.remove(&row);
        open.order.retain(|other| *other != row);
    }

    fn lock(&self) -> MutexGuard<'_, OpenFiles> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
