//! A file on a store, of which only the end was read when it was opened. The record batches of a host are
//! adjacent, and hosts are in the order of their ids: one request fetches the batches of a host, or of several
//! hosts that are read one after the other.

use crate::file::host_order::HostOrder;
use crate::file::index::{HostRows, Index};
use crate::manifest::FileEntry;
use crate::store::{Extent, Fetcher, FileBytes};
use arrow::ipc::Block;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Length expected for each host's part of a file's end: its line in the index, and its record batches' entries.
const END_BYTES_PER_HOST: u64 = 256;
/// Longest gap between the batches of two hosts that one request fetches together: to fetch so many useless
/// bytes takes less time than another request.
const GAP_BYTES: u64 = 256 << 10;
/// Alignment of record batches in a file.
const ALIGNMENT_BYTES: u64 = 8;

/// A file on a store.
#[derive(Debug)]
pub(crate) struct Remote {
    fetcher: Arc<Fetcher>,
    path: Arc<str>,
    /// Length of the file.
    bytes: u64,
}

/// Record batches of a file, and the hosts that have rows in them.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a> {
    pub(crate) index: &'a Index,
    pub(crate) blocks: &'a [Block],
}

impl Remote {
    pub(crate) fn new(fetcher: &Arc<Fetcher>, entry: &FileEntry) -> Self {
        Self {
            fetcher: Arc::clone(fetcher),
            path: Arc::from(entry.path.as_str()),
            bytes: entry.bytes,
        }
    }

    /// Requests the file's end ahead of [`Remote::end`].
    pub(crate) fn request_end(&self, entry: &FileEntry) {
        let end = Extent::End(self.end_bytes(entry));
        self.fetcher.prefetch(&self.path, end);
    }

    /// The file's end, which most probably contains the whole footer.
    pub(crate) fn end(&self, entry: &FileEntry) -> io::Result<FileBytes> {
        self.fetcher.end(&self.path, self.end_bytes(entry))
    }

    /// The file's end with this length.
    pub(crate) fn end_of(&self, bytes: u64) -> io::Result<FileBytes> {
        self.fetcher.end(&self.path, self.aligned(bytes))
    }

    fn end_bytes(&self, entry: &FileEntry) -> u64 {
        let of_hosts = entry.hosts_count.saturating_mul(END_BYTES_PER_HOST);
        self.aligned(of_hosts.saturating_add(self.fetcher.limits().end_bytes))
    }

    /// Length, at least `bytes`, of an end that begins at a multiple of the alignment.
    fn aligned(&self, bytes: u64) -> u64 {
        let start = self.bytes.saturating_sub(bytes);
        self.bytes - start / ALIGNMENT_BYTES * ALIGNMENT_BYTES
    }

    /// Requests the batches of a host ahead of [`Remote::read`].
    pub(crate) fn request(&self, of: Contents<'_>, host: &HostRows, order: Option<&HostOrder>) {
        let Some(span) = self.span(of, host) else {
            return; // `read` returns the error
        };
        if !self.fetcher.has(&self.path, &Extent::Between(span.clone())) {
            let wanted = self.extended(of, &host.host_id, span, order);
            self.fetcher.prefetch(&self.path, Extent::Between(wanted));
        }
    }

    /// Bytes of the file that contain the batches of a host. With an order, one request fetches those of the next
    /// hosts too, and the batches of the hosts after them are requested.
    ///
    /// # Errors
    /// The store's error; [`io::ErrorKind::InvalidData`] if the file does not have these batches;
    /// [`io::ErrorKind::UnexpectedEof`] if it has become shorter.
    pub(crate) fn read(
        &self,
        of: Contents<'_>,
        host: &HostRows,
        order: Option<&HostOrder>,
    ) -> io::Result<FileBytes> {
        let span = self.span(of, host).ok_or_else(|| {
            let missing = format!("record batches of host {} are not in it", host.host_id);
            io::Error::new(io::ErrorKind::InvalidData, missing)
        })?;
        let wanted = if self.fetcher.has(&self.path, &Extent::Between(span.clone())) {
            span.clone()
        } else {
            self.extended(of, &host.host_id, span.clone(), order)
        };
        let portion = self.fetcher.read(&self.path, span, wanted)?;
        if let Some(order) = order
            && portion.is_furthest
            && let Some(next) = self.next(of, &host.host_id, portion.bytes.end(), order)
        {
            self.fetcher.prefetch(&self.path, Extent::Between(next));
        }
        Ok(portion.bytes)
    }

    /// Offsets of the batches with rows of `host`; `None` if the file does not have them.
    fn span(&self, of: Contents<'_>, host: &HostRows) -> Option<Range<u64>> {
        let mut parts = of.index.parts_of(host).map(|(part, _)| part);
        let first = parts.next()?;
        let last = parts.last().unwrap_or(first);
        let start = block_span(of.blocks.get(first.batches.start)?)?.start;
        let end = block_span(of.blocks.get(last.batches.end.checked_sub(1)?)?)?.end;
        (start < end && end <= self.bytes).then_some(start..end)
    }

    /// The span of a host, extended by those of the next hosts of the order, up to the length of a piece.
    fn extended(
        &self,
        of: Contents<'_>,
        host_id: &str,
        span: Range<u64>,
        order: Option<&HostOrder>,
    ) -> Range<u64> {
        let Some(order) = order else {
            return span;
        };
        let mut extended = span;
        for next in of.index.hosts_after(host_id) {
            let Some(next) = next.ok().filter(|next| !order.ends_before(&next.host_id)) else {
                break;
            };
            if !order.has(&next.host_id) {
                continue;
            }
            let Some(span) = self.span(of, &next) else {
                break;
            };
            let gap = span.start.saturating_sub(extended.end);
            if gap > GAP_BYTES || span.end.saturating_sub(extended.start) > order.piece_bytes {
                break;
            }
            extended.end = extended.end.max(span.end);
        }
        extended
    }

    /// Span of the first host after `host_id` in the order whose batches end after `end`, extended by the hosts
    /// after it.
    fn next(
        &self,
        of: Contents<'_>,
        host_id: &str,
        end: u64,
        order: &HostOrder,
    ) -> Option<Range<u64>> {
        for next in of.index.hosts_after(host_id) {
            let next = next.ok()?;
            if order.ends_before(&next.host_id) {
                return None;
            }
            if order.has(&next.host_id) {
                let span = self.span(of, &next)?;
                if span.end > end {
                    return Some(self.extended(of, &next.host_id, span, Some(order)));
                }
            }
        }
        None
    }
}

/// Offsets of a record batch in its file.
pub(crate) fn block_span(block: &Block) -> Option<Range<u64>> {
    let start = u64::try_from(block.offset()).ok()?;
    let metadata = u64::try_from(block.metaDataLength()).ok()?;
    let body = u64::try_from(block.bodyLength()).ok()?;
    let end = start.checked_add(metadata)?.checked_add(body)?;
    Some(start..end)
}
