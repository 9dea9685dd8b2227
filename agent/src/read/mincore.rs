//! Cached part of a file by mincore(2), for kernels without cachestat(2).
//!
//! Since Linux 5.2 mincore reports every page as cached to a process that neither owns the file nor could
//! write to it (`can_do_mincore`, mm/mincore.c). Such a false answer shows in a page beyond the file's end,
//! which cannot be cached.

use rustix::fd::AsFd;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::ops::Range;

/// Number of bytes mapped at one time.
const WINDOW_BYTES: u64 = 64 << 20;

/// Offset beyond the file's end at which no page is in the cache: readahead stops at the end, and a folio
/// that extends beyond it has at most 2 MiB on most machines, 512 MiB on all.
const PAST_THE_END_BYTES: u64 = 1 << 30;

/// Number of pages of `file` that are in the page cache within `range` (in bytes; an empty range is the whole
/// file). `size_bytes` is the file's size.
///
/// # Errors
/// `PERM` if the kernel would give a false answer, or if asking would change the access time of another
/// user's file; otherwise the errors of mmap(2) and mincore(2).
pub fn cached_pages(file: impl AsFd, size_bytes: u64, range: &Range<u64>) -> Result<u64, Errno> {
    let page_bytes = rustix::param::page_size() as u64;
    // A mapping sets the access time. Only the owner, or a process with CAP_FOWNER, may prevent that. To
    // exactly these processes mincore gives true answers.
    fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NOATIME)?;
    if reports_pages_past_end(&file, size_bytes)? {
        return Err(Errno::PERM);
    }
    let mut in_core = Vec::new();
    let whole = 0..size_bytes;
    let Range { start, end } = if range.is_empty() { &whole } else { range };
    let end = (*end).min(size_bytes);
    let mut at = start - start % page_bytes;
    let mut pages = 0;
    while at < end {
        let length = (end - at).min(WINDOW_BYTES);
        pages += window(&file, at, length, &mut in_core)?;
        at += length;
    }
    Ok(pages)
}

/// Returns true if mincore reports a page beyond the file's end as cached: then it reports every page as
/// cached.
pub(crate) fn reports_pages_past_end(file: impl AsFd, size_bytes: u64) -> Result<bool, Errno> {
    let past_the_end = size_bytes
        .checked_next_multiple_of(WINDOW_BYTES)
        .and_then(|end| end.checked_add(PAST_THE_END_BYTES))
        .ok_or(Errno::OVERFLOW)?;
    Ok(window(file, past_the_end, 1, &mut Vec::new())? != 0)
}

/// Number of cached pages of the `length` bytes from `offset`, which is a page's start. The mapping allows no
/// access, not even reads: nothing can load a page through it, not even mlockall(2).
#[allow(unsafe_code)]
fn window(file: impl AsFd, offset: u64, length: u64, in_core: &mut Vec<u8>) -> Result<u64, Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::OVERFLOW)?;
    in_core.clear();
    in_core.resize(length.div_ceil(rustix::param::page_size()), 0);
    // SAFETY: the mapping is new, at an address that the kernel chooses, and is unmapped below; nothing
    // refers into it. mincore writes one byte per page, for which `in_core` has room.
    unsafe {
        let start: *mut c_void = mmap(
            std::ptr::null_mut(),
            length,
            ProtFlags::empty(),
            MapFlags::SHARED,
            file.as_fd(),
            offset,
        )?;
        let asked = libc::mincore(start, length, in_core.as_mut_ptr());
        let error = std::io::Error::last_os_error();
        munmap(start, length)?;
        if asked != 0 {
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
    }
    // Bit 0 is set if the page is in the cache; the other bits are reserved.
    Ok(in_core.iter().filter(|&&page| page & 1 != 0).count() as u64)
}
