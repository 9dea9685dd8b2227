//! cachestat(2): how much of a file is in the page cache (Linux 6.5).

use rustix::fd::{AsFd, AsRawFd};
use rustix::io::Errno;
use std::ops::Range;

/// Number of the system call: the same on every architecture but Alpha, which has its own numbers.
const SYS_CACHESTAT: libc::c_long = 451;

/// Kernel's `struct cachestat_range`.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Number of pages of `file` that are in the page cache within `range` (in bytes; an empty range reaches to
/// the end of the file).
///
/// # Errors
/// `NOSYS` if the kernel lacks the call, `PERM` if the file is another user's, `OPNOTSUPP` for
/// hugetlbfs.
pub fn cached_pages(file: impl AsFd, range: &Range<u64>) -> Result<u64, Errno> {
    let asked = CachestatRange {
        offset: range.start,
        length: range.end.saturating_sub(range.start),
    };
    let mut found = Cachestat::default();
    system_call(file, &asked, &mut found)?;
    Ok(found.cached)
}

#[allow(unsafe_code)]
fn system_call(
    file: impl AsFd,
    range: &CachestatRange,
    found: &mut Cachestat,
) -> Result<(), Errno> {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open while it is borrowed. Both structs have the layout of
    // linux/mman.h and outlive the call, which writes to `found` only.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            fd,
            std::ptr::from_ref(range),
            std::ptr::from_mut(found),
            0_u32,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}
