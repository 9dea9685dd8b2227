//! The file system that the kernel sees. Every answer but that of a read comes from the catalog.

use super::ahead::Sequence;
use super::reads::{PendingRead, blocks, part};
use crate::catalog::{Catalog, CatalogEntry, EntryKind};
use crate::store::{BlockPlace, BlockReceiver, BlockStore};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, Request,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time for which the kernel caches names and attributes. They never change.
const FOREVER: Duration = Duration::from_secs(86_400 * 365);
/// The only generation of each inode.
const GENERATION: Generation = Generation(0);
/// Size of a block in the answers to stat(2) and statfs(2), in bytes.
const STAT_BLOCK_BYTES: u32 = 4096;
/// Readahead requested from the kernel, in bytes. It gives less by default ([`super::kernel`]).
const READAHEAD_BYTES: u32 = 1 << 20;
/// Maximum number of reads ahead that the kernel has under way.
const BACKGROUND: u16 = 64;
/// Offsets of the entries `.` and `..` in a directory; that of row N is N + 3.
const OWN_OFFSET: u64 = 1;
const PARENT_OFFSET: u64 = 2;

/// A mounted catalog. The inode of row N is N + 1.
pub(super) struct FileSystem {
    /// Number of the mount, from 0.
    mount: usize,
    catalog: Arc<Catalog>,
    store: Arc<BlockStore>,
    kernel_cache: bool,
    user: u32,
    group: u32,
    /// Progress of each open file, by its handle.
    sequences: Mutex<HashMap<u64, Sequence>>,
    next_handle: AtomicU64,
}

impl FileSystem {
    pub(super) fn new(
        mount: usize,
        catalog: Arc<Catalog>,
        store: Arc<BlockStore>,
        kernel_cache: bool,
    ) -> Self {
        Self {
            mount,
            catalog,
            store,
            kernel_cache,
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
            sequences: Mutex::default(),
            next_handle: AtomicU64::new(1),
        }
    }

    fn entry(&self, inode: INodeNo) -> Option<CatalogEntry<'_>> {
        self.catalog.entry(inode.0.checked_sub(1)?)
    }

    fn directory(&self, inode: INodeNo) -> Result<CatalogEntry<'_>, Errno> {
        let entry = self.entry(inode).ok_or(Errno::ENOENT)?;
        match entry.kind {
            EntryKind::Directory => Ok(entry),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn attributes(&self, entry: &CatalogEntry<'_>) -> FileAttr {
        let time = time(entry.mtime_ns);
        let (perm, size) = match entry.kind {
            EntryKind::Symlink => (0o777, entry.target.len() as u64),
            _ => (entry.mode as u16, entry.bytes), // at most 0o777
        };
        FileAttr {
            ino: INodeNo(entry.row + 1),
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: type_of(entry.kind),
            perm,
            nlink: 1,
            uid: self.user,
            gid: self.group,
            rdev: 0,
            blksize: STAT_BLOCK_BYTES,
            flags: 0,
        }
    }

    /// Calls `add` for the entries of a directory from `offset` on, with the offset after each, until it
    /// returns true.
    fn list(
        &self,
        directory: &CatalogEntry<'_>,
        offset: u64,
        mut add: impl FnMut(&CatalogEntry<'_>, u64, &OsStr) -> bool,
    ) {
        if offset < OWN_OFFSET && add(directory, OWN_OFFSET, OsStr::new(".")) {
            return;
        }
        if offset < PARENT_OFFSET {
            let parent = self.catalog.parent(directory.row);
            let parent = parent.and_then(|row| self.catalog.entry(row));
            if add(
                &parent.unwrap_or(*directory),
                PARENT_OFFSET,
                OsStr::new(".."),
            ) {
                return;
            }
        }
        let from_row = offset.saturating_sub(PARENT_OFFSET);
        for entry in self.catalog.children(directory.row, from_row) {
            let after = entry.row + 1 + PARENT_OFFSET;
            if add(&entry, after, OsStr::from_bytes(entry.name())) {
                return;
            }
        }
    }

    fn place(&self, entry: &CatalogEntry<'_>, index: u64) -> Option<BlockPlace> {
        Some(BlockPlace {
            hash: entry.block(index)?,
            mount: self.mount,
            row: entry.row,
            index,
        })
    }

    fn sequences(&self) -> MutexGuard<'_, HashMap<u64, Sequence>> {
        let sequences = self.sequences.lock();
        sequences.unwrap_or_else(PoisonError::into_inner)
    }

    fn fetch_ahead(
        &self,
        handle: FileHandle,
        entry: &CatalogEntry<'_>,
        read: std::ops::Range<u64>,
    ) {
        let most = self.store.most_blocks_ahead();
        let ahead = match self.sequences().get_mut(&handle.0) {
            Some(sequence) => sequence.advance(read, entry.bytes, most),
            None => return,
        };
        for index in ahead {
            if let Some(place) = self.place(entry, index) {
                self.store.fetch_ahead(place);
            }
        }
    }
}

const fn type_of(kind: EntryKind) -> FileType {
    match kind {
        EntryKind::Directory => FileType::Directory,
        EntryKind::File => FileType::RegularFile,
        EntryKind::Symlink => FileType::Symlink,
    }
}

fn time(ns: i64) -> SystemTime {
    let distance = Duration::from_nanos(ns.unsigned_abs());
    let time = if ns < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}

impl Filesystem for FileSystem {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        if let Err(most) = config.set_max_readahead(READAHEAD_BYTES) {
            let _ = config.set_max_readahead(most); // the kernel's own maximum
        }
        let _ = config.set_max_background(BACKGROUND); // above 0, so it is accepted
        for useful in [
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
        ] {
            let _ = config.add_capabilities(useful); // an older kernel does without
        }
        let mmap = InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        if !self.kernel_cache && config.add_capabilities(mmap).is_err() {
            eprintln!(
                "gleaner-commons: this kernel (before Linux 6.6) has no shared mmap without its cache"
            );
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let directory = match self.directory(parent) {
            Ok(directory) => directory,
            Err(error) => return reply.error(error),
        };
        match self.catalog.child(directory.row, name.as_bytes()) {
            Some(entry) => reply.entry(&FOREVER, &self.attributes(&entry), GENERATION),
            None => {
                // Inode 0: the kernel remembers that there is no such name.
                let nothing = FileAttr {
                    ino: INodeNo(0),
                    ..self.attributes(&directory)
                };
                reply.entry(&FOREVER, &nothing, GENERATION);
            }
        }
    }

    fn getattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        match self.entry(inode) {
            Some(entry) => reply.attr(&FOREVER, &self.attributes(&entry)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readlink(&self, _request: &Request, inode: INodeNo, reply: ReplyData) {
        match self.entry(inode) {
            Some(entry) if entry.kind == EntryKind::Symlink => reply.data(entry.target),
            Some(_) => reply.error(Errno::EINVAL),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if !self.entry(inode).is_some_and(|e| e.kind == EntryKind::File) {
            return reply.error(Errno::ENOENT);
        }
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        self.sequences().insert(handle, Sequence::default());
        let flags = if self.kernel_cache {
            FopenFlags::FOPEN_KEEP_CACHE
        } else {
            FopenFlags::FOPEN_DIRECT_IO
        };
        reply.opened(FileHandle(handle), flags | FopenFlags::FOPEN_NOFLUSH);
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(entry) = self.entry(inode) else {
            return reply.error(Errno::ENOENT);
        };
        let read = offset..offset.saturating_add(u64::from(size)).min(entry.bytes);
        if read.is_empty() {
            return reply.data(&[]);
        }
        let places: Option<Vec<BlockPlace>> =
            blocks(&read).map(|i| self.place(&entry, i)).collect();
        let Some(places) = places else {
            return reply.error(Errno::EIO); // the catalog was changed in place
        };
        let receiver: Arc<dyn BlockReceiver> = Arc::new(PendingRead::new(read.clone(), reply));
        for (index, place) in places.into_iter().enumerate() {
            let used = part(&read, place.index);
            self.store
                .request(place, used.end - used.start, &receiver, index);
        }
        self.fetch_ahead(handle, &entry, read);
    }

    fn release(
        &self,
        _request: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.sequences().remove(&handle.0);
        reply.ok();
    }

    fn opendir(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.directory(inode) {
            Ok(_) => {
                let flags = FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE;
                reply.opened(FileHandle(0), flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let directory = match self.directory(inode) {
            Ok(directory) => directory,
            Err(error) => return reply.error(error),
        };
        self.list(&directory, offset, |entry, after, name| {
            reply.add(INodeNo(entry.row + 1), after, type_of(entry.kind), name)
        });
        reply.ok();
    }

    fn readdirplus(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let directory = match self.directory(inode) {
            Ok(directory) => directory,
            Err(error) => return reply.error(error),
        };
        self.list(&directory, offset, |entry, after, name| {
            let attributes = self.attributes(entry);
            reply.add(
                attributes.ino,
                after,
                name,
                &FOREVER,
                &attributes,
                GENERATION,
            )
        });
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let blocks = self
            .catalog
            .totals()
            .bytes
            .div_ceil(u64::from(STAT_BLOCK_BYTES));
        let rows = self.catalog.rows();
        let longest_name = 255;
        reply.statfs(
            blocks,
            0,
            0,
            rows,
            0,
            STAT_BLOCK_BYTES,
            longest_name,
            STAT_BLOCK_BYTES,
        );
    }
}
