//! A region: pages in remote memory with their checksums, and all pages in the file.

use crate::lock;
use crate::node::Node;
use crate::pool::Pool;
use crate::transfer::NodeFailure;
use crate::{OnLoss, PAGE_BYTES, RegionError};
use rustix::fs::{OFlags, fcntl_getfl};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

const PAGE: usize = PAGE_BYTES as usize;
/// Maximum number of pages fetched or stored at one time.
const PIECE_PAGES: u64 = 256;
/// Checksum of a page: half of a keyed hash. The key is secret, so that a server cannot search for other
/// bytes with the same checksum.
type Sum = [u8; 16];
/// Value in place of the checksum for a page that is only in the file.
const ABSENT: Sum = [0; 16];

/// Remote memory that is backed by a part of a file. If several threads use one region, their calls run one
/// after the other.
pub struct Region {
    inner: Arc<Pool>,
    node: Arc<Node>,
    /// Offset of the region in the node's memory, in bytes.
    at: u64,
    bytes: u64,
    file: File,
    file_offset: u64,
    state: Mutex<State>,
}

struct State {
    sums: Vec<Sum>,
    scratch: Vec<u8>,
}

impl Region {
    pub(crate) fn check(bytes: u64, file: &File, offset: u64) -> Result<(), RegionError> {
        let unfit = |what| Err(RegionError::Unfit { what });
        let end = offset.checked_add(bytes);
        if bytes == 0 || end.is_none_or(|end| i64::try_from(end).is_err()) {
            return unfit("it has at least a byte, and ends within what a file can have");
        }
        let kind = file.metadata().map_err(RegionError::File)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return unfit("only files and block devices keep what a region has");
        }
        let flags = fcntl_getfl(file).map_err(|e| RegionError::File(e.into()))?;
        if flags.contains(OFlags::APPEND) {
            return unfit(
                "the file is open for appending, so that nothing can be written in place",
            );
        }
        if flags & OFlags::RWMODE == OFlags::WRONLY {
            return unfit("the file is open for writing alone");
        }
        Ok(())
    }

    pub(crate) fn new(
        inner: &Arc<Pool>,
        (node, at): (Arc<Node>, u64),
        bytes: u64,
        file: File,
        file_offset: u64,
    ) -> Self {
        let pages = bytes.div_ceil(PAGE_BYTES) as usize;
        Self {
            inner: Arc::clone(inner),
            node,
            at,
            bytes,
            file,
            file_offset,
            state: Mutex::new(State {
                sums: vec![ABSENT; pages],
                scratch: Vec::new(),
            }),
        }
    }

    /// Size of the region, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if the region still has remote memory.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        !self.node.is_gone()
    }

    /// Reads from `offset` on. Returns the number of bytes read, which is less than requested only at the
    /// region's end. Bytes beyond the file's end read as zeroes.
    ///
    /// # Errors
    /// [`RegionError::File`]; [`RegionError::Gone`] with [`OnLoss::Error`].
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, RegionError> {
        let end = self.bytes.min(offset.saturating_add(into.len() as u64));
        let mut state = lock(&self.state);
        let mut from = offset;
        while from < end {
            let pages = piece(from, end);
            self.fetch(&mut state, &pages)?;
            let (begin, to) = (pages.start * PAGE_BYTES, end.min(pages.end * PAGE_BYTES));
            let found = &state.scratch[(from - begin) as usize..(to - begin) as usize];
            into[(from - offset) as usize..(to - offset) as usize].copy_from_slice(found);
            from = to;
        }
        Ok(end.saturating_sub(offset) as usize)
    }

    /// Writes all bytes, first to the file and then to remote memory.
    ///
    /// # Errors
    /// [`RegionError::Beyond`]: nothing was written; [`RegionError::File`]; [`RegionError::Gone`] with
    /// [`OnLoss::Error`]: the bytes are in the file nevertheless.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), RegionError> {
        let end = offset.saturating_add(bytes.len() as u64);
        if end > self.bytes {
            return Err(RegionError::Beyond {
                offset,
                bytes: bytes.len() as u64,
                region_bytes: self.bytes,
            });
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let mut state = lock(&self.state);
        // Until these pages are stored again, they count as being only in the file: an error may follow.
        let touched = offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        state.sums[indices(&touched)].fill(ABSENT);
        let written = self.file.write_all_at(bytes, self.file_offset + offset);
        written.map_err(RegionError::File)?;
        let mut from = offset;
        while from < end && self.is_remote() {
            let pages = piece(from, end);
            let (begin, to) = (pages.start * PAGE_BYTES, end.min(pages.end * PAGE_BYTES));
            state
                .scratch
                .resize((pages.end - pages.start) as usize * PAGE, 0);
            // Only whole pages are stored. The rest of the first and of the last page is read from the file.
            if from > begin || to < pages.end * PAGE_BYTES {
                for edge in [pages.start, pages.end - 1] {
                    let at = (edge - pages.start) as usize * PAGE;
                    self.read_file(edge, &mut state.scratch[at..at + PAGE])?;
                }
            }
            let given = &bytes[(from - offset) as usize..(to - offset) as usize];
            state.scratch[(from - begin) as usize..(to - begin) as usize].copy_from_slice(given);
            let State { sums, scratch } = &mut *state;
            self.store(sums, &pages, scratch);
            from = to;
        }
        self.fail_if_lost()
    }

    /// Closes the region and returns its remote memory, as dropping the region does.
    pub fn close(self) {}

    /// Fetches the pages' contents into the scratch buffer.
    fn fetch(&self, state: &mut State, pages: &Range<u64>) -> Result<(), RegionError> {
        let State { sums, scratch } = state;
        scratch.resize((pages.end - pages.start) as usize * PAGE, 0);
        self.fail_if_lost()?;
        let mut from = pages.start;
        while from < pages.end {
            let is_there = |page: u64| sums[page as usize] != ABSENT && self.is_remote();
            let is_first_there = is_there(from);
            let other = (from..pages.end).find(|&page| is_there(page) != is_first_there);
            let run = from..other.unwrap_or(pages.end);
            let at = (run.start - pages.start) as usize * PAGE;
            let into = &mut scratch[at..at + (run.end - run.start) as usize * PAGE];
            if is_first_there {
                self.fetch_remote(sums, &run, into)?;
            } else {
                self.fetch_file(&run, into)?;
                self.store(sums, &run, into);
            }
            from = run.end;
        }
        Ok(())
    }

    /// Fetches pages from the node. If a page differs from the stored one, it is read from the file, and the
    /// node is abandoned.
    fn fetch_remote(
        &self,
        sums: &[Sum],
        run: &Range<u64>,
        into: &mut [u8],
    ) -> Result<(), RegionError> {
        let offset = self.at + run.start * PAGE_BYTES;
        if let Err(why) = self.node.read(offset, into) {
            self.inner.failed(&self.node, &why);
            self.fail_if_lost()?;
            return self.fetch_file(run, into);
        }
        let found = into.chunks_exact(PAGE).zip(&sums[indices(run)]);
        let wrong = found.filter(|(page, sum)| self.sum(page) != **sum).count() as u64;
        if wrong > 0 {
            self.inner.wrong_pages.fetch_add(wrong, Ordering::Relaxed);
            self.inner.failed(&self.node, &NodeFailure::Lying);
            self.fail_if_lost()?;
            return self.fetch_file(run, into);
        }
        let pages = run.end - run.start;
        let count = &self.inner.from_memory_pages;
        count.fetch_add(pages, Ordering::Relaxed);
        Ok(())
    }

    fn fetch_file(&self, run: &Range<u64>, into: &mut [u8]) -> Result<(), RegionError> {
        self.read_file(run.start, into)?;
        let pages = run.end - run.start;
        let count = &self.inner.from_file_pages;
        count.fetch_add(pages, Ordering::Relaxed);
        Ok(())
    }

    /// Fills `into` from the file, from page `page` on, with zeroes beyond the end of the file or region.
    fn read_file(&self, page: u64, into: &mut [u8]) -> Result<(), RegionError> {
        let begin = page * PAGE_BYTES;
        let of_region = (self.bytes - begin).min(into.len() as u64) as usize;
        let (mut rest, beyond) = into.split_at_mut(of_region);
        beyond.fill(0);
        let mut at = self.file_offset + begin;
        while !rest.is_empty() {
            match self.file.read_at(rest, at) {
                Ok(0) => {
                    rest.fill(0);
                    break;
                }
                Ok(count) => {
                    rest = &mut rest[count..];
                    at += count as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(RegionError::File(e)),
            }
        }
        Ok(())
    }

    /// Stores pages of the file in remote memory. If the remote memory is lost, the pages stay only in the
    /// file.
    fn store(&self, sums: &mut [Sum], pages: &Range<u64>, contents: &[u8]) {
        if self.node.is_gone() {
            return;
        }
        match self
            .node
            .write(self.at + pages.start * PAGE_BYTES, contents)
        {
            Ok(()) => {
                let pages = sums[indices(pages)].iter_mut();
                for (sum, page) in pages.zip(contents.chunks_exact(PAGE)) {
                    *sum = self.sum(page);
                }
            }
            Err(why) => self.inner.failed(&self.node, &why),
        }
    }

    fn sum(&self, page: &[u8]) -> Sum {
        let hash = blake3::keyed_hash(&self.inner.key, page);
        let (half, _) = hash
            .as_bytes()
            .split_first_chunk()
            .unwrap_or((&ABSENT, &[]));
        *half
    }

    fn fail_if_lost(&self) -> Result<(), RegionError> {
        if self.node.is_gone() && self.inner.settings.when_gone == OnLoss::Error {
            return Err(RegionError::Gone);
        }
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let bytes = self.bytes.next_multiple_of(PAGE_BYTES);
        if !self.node.is_gone()
            && let Err(why) = self.node.trim(self.at, bytes)
        {
            self.inner.failed(&self.node, &why);
        }
        lock(&self.node.room).give_back(self.at, bytes);
    }
}

/// Returns the pages that the next step handles, of the bytes from `from` to `end`.
fn piece(from: u64, end: u64) -> Range<u64> {
    let first = from / PAGE_BYTES;
    first..end.div_ceil(PAGE_BYTES).min(first + PIECE_PAGES)
}

fn indices(pages: &Range<u64>) -> Range<usize> {
    pages.start as usize..pages.end as usize
}
