//! Reads the kernel's text files. Every parser takes bytes and never panics on any of them.
//!
//! These parsers replace `procfs-core`, which panics on a truncated `pressure` line, has no `Balloon`,
//! and builds a hash map of owned strings for each `smaps_rollup`.

pub(crate) mod access;
pub mod arcstats;
pub mod cachestat;
pub mod cgroup;
pub mod damon;
pub mod dbus;
mod event_mask;
pub mod fanotify;
pub mod handle;
pub mod input;
pub mod iomem;
pub mod list;
pub mod loadavg;
pub mod logind;
pub mod maps;
pub mod meminfo;
pub mod mincore;
pub mod mountinfo;
pub mod pressure;
pub mod process;
pub mod report;
pub mod terminal;
pub mod vmstat;
pub mod zoneinfo;
pub mod zram;

use crate::Error;
use crate::missing_values::AbsentValue;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Dir, Mode, OFlags, fstatfs, openat};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// `f_type` of a proc filesystem (`linux/magic.h`).
const PROC_SUPER_MAGIC: u32 = 0x9fa0;

/// Largest plausible size: machines address at most 52 bits (x86) or 56 bits (Arm, RISC-V).
pub(crate) const LARGEST_BYTES: u64 = 1 << 56;

/// Largest plausible size in pages of 4 KiB, the smallest page size.
pub(crate) const LARGEST_PAGES: u64 = LARGEST_BYTES >> 12;

/// Maximum bytes read of one file. Of the kernel's files only `maps` grows with the process: 65530
/// mappings (`vm.max_map_count`) take some 10 MiB.
const LARGEST_FILE_BYTES: usize = 64 << 20;

/// Flags for opening a file: a pipe or terminal in a captured tree must not block the sample.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// Root below which files are read: `/proc` of this host, or a captured tree of another.
#[derive(Debug)]
pub struct Tree {
    dir: OwnedFd,
    path: PathBuf,
}

impl Tree {
    /// Opens the root.
    ///
    /// # Errors
    /// [`Error::Read`] if it is no readable directory.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(CWD, path, flags, Mode::empty()).map_err(|e| Error::Read {
            path: path.to_owned(),
            source: e.into(),
        })?;
        Ok(Self {
            dir,
            path: path.to_owned(),
        })
    }

    /// Path of the tree's root.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true for the kernel's own proc filesystem, whose links lead to live files.
    #[must_use]
    pub fn is_procfs(&self) -> bool {
        fstatfs(&self.dir).is_ok_and(|s| s.f_type as u32 == PROC_SUPER_MAGIC)
    }

    /// Reads the whole file `name` into `buffer`, which is cleared first.
    ///
    /// # Errors
    /// The kernel's error; `FBIG` for an endless file.
    pub fn read(&self, name: &str, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        buffer.clear();
        let file = openat(&self.dir, name, FLAGS, Mode::empty())?;
        loop {
            if buffer.len() > LARGEST_FILE_BYTES {
                return Err(Errno::FBIG);
            }
            if buffer.capacity() - buffer.len() < 1024 {
                buffer.reserve(4096);
            }
            match rustix::io::read(&file, rustix::buffer::spare_capacity(buffer)) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Reads a file of one record, which the kernel returns completely in the first read. This saves
    /// half the system calls for files that are read often or for every process.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn read_record(&self, name: &str, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        Self::read_record_of(&self.open_file(name)?, buffer)
    }

    /// Opens the file `name`, to be read several times by [`Tree::read_record_of`].
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn open_file(&self, name: &str) -> Result<OwnedFd, Errno> {
        openat(&self.dir, name, FLAGS, Mode::empty())
    }

    /// Reads an open file of one record from its beginning.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn read_record_of(file: &OwnedFd, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        const LONGEST_RECORD_BYTES: usize = 4096;
        buffer.clear();
        buffer.reserve(LONGEST_RECORD_BYTES);
        rustix::io::retry_on_intr(|| {
            rustix::io::pread(file, rustix::buffer::spare_capacity(buffer), 0)
        })?;
        Ok(())
    }

    /// Reads and parses a file that a kernel either always or never has.
    ///
    /// # Errors
    /// The absence, with its reason.
    pub fn parse<T>(
        &self,
        name: &'static str,
        buffer: &mut Vec<u8>,
        parser: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, AbsentValue> {
        self.read(name, buffer)
            .map_err(|e| AbsentValue::from_kernel_file(name, e))?;
        parser(buffer)
            .ok_or_else(|| AbsentValue::new(crate::missing_values::Reason::Malformed, name))
    }

    /// Lists the directory `name`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn list(&self, name: &str) -> Result<Dir, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Dir::new(openat(&self.dir, name, flags, Mode::empty())?)
    }
}

impl AsFd for Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// The lines of a file.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b'\n')
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty())
}

/// A decimal number.
pub(crate) fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
