//! The file system that the kernel sees: a folder with one file.

use super::FILE;
use super::connection::{Connection, KernelRequest};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyWrite,
    Request, WriteFlags,
};
use gleaner_paging::nbd::client::Export;
use gleaner_paging::nbd::wire::{self, Command, flag, transmission};
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

const FOLDER_NODE: INodeNo = INodeNo(1);
const FILE_NODE: INodeNo = INodeNo(2);
/// Time for which the kernel caches the name and the attributes. They never change.
const FOREVER: Duration = Duration::from_secs(86_400 * 365);
/// Largest read and write, in bytes.
const MOST_REQUEST_BYTES: u32 = 1 << 20;
/// Maximum number of requests that the kernel has under way. Its default, 12, would limit swap's queue.
const MOST_REQUESTS: u16 = 128;
const PAGE_BYTES: u32 = 4096;

/// The folder with the export's file.
pub(super) struct ExportFileSystem {
    connection: Arc<Connection>,
    export_bytes: u64,
    can_flush: bool,
    can_zero: bool,
}

impl ExportFileSystem {
    pub(super) fn new(connection: Arc<Connection>, export: &Export) -> Self {
        let can = |flag: u16| export.flags & flag != 0;
        Self {
            connection,
            export_bytes: export.bytes,
            can_flush: can(transmission::SEND_FLUSH),
            can_zero: can(transmission::SEND_WRITE_ZEROES),
        }
    }

    /// Only root may use the file.
    fn attributes(&self, node: INodeNo) -> Result<FileAttr, Errno> {
        let (kind, perm, size) = match node {
            FOLDER_NODE => (FileType::Directory, 0o500, 0),
            FILE_NODE => (FileType::RegularFile, 0o600, self.export_bytes),
            _ => return Err(Errno::ENOENT),
        };
        Ok(FileAttr {
            ino: node,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: PAGE_BYTES,
            flags: 0,
        })
    }

    fn send(
        &self,
        command: Command,
        flags: u16,
        range: (u64, u32),
        data: &[u8],
        kernel: KernelRequest,
    ) {
        let (offset, bytes) = range;
        let request = wire::Request {
            flags,
            command,
            cookie: 0, // the connection's
            offset,
            bytes,
        };
        self.connection.send(request, data, kernel);
    }
}

impl Filesystem for ExportFileSystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it, the loop device has one request under way. Kernels before Linux 3.13 have none.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(MOST_REQUEST_BYTES);
        let _ = config.set_max_background(MOST_REQUESTS);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = match parent == FOLDER_NODE && name == FILE {
            true => self.attributes(FILE_NODE),
            false => Err(Errno::ENOENT),
        };
        match found {
            Ok(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(node) {
            Ok(attributes) => reply.attr(&FOREVER, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let left = self.export_bytes.saturating_sub(offset);
        let bytes = u32::try_from(left).map_or(bytes, |left| left.min(bytes));
        if bytes == 0 {
            return reply.data(&[]);
        }
        self.send(
            Command::Read,
            0,
            (offset, bytes),
            &[],
            KernelRequest::Read(reply, bytes),
        );
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Ok(bytes) = u32::try_from(data.len()) else {
            return reply.error(Errno::EINVAL);
        };
        self.send(
            Command::Write,
            0,
            (offset, bytes),
            data,
            KernelRequest::Write(reply, bytes),
        );
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if !self.can_flush {
            return reply.ok();
        }
        self.send(Command::Flush, 0, (0, 0), &[], KernelRequest::Other(reply));
    }

    /// Discards or zeroes blocks, for the loop device. Both must read as zeroes afterwards, which NBD's trim does not
    /// promise.
    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        const DISCARD: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
        let flags = match mode {
            DISCARD => 0,
            ZERO => flag::NO_HOLE,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let Ok(bytes) = u32::try_from(bytes) else {
            return reply.error(Errno::EINVAL);
        };
        if !self.can_zero {
            return reply.error(Errno::EOPNOTSUPP);
        }
        self.send(
            Command::WriteZeroes,
            flags,
            (offset, bytes),
            &[],
            KernelRequest::Other(reply),
        );
    }
}
